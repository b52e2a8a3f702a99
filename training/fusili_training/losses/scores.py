"""The local scores by name: `fusili`, and the two it is compared with.

All of them take patches (B1, N, d), frames (B2, M, d) and a scale, with Z = scale * cosines, and return one
number for every pair (B1, B2).
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
from fusili_training.losses.sinkhorn import fusili_score

__all__ = ["LOCAL_SCORES", "LocalScore", "choose_local_score", "cosine_score", "softmax_score"]

LOCAL_SCORES = ("fusili", "cosine", "softmax")


class LocalScore(Protocol):
    """A score of every image with every recording."""

    def __call__(
        self,
        patches: Tensor,
        frames: Tensor,
        scale: Tensor,
        patch_mask: Tensor | None = None,
        frame_mask: Tensor | None = None,
    ) -> Tensor:
        """Return the scores [shape=(B1, B2)]."""
        ...


def choose_local_score(name: str, n_iterations: int = 20, frame_repeats: int = 1) -> LocalScore:
    """Return the local score of a recipe.

    Parameters
    ----------
    name : str
        One of `LOCAL_SCORES`.
    n_iterations : int
        Sinkhorn's K; only `fusili` has it.
    frame_repeats : int
        How many equal frames of the protocol each frame stands for. Only `cosine`, a sum, depends on it.
    """
    if name == "fusili":
        return partial(fusili_score, n_iterations=n_iterations)
    if name == "cosine":
        return partial(cosine_score, frame_repeats=frame_repeats)
    if name == "softmax":
        return softmax_score
    raise InputError(f"unknown local score {name!r}; expected one of {', '.join(LOCAL_SCORES)}")


def cosine_score(
    patches: Tensor,
    frames: Tensor,
    scale: Tensor,
    patch_mask: Tensor | None = None,
    frame_mask: Tensor | None = None,
    frame_repeats: int = 1,
) -> Tensor:
    """Return the sum of all entries of Z [shape=(B1, B2)]: the paper's S^cos."""
    with torch.autocast(patches.device.type, enabled=False):
        image_sums = _masked(functional.normalize(_wide(patches), dim=-1), patch_mask).sum(dim=1)
        recording_sums = _masked(functional.normalize(_wide(frames), dim=-1), frame_mask).sum(dim=1)
        return scale * frame_repeats * image_sums @ recording_sums.T


def softmax_score(
    patches: Tensor,
    frames: Tensor,
    scale: Tensor,
    patch_mask: Tensor | None = None,
    frame_mask: Tensor | None = None,
) -> Tensor:
    """Weigh Z by a softmax in one direction [shape=(B1, B2)]: each frame spreads 1/M over the patches."""
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
