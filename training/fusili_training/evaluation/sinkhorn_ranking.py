"""Similarities by Sinkhorn to rank by: of all pairs, or of the shortlist that pooled cosines give.

This is the only part of evaluation that needs torch; torch is imported when the first similarity is computed.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fusili_mir.arrays import Float32, Float64
from fusili_mir.errors import MissingExtraError
from fusili_mir.progress import progress_bar
from fusili_training.evaluation.local_store import LocalStore, PaddedTokens

__all__ = ["compare_all_pairs", "require_torch", "rerank_shortlists", "sinkhorn_similarities"]

_BLOCK = 32  # images or recordings read at once


def require_torch() -> None:
    """Raise `MissingExtraError` if torch cannot be imported."""
    try:
        import torch  # noqa: F401
    except ImportError as error:
        raise MissingExtraError(
            "the rankings sinkhorn and reranked need torch; install it with `pip install 'fusili-mir[train]'`, "
            "or rank by pooled or summed cosines"
        ) from error


def sinkhorn_similarities(patches: PaddedTokens, frames: PaddedTokens, scale: float) -> Float32:
    """Compare every image with every recording [shape=(B1, B2)]."""
    import torch

    from fusili_training.losses.denormals import flushed_denormals
    from fusili_training.losses.sinkhorn import fusili_similarity

    with torch.no_grad(), flushed_denormals():
        similarities = fusili_similarity(
            torch.from_numpy(patches.tokens),
            torch.from_numpy(frames.tokens),
            torch.tensor(scale),
            torch.from_numpy(patches.mask),
            torch.from_numpy(frames.mask),
        )
    return np.asarray(similarities.numpy(), dtype=np.float32)


def compare_all_pairs(
    patches: LocalStore, frames: LocalStore, scale: float, progress: bool = False
) -> Float32:
    """Compare each of n images with each of n recordings; the time grows with the square of n.

    Parameters
    ----------
    patches, frames : LocalStore
        Local embeddings of n segments.
    scale : float
        Scale of the bundle's cosines.
    progress : bool
        Whether to show a bar on a terminal.

    Returns
    -------
    np.ndarray [shape=(n, n)]
        Image by recording.
    """
    blocks = [range(first, min(first + _BLOCK, len(patches))) for first in range(0, len(patches), _BLOCK)]
    similarities = np.empty((len(patches), len(frames)), dtype=np.float32)
    for images in progress_bar(blocks, "comparing pairs", shown=progress):
        shown = patches.read_padded(images)
        for recordings in blocks:
            heard = frames.read_padded(recordings)
            similarities[np.ix_(images, recordings)] = sinkhorn_similarities(shown, heard, scale)
    return similarities


def rerank_shortlists(
    images: Float32,
    recordings: Float32,
    patches: LocalStore,
    frames: LocalStore,
    scale: float,
    n_shortlist: int,
    progress: bool = False,
) -> tuple[Float64, Float64]:
    """Rank by pooled cosines, then put the first `n_shortlist` in order by Sinkhorn; they stay ahead of the rest.

    Parameters
    ----------
    images, recordings : np.ndarray [shape=(n, d)]
        Global embeddings.
    patches, frames : LocalStore
        Local embeddings of the same segments.
    scale : float
        Scale of the bundle's cosines.
    n_shortlist : int
    progress : bool
        Whether to show a bar on a terminal.

    Returns
    -------
    tuple of np.ndarray [shape=(n, n)]
        Rank values, query by candidate: image to audio, and audio to image. Only their order within a row has a
        meaning.
    """

    def of_image(query: int, shortlist: Sequence[int]) -> Float32:
        found = sinkhorn_similarities(patches.read_padded([query]), frames.read_padded(shortlist), scale)
        return np.asarray(found[0])

    def of_recording(query: int, shortlist: Sequence[int]) -> Float32:
        found = sinkhorn_similarities(patches.read_padded(shortlist), frames.read_padded([query]), scale)
        return np.asarray(found[:, 0])

    directions = []
    for queries, candidates, compare in (
        (images, recordings, of_image),
        (recordings, images, of_recording),
    ):
        rows = np.empty((len(queries), len(candidates)))
        for query in progress_bar(range(len(queries)), "re-ranking", shown=progress):
            cosines = candidates @ queries[query]
            shortlist = np.argsort(-cosines, kind="stable")[:n_shortlist]
            similarities = compare(query, shortlist.tolist()).astype(np.float64)
            rows[query] = cosines
            rows[query, shortlist] = 1 + cosines.max() + similarities - similarities.min()
        directions.append(rows)
    return directions[0], directions[1]
