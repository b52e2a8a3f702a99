"""How far the probabilities of the timing model can be trusted.

The model takes its own law for granted, and the way that the path has found: where a passage is lost, it is sure
of every wrong note. A logistic regression on three numbers turns its posteriors into probabilities that hold: the
posterior of the stop, the mean of those around it, and how unsteadily they follow each other. It was fitted to
the 27 human performances of `benchmarks/human_piano.py`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fusili_mir.arrays import Float64

__all__ = ["Certainty"]

_N_AROUND = 10  # stops to either side
_LEAST = 1e-5  # what a posterior is from 0 and 1, at least
_MOST_UNSTEADY = 2.0


@dataclass(frozen=True)
class Certainty:
    """Weights of a logistic regression: the log-odds that a stop begins within 0.1 s of its time.

    Attributes
    ----------
    own, around : float
        Weight of the log-odds of its posterior, and of the mean of the posteriors around.
    unsteady : float
        Weight of the mean of ``|log(duration / duration at the local tempo)|`` around.
    base : float
    """

    own: float
    around: float
    unsteady: float
    base: float

    def probability(self, posterior: Float64, seconds: Float64, expected_sec: Float64) -> Float64:
        """Return the probability that each stop begins within 0.1 s of its time.

        Parameters
        ----------
        posterior : np.ndarray [shape=(n,)]
            That probability under the timing model.
        seconds, expected_sec : np.ndarray [shape=(n,)]
            When the stops begin, and how long they last at the local tempo.

        Returns
        -------
        np.ndarray [shape=(n,)]
        """
        lasting_sec = np.append(np.diff(seconds), expected_sec[-1:])
        unsteady = np.abs(np.log(np.maximum(lasting_sec, 1e-3) / np.maximum(expected_sec, 1e-3)))
        odds = self.own * _log_odds(posterior) + self.around * _log_odds(_mean_around(posterior))
        odds += self.unsteady * _mean_around(np.minimum(unsteady, _MOST_UNSTEADY)) + self.base
        return np.asarray(1 / (1 + np.exp(-odds)))


def _log_odds(probability: Float64) -> Float64:
    inside = np.clip(probability, _LEAST, 1 - _LEAST)
    return np.asarray(np.log(inside / (1 - inside)))


def _mean_around(values: Float64) -> Float64:
    number = np.arange(len(values))
    summed = np.append(0.0, np.cumsum(values))
    first, end = np.maximum(number - _N_AROUND, 0), np.minimum(number + _N_AROUND + 1, len(values))
    return np.asarray((summed[end] - summed[first]) / (end - first))
