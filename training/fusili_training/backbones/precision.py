"""Computing spectra and losses in full precision while the rest of a model runs under autocast."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

import torch

__all__ = ["full_precision"]


def full_precision(device: torch.device) -> AbstractContextManager[object]:
    """Return a context without autocast: a null context, which leaves no trace in a graph, if autocast is off."""
    if torch.is_autocast_enabled(device.type):
        return torch.autocast(device.type, enabled=False)
    return nullcontext()
