"""A model as a user names it -> an encoder."""

from __future__ import annotations

from pathlib import Path

from fusili_mir.model.bundle import Bundle
from fusili_mir.model.encoder import Encoder

__all__ = ["as_encoder"]


def as_encoder(model: str | Path | Bundle | Encoder | None) -> Encoder:
    """Open a model: a folder, a bundle, an encoder itself or, for None, the one installed with the package."""
    return model if isinstance(model, Encoder) else Encoder(model)
