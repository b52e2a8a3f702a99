"""Scores by Sinkhorn to rank by: of all pairs, or of a shortlist by pooled cosines, put in a new order."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from fusili_mir.arrays import Float32, Float64
from fusili_mir.progress import progress_bar
from fusili_training.evaluation.local_store import LocalStore, PaddedTokens
from fusili_training.loop.denormals import flushed_denormals
from fusili_training.losses.sinkhorn import fusili_score

__all__ = ["rerank_shortlists", "score_all_pairs", "sinkhorn_scores"]

_BLOCK = 32  # images or recordings that are read at once


def sinkhorn_scores(patches: PaddedTokens, frames: PaddedTokens, scale: float) -> Float32:
    """Score every image with every recording [shape=(B1, B2)]."""
    with torch.no_grad(), flushed_denormals():
        scores = fusili_score(
            torch.from_numpy(patches.tokens),
            torch.from_numpy(frames.tokens),
            torch.tensor(scale),
            torch.from_numpy(patches.mask),
            torch.from_numpy(frames.mask),
        )
    return np.asarray(scores.numpy(), dtype=np.float32)


def score_all_pairs(patches: LocalStore, frames: LocalStore, scale: float, progress: bool = False) -> Float32:
    """Score all pairs of n images and n recordings; takes time that grows with n squared.

    Parameters
    ----------
    patches, frames : LocalStore
        Of n segments.
    scale : float
        Of the bundle.
    progress : bool
        Whether to show a bar on a terminal.

    Returns
    -------
    np.ndarray [shape=(n, n)]
        Image by recording.
    """
    blocks = [range(first, min(first + _BLOCK, len(patches))) for first in range(0, len(patches), _BLOCK)]
    scores = np.empty((len(patches), len(frames)), dtype=np.float32)
    for images in progress_bar(blocks, "scoring pairs", shown=progress):
        shown = patches.read_padded(images)
        for recordings in blocks:
            heard = frames.read_padded(recordings)
            scores[np.ix_(images, recordings)] = sinkhorn_scores(shown, heard, scale)
    return scores


def rerank_shortlists(
    images: Float32,
    recordings: Float32,
    patches: LocalStore,
    frames: LocalStore,
    scale: float,
    n_shortlist: int,
    progress: bool = False,
) -> tuple[Float64, Float64]:
    """Score by pooled cosines, and the first `n_shortlist`, which stay the first, by Sinkhorn.

    Parameters
    ----------
    images, recordings : np.ndarray [shape=(n, d)]
        Global embeddings.
    patches, frames : LocalStore
        Local ones of the same segments.
    scale : float
        Of the bundle.
    n_shortlist : int
    progress : bool
        Whether to show a bar on a terminal.

    Returns
    -------
    tuple of np.ndarray [shape=(n, n)]
        Query by candidate: image to audio, and audio to image. Only their order in a row means something.
    """

    def image_scores(query: int, shortlist: Sequence[int]) -> Float32:
        scores = sinkhorn_scores(patches.read_padded([query]), frames.read_padded(shortlist), scale)
        return np.asarray(scores[0])

    def recording_scores(query: int, shortlist: Sequence[int]) -> Float32:
        scores = sinkhorn_scores(patches.read_padded(shortlist), frames.read_padded([query]), scale)
        return np.asarray(scores[:, 0])

    directions = []
    for queries, candidates, scores_of in (
        (images, recordings, image_scores),
        (recordings, images, recording_scores),
    ):
        rows = np.empty((len(queries), len(candidates)))
        for query in progress_bar(range(len(queries)), "re-ranking", shown=progress):
            cosines = candidates @ queries[query]
            shortlist = np.argsort(-cosines, kind="stable")[:n_shortlist]
            scores = scores_of(query, shortlist.tolist()).astype(np.float64)
            rows[query] = cosines
            rows[query, shortlist] = 1 + cosines.max() + scores - scores.min()
        directions.append(rows)
    return directions[0], directions[1]
