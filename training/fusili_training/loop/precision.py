"""The precision in which a step is computed."""

from __future__ import annotations

import functools
import subprocess
import sys
from contextlib import AbstractContextManager

import torch

from fusili_mir.errors import InputError
from fusili_training.loop.recipe import TrainingOptions

__all__ = ["autocast"]

_PROBE = """
import torch
with torch.autocast("cpu", torch.bfloat16):
    layer = torch.nn.Linear(64, 64)
    layer(torch.ones(64, 64)).float().sum().backward()
    torch.nn.Conv2d(1, 4, 3)(torch.ones(1, 1, 9, 9)).float().sum().backward()
"""


def autocast(options: TrainingOptions, device: torch.device) -> AbstractContextManager[None]:
    """Return a context: by default, bfloat16 autocast on a GPU and float32 on a CPU."""
    on_cpu = device.type == "cpu"
    if on_cpu and options.precision == "bfloat16" and not _cpu_computes_bfloat16():
        raise InputError(
            "training.precision is bfloat16, and torch dies when this CPU computes with it; expected auto or"
            " float32"
        )
    enabled = options.precision == "bfloat16" or (not on_cpu and options.precision == "auto")
    context: AbstractContextManager[None] = torch.autocast(device.type, torch.bfloat16, enabled=enabled)
    return context


@functools.cache
def _cpu_computes_bfloat16() -> bool:
    """Try it in another process: on some CPUs it ends with an illegal instruction."""
    tried = subprocess.run(  # noqa: S603
        [sys.executable, "-c", _PROBE], capture_output=True, timeout=300, check=False
    )
    return tried.returncode == 0
