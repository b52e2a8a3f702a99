"""Global retrieval: where the partner of a query stands in the order of all candidates.

Candidates that score exactly like the partner, such as a repeated line of music, stand before or after it by
chance: what is counted is the average over all orders of them, so that a model that cannot tell anything apart
gets what guessing gets.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from fusili_mir.encoded import Float32
from fusili_mir.errors import InputError
from fusili_mir.geometry import Float64, Int64
from fusili_training.evaluation.bootstrap import Interval, ratio_interval

__all__ = ["Ranks", "rank_by_product", "rank_matrix", "retrieval_interval"]

_BLOCK_NUMBERS = 2**23


@dataclass(frozen=True, eq=False)
class Ranks:
    """Where partners stand.

    Attributes
    ----------
    better : np.ndarray of int [shape=(n,)]
        Candidates before the partner of each query.
    tied : np.ndarray of int [shape=(n,)]
        Candidates that score like the partner, with itself.
    """

    better: Int64
    tied: Int64

    @classmethod
    def join(cls, parts: Iterable[Ranks]) -> Ranks:
        """Put the ranks of some queries after those of others."""
        listed = list(parts)
        return cls(
            np.concatenate([part.better for part in listed]), np.concatenate([part.tied for part in listed])
        )

    def recall(self, k: int = 1) -> Float64:
        """Return, for each query, how probable it is that the partner is among the first k."""
        return np.clip((k - self.better) / self.tied, 0.0, 1.0)

    def reciprocal(self) -> Float64:
        """Return, for each query, the mean of 1 / rank."""
        harmonic = np.concatenate(
            [[0.0], np.cumsum(1 / np.arange(1, int((self.better + self.tied).max(initial=0)) + 1))]
        )
        return np.asarray((harmonic[self.better + self.tied] - harmonic[self.better]) / self.tied)


def rank_matrix(scores: Float32, partners: Int64 | None = None) -> Ranks:
    """Rank the columns of each row.

    Parameters
    ----------
    scores : np.ndarray [shape=(queries, candidates)]
        The higher, the better.
    partners : np.ndarray of int [shape=(queries,)], optional
        The right candidate of each query; by default those of the same number.

    Returns
    -------
    Ranks
    """
    partners = np.arange(len(scores)) if partners is None else partners
    if scores.ndim != 2 or len(partners) != len(scores) or np.any(partners >= scores.shape[1]):
        raise InputError(
            f"scores of shape {scores.shape} for {len(partners)} queries; expected (queries, all)"
        )
    if np.isnan(scores).any():
        raise InputError("scores that are not numbers; expected finite embeddings")
    own = scores[np.arange(len(scores)), partners][:, None]
    return Ranks((scores > own).sum(axis=1, dtype=np.int64), (scores == own).sum(axis=1, dtype=np.int64))


def rank_by_product(queries: Float32, candidates: Float32) -> Ranks:
    """Rank candidates [shape=(n, d)] for queries [shape=(n, d)] by their products, block by block."""
    size = max(1, _BLOCK_NUMBERS // max(1, len(candidates)))
    return Ranks.join(
        rank_matrix(
            queries[first : first + size] @ candidates.T,
            np.arange(first, min(first + size, len(queries))),
        )
        for first in range(0, len(queries), size)
    )


def retrieval_interval(values: Float64, pieces: Sequence[str]) -> Interval:
    """Average a value over queries, with an interval over the pieces [length n] that they come from."""
    _, piece = np.unique(np.asarray(pieces), return_inverse=True)
    return ratio_interval(np.bincount(piece, weights=values), np.bincount(piece))
