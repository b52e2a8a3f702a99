"""The FuSiLi similarity: a Sinkhorn soft alignment fused with the similarity matrix it was computed from.

For one image (N patches) and one recording (M frames) let Z = scale * F, where F holds the cosines of every patch
with every frame, and let A be the soft alignment of Z (see `soft_alignment`). The similarity of the pair is
sum(A * Z).

Value and gradient are exact for the K unrolled iterations, yet autograd does not record them: all that is kept
for the backward pass is F, N * M numbers per pair, and the potentials, K * (N + M) numbers per pair. Pairs are
processed in tiles. A pair whose potentials overflow is computed again in the log domain.

On a CPU, call ``torch.set_flush_denormal(True)`` once in every training process before the first comparison: at
high scales many numbers are denormal, and arithmetic on denormal numbers is several times slower.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from fusili_mir.errors import InputError
from fusili_training.losses.pair_tiles import PairTiling, Tile
from fusili_training.losses.soft_alignment import (
    Marginal,
    Potentials,
    logit_gradient,
    scale_plan,
    similarity_in_log_domain,
)

__all__ = ["fusili_similarity"]


def fusili_similarity(
    patches: Tensor,
    frames: Tensor,
    scale: Tensor,
    patch_mask: Tensor | None = None,
    frame_mask: Tensor | None = None,
    n_iterations: int = 20,
    pairs_per_tile: int | None = None,
) -> Tensor:
    """Compare every image with every recording.

    Parameters
    ----------
    patches : Tensor [shape=(B1, N, d)]
        Patch embeddings; they are L2-normalised here.
    frames : Tensor [shape=(B2, M, d)]
        Frame embeddings; they are L2-normalised here.
    scale : Tensor [shape=()]
        Inverse temperature, ``exp(logit_scale)``; positive, and it receives a gradient.
    patch_mask, frame_mask : Tensor of bool [shape=(B1, N), (B2, M)], optional
        False for padding. The marginals are uniform over the other patches and frames.
    n_iterations : int
        K, the number of row and column steps.
    pairs_per_tile : int, optional
        Number of pairs processed at once; by default what fits the cache of a CPU or keeps a GPU busy.

    Returns
    -------
    Tensor [shape=(B1, B2)]
        The similarities, in float32 (float64 for float64 input), also under autocast.
    """
    _check(patches, frames, scale, n_iterations)
    with torch.autocast(patches.device.type, enabled=False):
        dtype = torch.promote_types(torch.promote_types(patches.dtype, frames.dtype), torch.float32)
        patches = functional.normalize(patches.to(dtype), dim=-1)
        frames = functional.normalize(frames.to(dtype), dim=-1)
        similarities: Tensor = _FusiliSimilarity.apply(  # type: ignore[no-untyped-call]
            patches,
            frames,
            scale.to(dtype),
            Marginal.uniform(patches, patch_mask, "patch"),
            Marginal.uniform(frames, frame_mask, "frame"),
            n_iterations,
            PairTiling.choose(patches, frames, pairs_per_tile),
        )
    return similarities


def _check(patches: Tensor, frames: Tensor, scale: Tensor, n_iterations: int) -> None:
    if patches.ndim != 3 or frames.ndim != 3 or patches.shape[2] != frames.shape[2]:
        raise InputError(
            f"patches of shape {tuple(patches.shape)} and frames of shape {tuple(frames.shape)} cannot be"
            " compared; expected (B1, N, d) and (B2, M, d) with the same d"
        )
    if scale.ndim:
        raise InputError(
            f"the scale has shape {tuple(scale.shape)}; expected a single number, exp(logit_scale)"
        )
    if n_iterations < 1:
        raise InputError(f"n_iterations is {n_iterations}; expected at least 1 Sinkhorn iteration")


class _FusiliSimilarity(torch.autograd.Function):
    """The similarities of unit-length patches (B1, N, d) and unit-length frames (B2, M, d)."""

    @staticmethod
    def forward(
        ctx: Any,
        patches: Tensor,
        frames: Tensor,
        scale: Tensor,
        patch_marginal: Marginal,
        frame_marginal: Marginal,
        n_iterations: int,
        tiling: PairTiling,
    ) -> Tensor:
        cosines = (patches.flatten(0, 1) @ frames.flatten(0, 1).T).view(*patches.shape[:2], *frames.shape[:2])
        similarities = patches.new_empty(len(patches), len(frames))
        kept: list[Potentials] = []
        for images in tiling.blocks():
            for tile in tiling.tiles(images):
                rows, columns = _marginals(tile, patch_marginal, frame_marginal)
                logits = tile.pairs(cosines) * scale
                potentials, tile_similarities = scale_plan(logits, rows, columns, n_iterations)
                for pair in _lost(potentials.in_range, logits):
                    tile_similarities[pair] = similarity_in_log_domain(
                        logits[pair], rows.of(pair), columns.of(pair), n_iterations
                    )
                n_images = images.stop - images.start
                similarities[tile.images, tile.recordings] = tile_similarities.view(n_images, -1)
                kept.append(potentials)
        ctx.save_for_backward(patches, frames, scale, cosines)
        ctx.kept, ctx.tiling, ctx.n_iterations = kept, tiling, n_iterations
        ctx.marginals = patch_marginal, frame_marginal
        return similarities

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, similarity_gradient: Tensor) -> tuple[Tensor | None, ...]:
        patches, frames, scale, cosines = ctx.saved_tensors
        flat_frames = frames.flatten(0, 1)  # (B2 * M, d)
        patch_gradient = torch.empty_like(patches)
        frame_gradient = torch.zeros_like(flat_frames)
        kept = iter(ctx.kept)
        with torch.autocast(patches.device.type, enabled=False):
            for images in ctx.tiling.blocks():
                block = torch.empty_like(cosines[images])  # d loss / d Z, (images, N, B2, M)
                for tile in ctx.tiling.tiles(images):
                    rows, columns = _marginals(tile, *ctx.marginals)
                    logits = tile.pairs(cosines) * scale
                    potentials = next(kept)
                    gradient = logit_gradient(logits, potentials, rows, columns)
                    usable = potentials.in_range & gradient.flatten(1).isfinite().all(dim=1)
                    for pair in _lost(usable, logits):
                        gradient[pair] = _log_domain_gradient(
                            logits[pair], rows.of(pair), columns.of(pair), ctx.n_iterations
                        )
                    gradient *= similarity_gradient[tile.images, tile.recordings].reshape(-1, 1, 1)
                    target = block[:, :, tile.recordings].permute(0, 2, 1, 3)
                    target.copy_(gradient.view(target.shape))
                flat_block = block.view(-1, len(flat_frames))
                patch_gradient[images] = (flat_block @ flat_frames).view_as(patch_gradient[images])
                frame_gradient.addmm_(flat_block.T, patches[images].flatten(0, 1))
        # With Z = scale * F and F = X Y^T, the gradient with respect to the scale is <F, dZ> = <X, dZ Y>.
        scale_gradient = (patches * patch_gradient).sum()
        frame_gradient = frame_gradient.view_as(frames)
        return patch_gradient * scale, frame_gradient * scale, scale_gradient, None, None, None, None


def _marginals(tile: Tile, patches: Marginal, frames: Marginal) -> tuple[Marginal, Marginal]:
    """Return the marginals of the pairs of a tile, for rows (P, N) and for columns (P, M)."""
    images, recordings = tile.pair_indices(patches.mass.device)
    return patches.of(images), frames.of(recordings)


def _lost(usable: Tensor, logits: Tensor) -> Tensor:
    """Return the pairs [shape=(lost, 1)] to compute again, except those whose logits are not finite."""
    if bool(usable.all()):
        return usable.new_empty(0, 1, dtype=torch.long)
    return (~usable & logits.flatten(1).isfinite().all(dim=1)).nonzero()


def _log_domain_gradient(logits: Tensor, rows: Marginal, columns: Marginal, n_iterations: int) -> Tensor:
    with torch.enable_grad():
        leaf = logits.detach().requires_grad_()
        similarity = similarity_in_log_domain(leaf, rows, columns, n_iterations)
        return torch.autograd.grad(similarity.sum(), leaf)[0]
