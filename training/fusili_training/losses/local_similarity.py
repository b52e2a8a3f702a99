"""The local similarities by name: `fusili`, and the two that it is compared with.

Each takes patches (B1, N, d), frames (B2, M, d) and a scale, computes Z = scale * cosines, and returns one number
per pair (B1, B2).
"""

from __future__ import annotations

from functools import partial
from typing import Protocol

import torch
from torch import Tensor
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

from fusili_mir.errors import InputError
from fusili_training.losses.pair_tiles import PairTiling
from fusili_training.losses.sinkhorn import fusili_similarity

__all__ = [
    "LOCAL_SIMILARITIES",
    "LocalSimilarity",
    "choose_local_similarity",
    "softmax_similarity",
    "summed_cosines",
]

LOCAL_SIMILARITIES = ("fusili", "cosine", "softmax")


class LocalSimilarity(Protocol):
    """A function that compares every image with every recording."""

    def __call__(
        self,
        patches: Tensor,
        frames: Tensor,
        scale: Tensor,
        patch_mask: Tensor | None = None,
        frame_mask: Tensor | None = None,
    ) -> Tensor:
        """Return the similarities [shape=(B1, B2)]."""
        ...


def choose_local_similarity(name: str, n_iterations: int = 20, frame_repeats: int = 1) -> LocalSimilarity:
    """Return the local similarity of a recipe.

    Parameters
    ----------
    name : str
        One of `LOCAL_SIMILARITIES`.
    n_iterations : int
        Sinkhorn's K; used by `fusili` only.
    frame_repeats : int
        How many equal frames of the paper's protocol each frame stands for. Only `cosine`, a sum, depends on it.
    """
    if name == "fusili":
        return partial(fusili_similarity, n_iterations=n_iterations)
    if name == "cosine":
        return partial(summed_cosines, frame_repeats=frame_repeats)
    if name == "softmax":
        return softmax_similarity
    raise InputError(f"unknown local similarity {name!r}; expected one of {', '.join(LOCAL_SIMILARITIES)}")


def summed_cosines(
    patches: Tensor,
    frames: Tensor,
    scale: Tensor,
    patch_mask: Tensor | None = None,
    frame_mask: Tensor | None = None,
    frame_repeats: int = 1,
) -> Tensor:
    """Return the sum of all entries of Z [shape=(B1, B2)], the paper's S^cos."""
    with torch.autocast(patches.device.type, enabled=False):
        image_sums = _masked(functional.normalize(_wide(patches), dim=-1), patch_mask).sum(dim=1)
        recording_sums = _masked(functional.normalize(_wide(frames), dim=-1), frame_mask).sum(dim=1)
        return scale * frame_repeats * image_sums @ recording_sums.T


def softmax_similarity(
    patches: Tensor,
    frames: Tensor,
    scale: Tensor,
    patch_mask: Tensor | None = None,
    frame_mask: Tensor | None = None,
) -> Tensor:
    """Weight Z by a softmax in one direction [shape=(B1, B2)]: each frame spreads 1/M over the patches."""
    with torch.autocast(patches.device.type, enabled=False):
        patches = functional.normalize(_wide(patches), dim=-1)
        frames = functional.normalize(_wide(frames), dim=-1)
        if patch_mask is None:
            patch_mask = patches.new_ones(patches.shape[:2], dtype=torch.bool)
        if frame_mask is None:
            frame_mask = frames.new_ones(frames.shape[:2], dtype=torch.bool)
        blocks = [
            checkpoint(
                _softmax_block,
                patches[images],
                frames,
                scale,
                patch_mask[images],
                frame_mask,
                use_reentrant=False,
            )
            for images in PairTiling.choose(patches, frames).blocks()
        ]
    return torch.cat(blocks)


def _softmax_block(
    patches: Tensor, frames: Tensor, scale: Tensor, patch_mask: Tensor, frame_mask: Tensor
) -> Tensor:
    # i: image, n: patch, j: recording, m: frame, d: embedding
    logits = scale * torch.einsum("ind,jmd->ijnm", patches, frames)
    attention = logits.masked_fill(~patch_mask[:, None, :, None], -torch.inf).softmax(dim=2)
    per_frame = (attention * logits).sum(dim=2)  # (i, j, m)
    return (per_frame * frame_mask).sum(dim=2) / frame_mask.sum(dim=1)


def _wide(embeddings: Tensor) -> Tensor:
    return embeddings.to(torch.promote_types(embeddings.dtype, torch.float32))


def _masked(embeddings: Tensor, mask: Tensor | None) -> Tensor:
    return embeddings if mask is None else embeddings * mask[:, :, None]
