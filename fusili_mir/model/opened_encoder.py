"""A model as a user names it -> an encoder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from fusili_mir.model.bundle import Bundle
from fusili_mir.model.encoder import Encoder

__all__ = ["as_encoder"]


def as_encoder(
    model: str | Path | Bundle | Encoder | None,
    device: str = "auto",
    batch_size: int | None = None,
    device_options: Mapping[str, str] | None = None,
) -> Encoder:
    """Open a model: a folder, a bundle, an encoder itself or, for None, the one installed with the package."""
    if isinstance(model, Encoder):
        return model
    return Encoder(model, device, batch_size=batch_size, device_options=device_options)
