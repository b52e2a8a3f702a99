"""Global retrieval: where the partner of a query stands in the order of all candidates.

Candidates that score exactly like the partner, such as a repeated line of music, stand before or after it by
chance: what is counted is the average over all orders of them, so that a model that cannot tell anything apart
gets what guessing gets.

Where music repeats, nothing tells which of two equal segments was meant. Ranks can be told which candidates are
alike; all that are like the partner then are right, and the first of them counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from fusili_mir.arrays import Float32, Float64, Int64
from fusili_mir.errors import InputError
from fusili_training.evaluation.bootstrap import Interval, ratio_interval

__all__ = ["Ranks", "rank_by_product", "rank_matrix", "retrieval_interval"]

_BLOCK_NUMBERS = 2**23


@dataclass(frozen=True, eq=False)
class Ranks:
    """Where the right candidates stand.

    Attributes
    ----------
    better : np.ndarray of int [shape=(n,)]
        Candidates before the best right one of each query.
    tied : np.ndarray of int [shape=(n,)]
        Candidates that score like it, with itself.
    right : np.ndarray of int [shape=(n,)]
        How many of these are right.
    """

    better: Int64
    tied: Int64
    right: Int64

    @classmethod
    def join(cls, parts: Iterable[Ranks]) -> Ranks:
        """Put the ranks of some queries after those of others."""
        listed = list(parts)
        return cls(
            np.concatenate([part.better for part in listed]),
            np.concatenate([part.tied for part in listed]),
            np.concatenate([part.right for part in listed]),
        )

    @classmethod
    def guess(cls, groups: Int64) -> Ranks:
        """Return the ranks of scores that are all equal; `groups` as in `rank_matrix`."""
        _, group, sizes = np.unique(groups, return_inverse=True, return_counts=True)
        n = len(groups)
        return cls(np.zeros(n, np.int64), np.full(n, n), sizes[group])

    def recall(self, k: int = 1) -> Float64:
        """Return, for each query, how probable it is that a right one is among the first k."""
        return np.array(
            [
                _first_right(tied, right)[: max(0, k - better)].sum()
                for better, tied, right in zip(self.better, self.tied, self.right, strict=True)
            ]
        )

    def reciprocal(self) -> Float64:
        """Return, for each query, the mean of 1 / rank of the first right one."""
        return np.array(
            [
                (first / np.arange(better + 1, better + 1 + len(first))).sum()
                for better, tied, right in zip(self.better, self.tied, self.right, strict=True)
                for first in [_first_right(tied, right)]
            ]
        )


@lru_cache(maxsize=1024)
def _first_right(n: int, n_right: int) -> Float64:
    """Return how probable each place is for the first right one [shape=(n - n_right + 1,)] in a random order."""
    left = n - np.arange(n - n_right + 1)  # candidates that are left at each place
    none_before = np.cumprod(np.concatenate([[1.0], 1 - n_right / left[:-1]]))
    return np.asarray(none_before * n_right / left)


def rank_matrix(
    scores: Float32 | Float64, partners: Int64 | None = None, groups: Int64 | None = None
) -> Ranks:
    """Rank the columns of each row.

    Parameters
    ----------
    scores : np.ndarray [shape=(queries, candidates)]
        The higher, the better.
    partners : np.ndarray of int [shape=(queries,)], optional
        The right candidate of each query; by default those of the same number.
    groups : np.ndarray of int [shape=(candidates,)], optional
        Candidates of one number are alike; by default none are.

    Returns
    -------
    Ranks
    """
    partners = np.arange(len(scores)) if partners is None else partners
    groups = np.arange(scores.shape[-1]) if groups is None else groups
    if scores.ndim != 2 or len(partners) != len(scores) or np.any(partners >= scores.shape[1]):
        raise InputError(
            f"scores of shape {scores.shape} for {len(partners)} queries; expected (queries, all)"
        )
    if np.isnan(scores).any():
        raise InputError("scores that are not numbers; expected finite embeddings")
    is_right = groups[partners][:, None] == groups
    best = np.where(is_right, scores, -np.inf).max(axis=1, keepdims=True)
    is_tied = scores == best
    return Ranks(
        (scores > best).sum(axis=1, dtype=np.int64),
        is_tied.sum(axis=1, dtype=np.int64),
        (is_tied & is_right).sum(axis=1, dtype=np.int64),
    )


def rank_by_product(queries: Float32, candidates: Float32, groups: Int64 | None = None) -> Ranks:
    """Rank candidates [shape=(n, d)] for queries [shape=(n, d)] by their products, block by block.

    `groups` as in `rank_matrix`.
    """
    size = max(1, _BLOCK_NUMBERS // max(1, len(candidates)))
    return Ranks.join(
        rank_matrix(
            queries[first : first + size] @ candidates.T,
            np.arange(first, min(first + size, len(queries))),
            groups,
        )
        for first in range(0, len(queries), size)
    )


def retrieval_interval(values: Float64, pieces: Sequence[str]) -> Interval:
    """Average a value over queries, with an interval over the pieces [length n] that they come from."""
    _, piece = np.unique(np.asarray(pieces), return_inverse=True)
    return ratio_interval(np.bincount(piece, weights=values), np.bincount(piece))
