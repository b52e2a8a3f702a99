"""The map from score time to performed time, derived from the performed notes.

Between played onsets it is linear; before the first and after the last onset it continues at the average pace. So
it fits any performance, random or human.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fusili_mir.arrays import Float64
from fusili_mir.errors import InputError
from fusili_training.sound.notes import PerformedArray, ScoreNoteArray

__all__ = ["ScoreClock", "read_score_clock"]


_SHORTEST_SEC_PER_QUARTER = 0.01


@dataclass(frozen=True, eq=False)
class ScoreClock:
    """A non-decreasing map from quarters to seconds.

    Attributes
    ----------
    quarters, onsets_sec : np.ndarray [shape=(n,)]
        Places in the score, strictly increasing, and the seconds at which they were reached.
    sec_per_quarter : float
        Pace before the first and after the last place.
    """

    quarters: Float64
    onsets_sec: Float64
    sec_per_quarter: float

    def seconds(self, quarter: npt.ArrayLike) -> Float64:
        """Return the seconds of places in the score; arrays of any shape."""
        place = np.asarray(quarter, dtype=np.float64)
        inside = np.interp(place, self.quarters, self.onsets_sec)
        before = np.minimum(place - self.quarters[0], 0.0) * self.sec_per_quarter
        after = np.maximum(place - self.quarters[-1], 0.0) * self.sec_per_quarter
        return np.asarray(inside + before + after)


def read_score_clock(
    notes: ScoreNoteArray, performed: PerformedArray, default_sec_per_quarter: float = 0.5
) -> ScoreClock:
    """Derive the clock of a performance.

    Parameters
    ----------
    notes : np.ndarray [shape=(n,), dtype=SCORE_NOTE_DTYPE]
        Notes of the score; at least one must not be a grace note.
    performed : np.ndarray [shape=(n,), dtype=PERFORMED_DTYPE]
        The same notes as played.
    default_sec_per_quarter : float
        Pace if all notes begin together.

    Returns
    -------
    ScoreClock
        Each onset of the score has the mean time of the notes played there.
    """
    beats = notes["grace"] == 0
    if not beats.any():
        raise InputError("the performance has grace notes only; expected at least one other note")
    quarters, place = np.unique(notes["onset_quarter"][beats], return_inverse=True)
    place = place.reshape(-1)
    mean_sec = np.bincount(place, performed["onset_sec"][beats]) / np.bincount(place)
    onsets_sec = np.maximum.accumulate(mean_sec)
    pace = default_sec_per_quarter
    if len(quarters) > 1:
        pace = (onsets_sec[-1] - onsets_sec[0]) / (quarters[-1] - quarters[0])
    return ScoreClock(quarters, onsets_sec, max(float(pace), _SHORTEST_SEC_PER_QUARTER))
