"""When the stops of a course are played."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fusili_mir.arrays import Bool, Float64

__all__ = ["StopTimes"]


@dataclass(frozen=True)
class StopTimes:
    """When the stops of a course are played.

    Attributes
    ----------
    onset_sec : np.ndarray [shape=(P,)]
        Onsets within the recording; NaN for stops before the first or after the last one that was heard.
    end_sec : float
        End of the last stop that was heard.
    confidence : np.ndarray [shape=(P,)]
        Probability that each begins within 0.1 s of its time; 0 for stops that were left out.
    margin_sec : np.ndarray [shape=(P,)]
        By how much each may begin earlier or later, with a probability of `INTERVAL_PROBABILITY`; NaN for stops
        without an onset.
    activation : np.ndarray [shape=(P,)]
        How strongly its pitches are struck there, in nats; 0 where that is not known.
    """

    onset_sec: Float64
    end_sec: float
    confidence: Float64
    margin_sec: Float64
    activation: Float64

    @property
    def is_heard(self) -> Bool:
        """Whether each stop lies within what was heard [shape=(P,)]."""
        return np.isfinite(self.onset_sec)
