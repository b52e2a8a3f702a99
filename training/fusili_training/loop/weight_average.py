"""The running average of a model's weights, which is steadier than the weights of any one step."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

from fusili_training.model.model import FusiliModel

__all__ = ["WeightAverage"]

_EARLY_STEPS = 10  # the first averages forget faster: after n steps, no more than (1 + n) / (10 + n) is kept


class WeightAverage:
    """An exponential moving average of weights and batch statistics.

    Parameters
    ----------
    model : FusiliModel
        The model whose weights are averaged; the average begins with those that it has now.
    decay : float
        Share of the average that is kept at each step, below 1: 0.999 averages over some thousand steps.

    Attributes
    ----------
    state : dict of str to Tensor
        The average, under the names that the weights have in the model. Integers are those of the latest step.
    """

    def __init__(self, model: FusiliModel, decay: float) -> None:
        self.decay = decay
        self.state = _copy(model.state_dict())

    @torch.no_grad()
    def update(self, model: FusiliModel, n_steps: int) -> None:
        """Take in the weights after so many steps."""
        kept = min(self.decay, (1 + n_steps) / (_EARLY_STEPS + n_steps))
        for name, value in model.state_dict().items():
            if value.is_floating_point():
                self.state[name].lerp_(value, 1 - kept)
            else:
                self.state[name].copy_(value)

    @contextmanager
    def in_place_of_weights(self, model: FusiliModel) -> Iterator[None]:
        """Give a model the average for a while."""
        own = _copy(model.state_dict())
        model.load_state_dict(self.state)
        try:
            yield
        finally:
            model.load_state_dict(own)


def _copy(state: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name: value.detach().clone() for name, value in state.items()}
