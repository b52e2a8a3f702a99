"""How sure a result is: weights that turn clues into probabilities and intervals that hold.

The timing model takes its own law for granted, and the way that the path has found: where a passage is lost, it
is sure of every wrong note. Three regressions on what the decoder sees (`stop_clues`, `piece_clues`) mend that:

    right    log-odds that a stop begins within 0.1 s of its time
    margin   logarithm of the seconds by which it may be early or late, with a probability of 0.9
    piece    log-odds that the recording is of the score at all

`benchmarks/fit_decoder.py` fits them for a bundle, in whose manifest they stand.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from fusili_mir.arrays import Float64

__all__ = [
    "INTERVAL_PROBABILITY",
    "NEAR_SEC",
    "PIECE_BY_ORDER",
    "STOP_CLUES",
    "Certainty",
    "PieceWeights",
    "StopWeights",
    "log_odds",
    "weighted",
]

INTERVAL_PROBABILITY = 0.9
"""Probability that a time lies between `earliest_sec` and `latest_sec`."""
NEAR_SEC = 0.1
"""How near the truth a time is that counts as right."""

_LEAST = 1e-5  # what a probability is from 0 and 1, at least: as far as its log-odds are believed
_LEAST_MARGIN_SEC, _MOST_MARGIN_SEC = 0.005, 60.0  # half a step of an onset map; beyond a minute all is lost


@dataclass(frozen=True)
class StopWeights:
    """Weights of the clues to a stop; see `StopClues`, whose names they have."""

    own: float
    near: float
    around: float
    whole: float
    activation: float
    unsteady: float
    unsteady_near: float
    moved: float
    lasting: float
    spread: float
    base: float
    rival: float
    earlier: float
    later: float
    passed: float
    weakest: float
    doubtful: float


STOP_CLUES = tuple(each.name for each in fields(StopWeights) if each.name != "base")
"""Names of the clues to a stop, in the order of `StopClues.table`."""


@dataclass(frozen=True)
class PieceWeights:
    """Weights of the clues to a whole piece; see `PieceClues`, whose names they have."""

    order: float
    sure: float
    struck: float
    unsteady: float
    base: float


# `fit_decoder.py piece` prints the fit of the order alone: 16.3 and -5.1 with scores, 15.2 and -4.9 from images.
# The base is rounded in favour of the recording.
PIECE_BY_ORDER = PieceWeights(order=15.0, sure=0.0, struck=0.0, unsteady=0.0, base=-4.5)
"""Weights where nothing but the order of the sounds is known: one half at an order of 0.3."""


def weighted(clues: Float64, weights: StopWeights | PieceWeights) -> Float64:
    """Return the weighted sum of clues [shape=(..., n_clues)], plus the base [shape=(...)]."""
    factors = [getattr(weights, each.name) for each in fields(weights) if each.name != "base"]
    return np.asarray(clues @ np.array(factors) + weights.base)


@dataclass(frozen=True)
class Certainty:
    """Three regressions; see the head of the module.

    Attributes
    ----------
    right, margin : StopWeights
    piece : PieceWeights
    """

    right: StopWeights
    margin: StopWeights
    piece: PieceWeights = PIECE_BY_ORDER

    def probability(self, clues: Float64) -> Float64:
        """Return the probability that each stop begins within 0.1 s of its time.

        Parameters
        ----------
        clues : np.ndarray [shape=(n, n_clues)]
            See `StopClues.table`.

        Returns
        -------
        np.ndarray [shape=(n,)]
        """
        return _probability(weighted(clues, self.right))

    def margin_sec(self, clues: Float64) -> Float64:
        """Return by how much each stop may begin earlier or later, with a probability of 0.9 [shape=(n,)]."""
        most = np.log(_MOST_MARGIN_SEC)
        margin_sec = np.exp(np.minimum(weighted(clues, self.margin), most))
        return np.asarray(np.maximum(margin_sec, _LEAST_MARGIN_SEC))

    def of_notes(
        self, probability: Float64, margin_sec: Float64, activation: Float64
    ) -> tuple[Float64, Float64]:
        """Return the probabilities and margins of notes that are heard more or less clearly than their stop.

        Parameters
        ----------
        probability, margin_sec : np.ndarray [shape=(n,)]
            Those of the stops; what is certain stays so.
        activation : np.ndarray [shape=(n,)]
            Onset activation of each note minus that of its stop, in nats.

        Returns
        -------
        probability, margin_sec : np.ndarray [shape=(n,)]
        """
        moved = _probability(log_odds(probability) + self.right.activation * activation)
        wider = np.minimum(margin_sec * np.exp(self.margin.activation * activation), _MOST_MARGIN_SEC)
        settled = (probability >= 1.0) | (probability <= 0.0)
        return np.where(settled, probability, moved), np.where(settled, margin_sec, wider)


def log_odds(probability: Any) -> Float64:
    """Return the log-odds of probabilities, which are never quite 0 or 1."""
    inside = np.clip(np.asarray(probability, np.float64), _LEAST, 1 - _LEAST)
    return np.asarray(np.log(inside / (1 - inside)))


def _probability(odds: Float64) -> Float64:
    return np.asarray(1 / (1 + np.exp(-np.clip(odds, -50.0, 50.0))))
