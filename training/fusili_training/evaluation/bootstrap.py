"""Confidence intervals: how far a number would vary with other pieces of the same kind.

Pieces are drawn with replacement, as many as the dataset has. The frames and segments of one piece are not
independent of each other: drawing those instead would make the intervals too narrow.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fusili_mir.arrays import Float64, Int64
from fusili_mir.errors import InputError

__all__ = ["Interval", "bootstrap", "ratio_interval", "weighted_median"]

_N_DRAWS = 1000
_LEVEL = 0.95


@dataclass(frozen=True)
class Interval:
    """A number and its 95 % confidence interval."""

    value: float
    low: float
    high: float


def bootstrap(
    n_pieces: int, statistic: Callable[[Int64], float], n_draws: int = _N_DRAWS, seed: int = 0
) -> Interval:
    """Put an interval around a statistic.

    Parameters
    ----------
    n_pieces : int
    statistic : callable
        Takes how often each piece was drawn [shape=(n_pieces,)] and returns the number.
    n_draws : int
    seed : int

    Returns
    -------
    Interval
        The value for all pieces, between percentiles of the draws. Draws without a value (NaN) are left out.
    """
    if n_pieces < 1:
        raise InputError("no pieces to measure; expected at least one")
    value = float(statistic(np.ones(n_pieces, dtype=np.int64)))
    rng = np.random.default_rng(seed)
    draws = rng.multinomial(n_pieces, np.full(n_pieces, 1 / n_pieces), size=n_draws)
    found = np.array([statistic(draw) for draw in draws])
    found = found[~np.isnan(found)]
    if not len(found):
        return Interval(value, value, value)
    tail = (1 - _LEVEL) / 2
    # A percentile is one of the draws, never a mean of two: a median over pieces may be infinite.
    low, high = np.quantile(found, [tail, 1 - tail], method="inverted_cdf")
    return Interval(value, float(low), float(high))


def ratio_interval(
    numerators: npt.ArrayLike,
    denominators: npt.ArrayLike,
    transform: Callable[[float], float] = float,
    seed: int = 0,
) -> Interval:
    """Put an interval around a ratio of sums over pieces, such as right frames to all frames.

    Parameters
    ----------
    numerators, denominators : array_like [shape=(n_pieces,)]
    transform : callable
        Applied to the ratio, such as `math.exp`.
    seed : int

    Returns
    -------
    Interval
        All three numbers are NaN if the denominators are 0.
    """
    above, below = np.asarray(numerators, np.float64), np.asarray(denominators, np.float64)

    def ratio(draw: Int64) -> float:
        total = float(draw @ below)
        return transform(float(draw @ above) / total) if total else np.nan

    return bootstrap(len(above), ratio, seed=seed)


def weighted_median(groups: Sequence[Float64]) -> Callable[[Int64], float]:
    """Return a statistic for `bootstrap`: the median of all values of the drawn pieces.

    Parameters
    ----------
    groups : sequence of np.ndarray [shape=(n,)]
        The values of each piece.
    """
    values = np.concatenate(groups)
    order = np.argsort(values, kind="stable")
    piece = np.repeat(np.arange(len(groups)), [len(group) for group in groups])[order]
    values = values[order]

    def median(draw: Int64) -> float:
        reached = np.cumsum(draw[piece])
        if not len(reached) or reached[-1] == 0:
            return np.nan
        middle = np.searchsorted(reached, [(reached[-1] + 1) // 2, reached[-1] // 2 + 1])
        return float(values[middle].mean())

    return median
