"""A model as a user names it -> an encoder."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from fusili_mir.errors import InputError
from fusili_mir.model.bundle import Bundle, default_bundle, load_bundle
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
    if model is not None and not isinstance(model, str | os.PathLike | Bundle):
        raise InputError(f"the model: {type(model).__name__}, expected the folder of a bundle, or None")
    bundle = model if isinstance(model, Bundle) else default_bundle() if model is None else load_bundle(model)
    return Encoder(bundle, device, batch_size=batch_size, device_options=device_options)
