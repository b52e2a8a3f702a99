"""The state of torch's random numbers on one rank; a training step uses no others."""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["random_state", "set_random_state"]


def random_state(device: torch.device) -> dict[str, Tensor]:
    """Return the state of the CPU's generator and, for a GPU, also of its generator."""
    state = {"cpu": torch.get_rng_state()}
    if device.type == "cuda":
        state["cuda"] = torch.cuda.get_rng_state(device)
    return state


def set_random_state(state: dict[str, Tensor], device: torch.device) -> None:
    """Restore a state returned by `random_state`."""
    torch.set_rng_state(state["cpu"])
    if device.type == "cuda" and "cuda" in state:
        torch.cuda.set_rng_state(state["cuda"], device)
