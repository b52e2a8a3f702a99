"""What an encoder with its heads makes of a batch."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

__all__ = ["Embeddings"]


@dataclass(frozen=True)
class Embeddings:
    """The embeddings of B images (local ones: patches) or B recordings (local ones: frames).

    Attributes
    ----------
    local : Tensor [shape=(B, L, d)]
        L2-normalised patch or frame embeddings.
    mask : Tensor of bool [shape=(B, L)] or None
        True where `local` is no padding; None when nothing is padded.
    pooled : Tensor [shape=(B, d)]
        L2-normalised global embeddings.
    """

    local: Tensor
    mask: Tensor | None
    pooled: Tensor
