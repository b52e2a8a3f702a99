"""The state of torch's random numbers on one rank, which is all that is random in a training step."""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["random_state", "set_random_state"]


def random_state(device: torch.device) -> dict[str, Tensor]:
    """Return the state of the CPU's generator and, on a GPU, of that one's."""
    state = {"cpu": torch.get_rng_state()}
    if device.type == "cuda":
        state["cuda"] = torch.cuda.get_rng_state(device)
    return state


def set_random_state(state: dict[str, Tensor], device: torch.device) -> None:
    """Go back to a state of `random_state`."""
    torch.set_rng_state(state["cpu"])
    if device.type == "cuda" and "cuda" in state:
        torch.cuda.set_rng_state(state["cuda"], device)
