"""The embeddings of a batch, as an encoder with its heads gives them."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

__all__ = ["Embeddings"]


@dataclass(frozen=True)
class Embeddings:
    """The embeddings of B images (local: patches) or of B recordings (local: frames).

    Attributes
    ----------
    local : Tensor [shape=(B, L, d)]
        L2-normalised patch or frame embeddings.
    mask : Tensor of bool [shape=(B, L)] or None
        False where `local` is padding; None if there is no padding.
    pooled : Tensor [shape=(B, d)]
        L2-normalised global embeddings.
    """

    local: Tensor
    mask: Tensor | None
    pooled: Tensor
