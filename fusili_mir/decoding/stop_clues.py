"""Clues to how sure the times of stops are: what the decoder sees of each, beside its time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fusili_mir.arrays import Float64
from fusili_mir.decoding.certainty import log_odds
from fusili_mir.decoding.onset_evidence import NearbyOnsets

__all__ = ["StopClues"]

# Stops to either side, chosen on the 27 human performances; means over 40 add nothing there.
_NEAR, _AROUND = 3, 10
_MOST_UNSTEADY = 2.0  # a duration that is 7 times too long is no worse than one that is 8 times too long
_LEAST_RIVAL, _MOST_RIVAL = -10.0, 50.0  # nats: beyond that, nothing else was ever thought of
_USUAL_MOVE_SEC, _LEAST_SPREAD_SEC, _SHORTEST_SEC = 0.03, 0.01, 0.02  # added before logarithms: about a cell


@dataclass(frozen=True)
class StopClues:
    """What is seen of some successive stops; arrays of shape (n,).

    Attributes
    ----------
    posterior : np.ndarray
        Probability under the timing model that each begins within 0.1 s of its time.
    spread_sec : np.ndarray
        Standard deviation of its beginning around its time, under the same model.
    activation : np.ndarray
        How likely its pitches begin there, in nats.
    seconds, expected_sec : np.ndarray
        When it begins, and how long it lasts at the local tempo.
    arrival_sec : np.ndarray
        When the path from frame to stop arrives at it.
    rival : np.ndarray
        How much likelier its time is than any that is more than 0.1 s away, in nats.
    nearby : NearbyOnsets
        What begins before and after it.
    """

    posterior: Float64
    spread_sec: Float64
    activation: Float64
    seconds: Float64
    expected_sec: Float64
    arrival_sec: Float64
    rival: Float64
    nearby: NearbyOnsets

    def table(self) -> Float64:
        """Return the clues in the order of `STOP_CLUES` [shape=(n, n_clues)].

        `own`, `near`, `around` and `whole` are log-odds of posteriors: of the stop itself, and means over 3 and
        over 10 stops to either side, and over all. `unsteady` is how far the logarithm of the duration before or
        after it is from the local tempo, `unsteady_near` the mean over 3 stops to either side. `moved` is the
        logarithm of its distance from the path, `lasting` that of its duration, `spread` that of its spread.
        `passed` is the strongest onset of anything between it and the stops beside it, `weakest` the weakest
        onset of its own and theirs: a chord that is rolled, an ornament, a note that is missing or not read.
        """
        odds = log_odds(self.posterior)
        lasting_sec = np.append(np.diff(self.seconds), self.expected_sec[-1:])
        ratio = np.log(np.maximum(lasting_sec, 1e-3) / np.maximum(self.expected_sec, 1e-3))
        unsteady = np.minimum(np.abs(ratio), _MOST_UNSTEADY)
        moved_sec = np.abs(self.seconds - self.arrival_sec)
        passed = self.nearby.passed
        return np.stack(
            (
                odds,
                _mean_around(odds, _NEAR),
                _mean_around(odds, _AROUND),
                np.full(len(odds), odds.mean() if len(odds) else 0.0),
                self.activation,
                np.maximum(unsteady, np.append(0.0, unsteady[:-1])[: len(unsteady)]),
                _mean_around(unsteady, _NEAR),
                np.log(moved_sec + _USUAL_MOVE_SEC),
                np.log(np.maximum(self.expected_sec, _SHORTEST_SEC)),
                _mean_around(np.log(self.spread_sec + _LEAST_SPREAD_SEC), _AROUND),
                np.clip(self.rival, _LEAST_RIVAL, _MOST_RIVAL),
                self.nearby.earlier,
                self.nearby.later,
                np.maximum(passed, np.append(0.0, passed[:-1])[: len(passed)]),
                _least_beside(self.activation),
                self.nearby.doubtful,
            ),
            axis=1,
        )


def _mean_around(values: Float64, reach: int) -> Float64:
    number = np.arange(len(values))
    summed = np.append(0.0, np.cumsum(values))
    first, end = np.maximum(number - reach, 0), np.minimum(number + reach + 1, len(values))
    return np.asarray((summed[end] - summed[first]) / (end - first))


def _least_beside(values: Float64) -> Float64:
    """Return the least of each value and its two neighbours."""
    before, after = np.append(values[:1], values[:-1]), np.append(values[1:], values[-1:])
    return np.minimum(values, np.minimum(before, after))
