"""The task of global retrieval on a dataset.

Strophes and repeats give segments with exactly the same notes, and nothing says which of them was meant. Where
the notes are known, all figures are therefore given a second time, with such segments counted as one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import islice
from typing import Literal, get_args

import numpy as np

from fusili_mir.arrays import Float32, Int64
from fusili_mir.errors import InputError
from fusili_mir.model.bundle import Bundle
from fusili_mir.model.encoder import Encoder
from fusili_mir.progress import progress_bar
from fusili_training.evaluation.global_retrieval import (
    Ranks,
    rank_by_product,
    rank_matrix,
    retrieval_interval,
)
from fusili_training.evaluation.local_store import LocalStore
from fusili_training.evaluation.pair_encoder import encode_pairs
from fusili_training.evaluation.report import Measurement
from fusili_training.evaluation.sinkhorn_ranking import compare_all_pairs, require_torch, rerank_shortlists
from fusili_training.evaluation.sources import PairSource
from fusili_training.truth import TruthArray

__all__ = [
    "RANKINGS",
    "REPEATS_AS_ONE",
    "Ranking",
    "RetrievalResult",
    "measure_retrieval",
    "needs_torch",
    "notes_in_order",
    "paper_ranking",
]

Ranking = Literal["pooled", "summed", "sinkhorn", "reranked"]
RANKINGS: tuple[Ranking, ...] = get_args(Ranking)
"""Rank by the cosine of the global embeddings, by the sum of all local cosines, by the Sinkhorn similarity of the
local embeddings, or by the first and then, for a shortlist, by the third."""
REPEATS_AS_ONE = ", repeats as one"
"""Added to the names of metrics for which every segment with the notes of the right one is right."""

_DIRECTIONS = ("I2A", "A2I")
_RankAlike = Callable[[Int64], tuple[Ranks, Ranks]]


@dataclass(frozen=True, eq=False)
class RetrievalResult:
    """The measurements, and the ranks of the partners by ranking and direction."""

    measurements: tuple[Measurement, ...]
    n_pairs: int
    ranks: dict[tuple[str, str], Ranks]


@dataclass(frozen=True, eq=False)
class _Collection:
    """What is kept in memory of n pairs.

    Attributes
    ----------
    images, recordings, patch_sums, frame_sums : np.ndarray [shape=(n, d)]
        Global embeddings, and sums of local embeddings.
    pieces : tuple of str
    groups : np.ndarray of int [shape=(n,)] or None
        Equal for pairs with the same notes; None if the notes are not known.
    """

    images: Float32
    recordings: Float32
    patch_sums: Float32
    frame_sums: Float32
    pieces: tuple[str, ...]
    groups: Int64 | None


def needs_torch(rankings: Sequence[Ranking]) -> bool:
    """Say whether one of the rankings uses the Sinkhorn similarity."""
    return any(ranking in ("sinkhorn", "reranked") for ranking in rankings)


def paper_ranking(bundle: Bundle) -> Ranking:
    """Return the paper's ranking: summed cosines for models trained with the local loss alone, else pooled."""
    alpha = bundle.manifest.recipe.get("loss", {}).get("alpha")
    return "summed" if alpha == 1 else "pooled"


def measure_retrieval(
    encoder: Encoder,
    source: PairSource,
    rankings: Sequence[Ranking],
    one_per_piece: bool = False,
    n_shortlist: int = 20,
    progress: bool = False,
) -> RetrievalResult:
    """Measure R@1 and MRR in both directions, and with repeats as one where the notes are known.

    Parameters
    ----------
    encoder : Encoder
    source : PairSource
    rankings : sequence of Ranking
    one_per_piece : bool
        Whether to use only the first segment of each piece.
    n_shortlist : int
        Length of the shortlist of "reranked".
    progress : bool
        Whether to show bars on a terminal.

    Returns
    -------
    RetrievalResult
    """
    needs_local = needs_torch(rankings)
    if needs_local:
        require_torch()
    with ExitStack() as stack:
        stores = (
            (stack.enter_context(LocalStore()), stack.enter_context(LocalStore())) if needs_local else None
        )
        collected = _collect(encoder, source, one_per_piece, stores, progress)
        pieces, alone = collected.pieces, np.arange(len(collected.pieces))
        ranks: dict[tuple[str, str], Ranks] = {}
        measurements: list[Measurement] = []
        for ranking in rankings:
            rank = _prepare(ranking, collected, stores, encoder.bundle.manifest.scale, n_shortlist, progress)
            for direction, found in zip(_DIRECTIONS, rank(alone), strict=True):
                ranks[ranking, direction] = found
                measurements += _measurements(ranking, direction, found, alone, pieces)
            if collected.groups is not None:
                for direction, found in zip(_DIRECTIONS, rank(collected.groups), strict=True):
                    measurements += _measurements(
                        ranking, direction, found, collected.groups, pieces, REPEATS_AS_ONE
                    )
    return RetrievalResult(tuple(measurements), len(pieces), ranks)


def notes_in_order(truth: TruthArray) -> tuple[int, ...]:
    """Return the pitches of a segment from left to right, those of a chord from low to high."""
    order = np.lexsort((truth["pitch"], np.round(truth["x0"])))
    return tuple(truth["pitch"][order].tolist())


def _collect(
    encoder: Encoder,
    source: PairSource,
    one_per_piece: bool,
    stores: tuple[LocalStore, LocalStore] | None,
    progress: bool,
) -> _Collection:
    rows: list[tuple[Float32, Float32, Float32, Float32]] = []
    pieces: list[str] = []
    groups: list[int] = []
    group_of: dict[tuple[int, ...], int] = {}
    for piece in progress_bar(source.pieces, "encoding", shown=progress):
        pairs = source.read_piece(piece)
        for pair in encode_pairs(encoder, islice(pairs, 1) if one_per_piece else pairs):
            sums = pair.patches.sum(axis=0), pair.frames.sum(axis=0)
            rows.append((pair.image_embedding, pair.audio_embedding, *sums))
            pieces.append(piece)
            groups.append(group_of.setdefault(notes_in_order(pair.truth), len(group_of)))
            if stores is not None:
                stores[0].append(pair.patches)
                stores[1].append(pair.frames)
    if len(rows) < 2:
        raise InputError(f"{source.name}: {len(rows)} pairs to choose from; retrieval needs at least 2")
    images, recordings, patch_sums, frame_sums = (np.stack(column) for column in zip(*rows, strict=True))
    known = np.array(groups) if source.has_truth else None
    return _Collection(images, recordings, patch_sums, frame_sums, tuple(pieces), known)


def _prepare(
    ranking: Ranking,
    collected: _Collection,
    stores: tuple[LocalStore, LocalStore] | None,
    scale: float,
    n_shortlist: int,
    progress: bool,
) -> _RankAlike:
    """Compare the pairs as a ranking needs; the result takes groups and returns the ranks in both directions."""
    images, recordings = collected.images, collected.recordings
    if ranking == "summed":
        # The sum of all products of patches and frames is the product of their sums.
        images, recordings = collected.patch_sums, collected.frame_sums
    if ranking in ("pooled", "summed"):
        return lambda groups: (
            rank_by_product(images, recordings, groups),
            rank_by_product(recordings, images, groups),
        )
    assert stores is not None  # noqa: S101
    if ranking == "sinkhorn":
        similarities = compare_all_pairs(*stores, scale, progress)
        return lambda groups: (
            rank_matrix(similarities, groups=groups),
            rank_matrix(similarities.T, groups=groups),
        )
    by_image, by_recording = rerank_shortlists(images, recordings, *stores, scale, n_shortlist, progress)
    return lambda groups: (rank_matrix(by_image, groups=groups), rank_matrix(by_recording, groups=groups))


def _measurements(
    ranking: str, direction: str, ranks: Ranks, groups: Int64, pieces: Sequence[str], suffix: str = ""
) -> list[Measurement]:
    chance = Ranks.guess(groups)
    return [
        Measurement(
            "retrieval",
            ranking,
            direction,
            f"{metric}{suffix}",
            retrieval_interval(values, pieces),
            len(pieces),
            {"chance": float(guessed.mean())},
        )
        for metric, values, guessed in (
            ("R@1", ranks.recall(1), chance.recall(1)),
            ("MRR", ranks.reciprocal(), chance.reciprocal()),
        )
    ]
