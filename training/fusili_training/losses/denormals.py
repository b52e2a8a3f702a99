"""Treating denormal numbers as 0 on a CPU, where Sinkhorn's iterations are many times slower on them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch

__all__ = ["flushed_denormals"]


@contextmanager
def flushed_denormals() -> Iterator[None]:
    """Flush denormal numbers to 0 within the context, in this thread and in the threads it starts."""
    for kind in (np.float32, np.float64):
        np.finfo(kind).smallest_subnormal  # noqa: B018 (numpy caches it; the first access must come before denormals are flushed)
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(False)
