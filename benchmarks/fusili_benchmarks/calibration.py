"""Fitting probabilities and intervals, and measuring whether they hold on what they were not fitted to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np

from fusili_mir.arrays import Bool, Float64

__all__ = [
    "area_under_curve",
    "calibration_error",
    "false_alarms",
    "fit_logistic",
    "fit_quantile",
    "held_out",
    "reliability_table",
]

_DECAY = 1e-3  # of standardised weights, so that clues that say the same share one
_N_STEPS = 40


def area_under_curve(right: Bool, probability: Float64) -> float:
    """Return how often a right one is more probable than a wrong one."""
    _, rank = np.unique(probability, return_inverse=True)
    counts = np.bincount(rank)
    middle = np.cumsum(counts) - counts / 2
    n_right, n_wrong = np.count_nonzero(right), np.count_nonzero(~right)
    if not n_right or not n_wrong:
        return float("nan")
    return float((middle[rank][right].sum() - n_right**2 / 2) / (n_right * n_wrong))


def calibration_error(right: Bool, probability: Float64, n_bins: int = 10) -> float:
    """Return the mean difference between probability and share of right ones over bins of equal size."""
    bins = np.array_split(np.argsort(probability, kind="stable"), n_bins)
    return float(np.mean([abs(probability[each].mean() - right[each].mean()) for each in bins]))


def false_alarms(right: Bool, probability: Float64, recall: float = 0.95) -> float:
    """Return the share of wrong ones among those as probable as the given share of the right ones."""
    threshold = np.quantile(probability[right], 1 - recall)
    return float(np.mean(probability[~right] >= threshold))


def reliability_table(right: Bool, probability: Float64, edges: Sequence[float]) -> str:
    """Return a reliability diagram as a table: what was said, and what was so, between successive edges."""
    lines = ["| said | number | mean said | right |", "| --- | --- | --- | --- |"]
    for low, high in pairwise(edges):
        inside = (probability >= low) & (probability < high)
        if inside.any():
            said, found = 100 * probability[inside].mean(), 100 * right[inside].mean()
            name = f"{100 * low:.0f} to {100 * min(high, 1):.0f} %"
            lines.append(f"| {name} | {np.count_nonzero(inside)} | {said:.1f} % | {found:.1f} % |")
    return "\n".join(lines)


def fit_logistic(clues: Float64, right: Bool) -> Float64:
    """Fit a logistic regression by Newton's method [shape=(n_clues + 1,)]; the base comes last."""
    inputs, middle, spread = _standardised(clues)
    weights = np.zeros(inputs.shape[1])
    for _ in range(_N_STEPS):
        odds = np.clip(inputs @ weights, -30, 30)
        probability = 1 / (1 + np.exp(-odds))
        gradient = inputs.T @ (probability - right) / len(inputs) + _DECAY * weights
        slope = probability * (1 - probability)
        curvature = (inputs * slope[:, None]).T @ inputs / len(inputs) + _DECAY * np.eye(len(weights))
        weights -= np.linalg.solve(curvature, gradient)
    return _in_own_units(weights, middle, spread)


def fit_quantile(clues: Float64, values: Float64, share: float) -> Float64:
    """Fit a linear quantile regression by reweighted least squares [shape=(n_clues + 1,)]; the base comes last.

    The base is set so that exactly the given share of the values lies below.
    """
    inputs, middle, spread = _standardised(clues)
    weights = np.zeros(inputs.shape[1])
    weights[-1] = np.quantile(values, share)
    for _ in range(_N_STEPS):
        rest = values - inputs @ weights
        pull = np.where(rest > 0, share, 1 - share) / np.maximum(np.abs(rest), 0.02)
        curvature = (inputs * pull[:, None]).T @ inputs + _DECAY * len(inputs) * np.eye(len(weights))
        weights = np.linalg.solve(curvature, (inputs * pull[:, None]).T @ values)
    weights[-1] += np.quantile(values - inputs @ weights, share)
    return _in_own_units(weights, middle, spread)


def held_out(
    groups: Sequence[str],
    clues: Sequence[Float64],
    targets: Sequence[Float64],
    fit: Callable[[Float64, Float64], Float64],
) -> list[Float64]:
    """Return the weighted sum of the clues of each part, with weights that were fitted to other groups only."""
    sums: list[Float64] = [np.empty(0)] * len(groups)
    for group in sorted(set(groups)):
        others = [number for number, other in enumerate(groups) if other != group]
        weights = fit(
            np.concatenate([clues[n] for n in others]), np.concatenate([targets[n] for n in others])
        )
        for number, own in enumerate(groups):
            if own == group:
                sums[number] = clues[number] @ weights[:-1] + weights[-1]
    return sums


def _standardised(clues: Float64) -> tuple[Float64, Float64, Float64]:
    middle, spread = clues.mean(axis=0), clues.std(axis=0) + 1e-9
    return np.column_stack(((clues - middle) / spread, np.ones(len(clues)))), middle, spread


def _in_own_units(weights: Float64, middle: Float64, spread: Float64) -> Float64:
    own = weights[:-1] / spread
    return np.append(own, weights[-1] - own @ middle)
