"""The task of global retrieval on a dataset."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import islice
from typing import Literal, get_args

import numpy as np

from fusili_mir.bundle import Bundle
from fusili_mir.encoded import Float32
from fusili_mir.encoder import Encoder
from fusili_mir.errors import InputError
from fusili_mir.progress import progress_bar
from fusili_training.evaluation.baselines import chance_mrr, chance_recall
from fusili_training.evaluation.global_retrieval import Ranks, rank_by_product, retrieval_interval
from fusili_training.evaluation.local_store import LocalStore
from fusili_training.evaluation.pair_encoder import encode_pairs
from fusili_training.evaluation.report import Measurement
from fusili_training.evaluation.sinkhorn_ranking import rank_by_sinkhorn, rerank_shortlists
from fusili_training.evaluation.sources import PairSource

__all__ = ["RANKINGS", "Ranking", "RetrievalResult", "measure_retrieval", "paper_ranking"]

Ranking = Literal["pooled", "summed", "sinkhorn", "reranked"]
RANKINGS: tuple[Ranking, ...] = get_args(Ranking)
"""By the cosine of the global embeddings, the sum of all local cosines, the Sinkhorn score of the local ones, or
by the first and then, for a shortlist, by the third."""


@dataclass(frozen=True, eq=False)
class RetrievalResult:
    """The numbers, and the ranks that they are from, by ranking and direction."""

    measurements: tuple[Measurement, ...]
    n_pairs: int
    ranks: dict[tuple[str, str], Ranks]


@dataclass(frozen=True, eq=False)
class _Collection:
    """All that is kept of n pairs: global embeddings and sums of local ones [shape=(n, d)], and their pieces."""

    images: Float32
    recordings: Float32
    patch_sums: Float32
    frame_sums: Float32
    pieces: tuple[str, ...]


def paper_ranking(bundle: Bundle) -> Ranking:
    """Return how the paper ranks: by summed cosines for models trained with the local loss alone."""
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
    """Measure R@1 and MRR in both directions.

    Parameters
    ----------
    encoder : Encoder
    source : PairSource
    rankings : sequence of Ranking
    one_per_piece : bool
        Whether only the first segment of each piece takes part.
    n_shortlist : int
        For "reranked".
    progress : bool
        Whether to show bars on a terminal.

    Returns
    -------
    RetrievalResult
    """
    with ExitStack() as stack:
        needs_local = any(ranking in ("sinkhorn", "reranked") for ranking in rankings)
        stores = (
            (stack.enter_context(LocalStore()), stack.enter_context(LocalStore())) if needs_local else None
        )
        collected = _collect(encoder, source, one_per_piece, stores, progress)
        ranks: dict[tuple[str, str], Ranks] = {}
        for ranking in rankings:
            i2a, a2i = _rank(ranking, collected, stores, encoder.bundle.manifest.scale, n_shortlist, progress)
            ranks[ranking, "I2A"], ranks[ranking, "A2I"] = i2a, a2i
    measurements = [
        each
        for (ranking, direction), found in ranks.items()
        for each in _measurements(ranking, direction, found, collected.pieces)
    ]
    return RetrievalResult(tuple(measurements), len(collected.pieces), ranks)


def _collect(
    encoder: Encoder,
    source: PairSource,
    one_per_piece: bool,
    stores: tuple[LocalStore, LocalStore] | None,
    progress: bool,
) -> _Collection:
    rows: list[tuple[Float32, Float32, Float32, Float32]] = []
    pieces: list[str] = []
    for piece in progress_bar(source.pieces, "encoding", shown=progress):
        pairs = source.read_piece(piece)
        for pair in encode_pairs(encoder, islice(pairs, 1) if one_per_piece else pairs):
            sums = pair.patches.sum(axis=0), pair.frames.sum(axis=0)
            rows.append((pair.image_embedding, pair.audio_embedding, *sums))
            pieces.append(piece)
            if stores is not None:
                stores[0].append(pair.patches)
                stores[1].append(pair.frames)
    if len(rows) < 2:
        raise InputError(f"{source.name}: {len(rows)} pairs to choose from; retrieval needs at least 2")
    images, recordings, patch_sums, frame_sums = (np.stack(column) for column in zip(*rows, strict=True))
    return _Collection(images, recordings, patch_sums, frame_sums, tuple(pieces))


def _rank(
    ranking: Ranking,
    collected: _Collection,
    stores: tuple[LocalStore, LocalStore] | None,
    scale: float,
    n_shortlist: int,
    progress: bool,
) -> tuple[Ranks, Ranks]:
    """Return the ranks from image to audio, and from audio to image."""
    images, recordings = collected.images, collected.recordings
    if ranking == "summed":
        # A sum over patches of a sum over frames of products is one product of two sums.
        images, recordings = collected.patch_sums, collected.frame_sums
    if ranking in ("pooled", "summed"):
        return rank_by_product(images, recordings), rank_by_product(recordings, images)
    assert stores is not None  # noqa: S101
    if ranking == "sinkhorn":
        return rank_by_sinkhorn(*stores, scale, progress)
    return rerank_shortlists(images, recordings, *stores, scale, n_shortlist, progress)


def _measurements(ranking: str, direction: str, ranks: Ranks, pieces: Sequence[str]) -> list[Measurement]:
    n = len(pieces)
    return [
        Measurement(
            "retrieval",
            ranking,
            direction,
            "R@1",
            retrieval_interval(ranks.recall(1), pieces),
            n,
            {"chance": chance_recall(n)},
        ),
        Measurement(
            "retrieval",
            ranking,
            direction,
            "MRR",
            retrieval_interval(ranks.reciprocal(), pieces),
            n,
            {"chance": chance_mrr(n)},
        ),
    ]
