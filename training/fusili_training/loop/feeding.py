"""Getting batches to the model: where they come from, and what the objective takes of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from fusili_training.data.batch import Batch
from fusili_training.loop.interruption import held_stop_signals
from fusili_training.loop.recipe import Recipe
from fusili_training.model.model import FusiliModel
from fusili_training.model.targets import DenseTargets, dense_targets

__all__ = ["BatchSource", "Inputs", "prepare", "read_epoch"]


class BatchSource(Protocol):
    """The batches of one rank; their order depends on nothing but the seed and the number of the epoch."""

    def __len__(self) -> int:
        """Return the number of batches in an epoch, the same on every rank."""
        ...

    def epoch(self, number: int, skip: int = 0) -> Iterator[Batch]:
        """Yield the batches of an epoch but for the first `skip`."""
        ...


def read_epoch(source: BatchSource, number: int, skip: int = 0) -> Iterator[Batch]:
    """Yield the batches of an epoch but for the first `skip`.

    The first one starts the processes that read ahead. They do not receive the signals that stop a run, and the
    random number that starting them draws is given back: those belong to the training steps, which must not
    depend on where an epoch was resumed.
    """
    batches = source.epoch(number, skip)
    state = torch.get_rng_state()
    with held_stop_signals():
        first = next(batches, None)
    torch.set_rng_state(state)
    if first is not None:
        yield first
        yield from batches


@dataclass(frozen=True)
class Inputs:
    """The arguments of `fusili_training.loop.objective.Objective`, on the device of the rank."""

    images: Tensor
    waveforms: Tensor
    is_original: Tensor | None
    targets: DenseTargets | None


def prepare(batch: Batch, model: FusiliModel, recipe: Recipe, device: torch.device) -> Inputs:
    """Put a batch on a device, and work out the targets that the recipe's loss needs."""
    is_original = batch.is_original if recipe.data.mutations == "negative" else None
    targets = None
    if recipe.loss.supervision == "local":
        _, n_strips, _, width_px = batch.images.shape
        targets = dense_targets(
            batch.truths,
            model.image.geometry.grid(width_px, n_strips),
            model.audio.geometry.grid(batch.waveforms.shape[1]),
            recipe.loss.recency_sec,
        ).to(device)
    return Inputs(
        _move(batch.images, device),
        _move(batch.waveforms, device),
        None if is_original is None else _move(is_original, device),
        targets,
    )


def _move(tensor: Tensor, device: torch.device) -> Tensor:
    if device.type == "cuda":
        tensor = tensor.pin_memory()
    return tensor.to(device, non_blocking=True)
