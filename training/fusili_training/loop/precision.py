"""The precision in which a step is computed."""

from __future__ import annotations

from contextlib import AbstractContextManager

import torch

from fusili_mir.errors import InputError
from fusili_training.loop.recipe import TrainingOptions

__all__ = ["autocast"]


def autocast(options: TrainingOptions, device: torch.device) -> AbstractContextManager[None]:
    """Return a context: by default, bfloat16 autocast on a GPU and float32 on a CPU."""
    if options.precision == "bfloat16" and device.type == "cpu":
        raise InputError(
            "training.precision is bfloat16 on a CPU, where it can crash with an illegal instruction;"
            " expected auto or float32"
        )
    enabled = device.type == "cuda" and options.precision != "float32"
    context: AbstractContextManager[None] = torch.autocast(device.type, torch.bfloat16, enabled=enabled)
    return context
