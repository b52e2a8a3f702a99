"""Global retrieval: the rank of a query's partner among all candidates.

Candidates that are exactly as similar as the partner, such as a repeated line of music, come before or after it
by chance. Figures are therefore averages over all orders of such ties: a model that cannot distinguish anything
gets the figures of guessing.

Where music repeats, nothing says which of two equal segments was meant. Candidates can therefore be grouped:
every candidate in the partner's group is right, and the first of them counts.
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
    """The ranks of the right candidates of n queries.

    Attributes
    ----------
    better : np.ndarray of int [shape=(n,)]
        Number of candidates more similar than the best right one.
    tied : np.ndarray of int [shape=(n,)]
        Number of candidates exactly as similar as it, itself included.
    right : np.ndarray of int [shape=(n,)]
        Number of right candidates among these.
    """

    better: Int64
    tied: Int64
    right: Int64

    @classmethod
    def join(cls, parts: Iterable[Ranks]) -> Ranks:
        """Concatenate the ranks of several lists of queries."""
        listed = list(parts)
        return cls(
            np.concatenate([part.better for part in listed]),
            np.concatenate([part.tied for part in listed]),
            np.concatenate([part.right for part in listed]),
        )

    @classmethod
    def guess(cls, groups: Int64) -> Ranks:
        """Return the ranks that equal similarities give; `groups` as in `rank_matrix`."""
        _, group, sizes = np.unique(groups, return_inverse=True, return_counts=True)
        n = len(groups)
        return cls(np.zeros(n, np.int64), np.full(n, n), sizes[group])

    def recall(self, k: int = 1) -> Float64:
        """Return for each query the probability that a right candidate is among the first k."""
        return np.array(
            [
                _first_right(tied, right)[: max(0, k - better)].sum()
                for better, tied, right in zip(self.better, self.tied, self.right, strict=True)
            ]
        )

    def reciprocal(self) -> Float64:
        """Return for each query the expected 1 / rank of the first right candidate."""
        return np.array(
            [
                (first / np.arange(better + 1, better + 1 + len(first))).sum()
                for better, tied, right in zip(self.better, self.tied, self.right, strict=True)
                for first in [_first_right(tied, right)]
            ]
        )


@lru_cache(maxsize=1024)
def _first_right(n: int, n_right: int) -> Float64:
    """Return the probability of each place of the first right one in random order [shape=(n - n_right + 1,)]."""
    left = n - np.arange(n - n_right + 1)  # candidates left at each place
    none_before = np.cumprod(np.concatenate([[1.0], 1 - n_right / left[:-1]]))
    return np.asarray(none_before * n_right / left)


def rank_matrix(
    similarities: Float32 | Float64, partners: Int64 | None = None, groups: Int64 | None = None
) -> Ranks:
    """Rank the columns of each row.

    Parameters
    ----------
    similarities : np.ndarray [shape=(queries, candidates)]
        Similarity of each query with each candidate.
    partners : np.ndarray of int [shape=(queries,)], optional
        The right candidate of each query; by default the one with the same number.
    groups : np.ndarray of int [shape=(candidates,)], optional
        Group of each candidate; all candidates in the partner's group are right. By default each is alone.

    Returns
    -------
    Ranks
    """
    partners = np.arange(len(similarities)) if partners is None else partners
    groups = np.arange(similarities.shape[-1]) if groups is None else groups
    if (
        similarities.ndim != 2
        or len(partners) != len(similarities)
        or np.any(partners >= similarities.shape[1])
    ):
        raise InputError(
            f"similarities of shape {similarities.shape} for {len(partners)} queries; "
            "expected (queries, candidates)"
        )
    if np.isnan(similarities).any():
        raise InputError("similarities that are not numbers; expected finite embeddings")
    is_right = groups[partners][:, None] == groups
    best = np.where(is_right, similarities, -np.inf).max(axis=1, keepdims=True)
    is_tied = similarities == best
    return Ranks(
        (similarities > best).sum(axis=1, dtype=np.int64),
        is_tied.sum(axis=1, dtype=np.int64),
        (is_tied & is_right).sum(axis=1, dtype=np.int64),
    )


def rank_by_product(queries: Float32, candidates: Float32, groups: Int64 | None = None) -> Ranks:
    """Rank candidates [shape=(n, d)] by their inner products with queries [shape=(n, d)], block by block.

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
    """Average a value over n queries, with an interval over the pieces that they come from [length n]."""
    _, piece = np.unique(np.asarray(pieces), return_inverse=True)
    return ratio_interval(np.bincount(piece, weights=values), np.bincount(piece))
