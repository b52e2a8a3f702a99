"""Fitting the pooling of global embeddings to encoded pairs: prototypes, and a projection in closed form.

The projection is a linear discriminant: what an image and its recording have in common varies from segment to
segment, what sets them apart is noise. Features are whitened by the noise, and the directions in which segments
then differ most are kept.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from fusili_benchmarks.pooled_tokens import TokenPairs
from fusili_mir.arrays import Int64
from fusili_training.evaluation.global_retrieval import rank_by_product
from fusili_training.model.model import FusiliModel
from fusili_training.model.prototype_pooling import PrototypePooling

__all__ = [
    "LocalPairs",
    "cut_excerpts",
    "discriminant",
    "embed_locally",
    "find_prototypes",
    "fit_projection",
    "retrieval_mrr",
    "whole_segments",
]

_LEAST_SHARE, _MOST_SHARE = 0.4, 0.95  # of the columns of a segment, in an excerpt
_LOOSE = 0.25  # by which share of its length the sound of an excerpt begins or ends elsewhere
_LEAST_PLACES = 8
_LEAST_HEADS = 3
_ROUNDS = 5  # of k-means
_ROWS = 50_000  # that are embedded at once


@dataclass(frozen=True, eq=False)
class LocalPairs:
    """Pairs with the local embeddings of all columns [shape=(n_columns, d)] and frames [shape=(n_frames, d)]."""

    pairs: TokenPairs
    columns: Tensor
    frames: Tensor


@torch.no_grad()
def embed_locally(model: FusiliModel, pairs: TokenPairs) -> LocalPairs:
    """Apply the local heads of a model to the tokens."""
    found = []
    for head, tokens in ((model.image_head, pairs.columns), (model.audio_head, pairs.frames)):
        parts = np.array_split(tokens, range(_ROWS, len(tokens), _ROWS))
        found.append(
            torch.cat(
                [functional.normalize(head(torch.from_numpy(p.astype(np.float32))), dim=1) for p in parts]
            )
        )
    return LocalPairs(pairs, *found)


def whole_segments(pairs: TokenPairs) -> Int64:
    """Return first and last + 1 column, and first and last + 1 frame of each pair [shape=(n, 4)]."""
    starts = [np.append(0, ends[:-1]) for ends in (pairs.column_ends, pairs.frame_ends)]
    return np.stack([starts[0], pairs.column_ends, starts[1], pairs.frame_ends], axis=1)


def cut_excerpts(pairs: TokenPairs, seed: int) -> Int64:
    """Cut some measures out of each pair, and roughly the sound that belongs to them.

    A collection compares half systems with clips of five and ten seconds: both rarely begin and end together.

    Returns
    -------
    np.ndarray of int [shape=(n, 4)]
        As `whole_segments`. A pair with too few notes remains whole.
    """
    spans = whole_segments(pairs)
    rng = np.random.default_rng(seed)
    head_starts = np.append(0, pairs.head_ends[:-1])
    for row, (start, end) in zip(spans, zip(head_starts, pairs.head_ends, strict=True), strict=True):
        heads = pairs.heads[start:end]
        n_columns, n_frames = int(row[1] - row[0]), int(row[3] - row[2])
        length = max(_LEAST_PLACES, int(n_columns * rng.uniform(_LEAST_SHARE, _MOST_SHARE)))
        first = int(rng.integers(max(0, n_columns - length) + 1))
        inside = heads[(heads[:, 0] >= first) & (heads[:, 0] < first + length)]
        after = heads[heads[:, 0] >= first + length]
        if length >= n_columns or len(inside) < _LEAST_HEADS:
            continue
        begin = float(inside[:, 1].min())
        finish = float(min(inside[:, 2].max(), after[:, 1].min(initial=np.inf)))
        shifts = rng.uniform(-_LOOSE, _LOOSE, 2) * (finish - begin)
        begin, finish = max(0, int(begin + shifts[0])), min(n_frames, int(finish + shifts[1]))
        if finish - begin >= _LEAST_PLACES:
            row[:] = row[0] + first, row[0] + first + length, row[2] + begin, row[2] + finish
    return spans


def find_prototypes(local: LocalPairs, number: int, seed: int, n_samples: int = 16_000) -> Tensor:
    """Return the centres of clusters of columns and frames of all pairs, found by k-means on the sphere."""
    rng = np.random.default_rng(seed)
    drawn = [
        rows[torch.from_numpy(rng.choice(len(rows), min(n_samples, len(rows)), replace=False))]
        for rows in (local.columns, local.frames)
    ]
    samples = torch.cat(drawn)
    centres = samples[torch.from_numpy(rng.choice(len(samples), number, replace=False))]
    for _ in range(_ROUNDS):
        nearest = (samples @ centres.T).argmax(dim=1)
        sums = torch.zeros_like(centres).index_add_(0, nearest, samples)
        empty = torch.bincount(nearest, minlength=number) == 0
        sums[empty] = centres[empty]
        centres = functional.normalize(sums, dim=1)
    return centres


@torch.no_grad()
def describe(pooling: PrototypePooling, local: LocalPairs, spans: Int64) -> tuple[Tensor, Tensor]:
    """Return the features of images and of recordings, each [shape=(n, n_features)]."""
    images = [pooling.describe(local.columns[None, a:b], None)[0] for a, b in spans[:, :2]]
    recordings = [pooling.describe(local.frames[None, a:b], None)[0] for a, b in spans[:, 2:]]
    return torch.stack(images), torch.stack(recordings)


def fit_projection(pooling: PrototypePooling, images: Tensor, recordings: Tensor, shrinkage: float) -> None:
    """Set the statistics and the projection of a pooling, given features [shape=(n, n_features)] of pairs."""
    features = torch.stack([images, recordings])
    centres = features.mean(dim=1)
    variance = (features - centres[:, None]).square().mean(dim=(0, 1))
    pooling.centres.copy_(centres)
    pooling.variance.copy_(variance)
    pooling.n_followed.fill_(1)
    scaled = ((features - centres[:, None]) / pooling.spread).double()
    dimension = pooling.projection.out_features
    with torch.no_grad():
        pooling.projection.weight.copy_(discriminant(scaled[0], scaled[1], dimension, shrinkage))


def discriminant(images: Tensor, recordings: Tensor, dimension: int, shrinkage: float) -> Tensor:
    """Return the directions that tell pairs apart, given their centred features.

    Parameters
    ----------
    images, recordings : Tensor [shape=(n, n_features)]
    dimension : int
        Number of directions.
    shrinkage : float
        Added to the variance of the noise in every direction, as a share of its mean: few pairs say little about
        the directions in which there is little noise.

    Returns
    -------
    Tensor [shape=(dimension, n_features)]
    """
    noise = (images - recordings).T @ (images - recordings) / (2 * len(images))
    common = (images.T @ recordings + recordings.T @ images) / (2 * len(images))
    noise += shrinkage * noise.diagonal().mean() * torch.eye(len(noise), dtype=noise.dtype)
    whitening = torch.linalg.inv(torch.linalg.cholesky(noise))
    _, directions = torch.linalg.eigh(whitening @ common @ whitening.T)  # the largest values are the last
    found: Tensor = directions.flip(1)[:, :dimension].T @ whitening
    return found


@torch.no_grad()
def retrieval_mrr(
    pooling: PrototypePooling, images: Tensor, recordings: Tensor, groups: Int64
) -> tuple[float, float]:
    """Return the MRR of features, image to audio and audio to image; pairs of one group are counted as one."""
    image, audio = pooling.project(images, "image").numpy(), pooling.project(recordings, "audio").numpy()
    to_audio, to_image = rank_by_product(image, audio, groups), rank_by_product(audio, image, groups)
    return float(to_audio.reciprocal().mean()), float(to_image.reciprocal().mean())
