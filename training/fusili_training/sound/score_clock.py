"""The way from score time to performed time, read off the performed notes themselves.

Between the onsets that were played time runs evenly; before the first and after the last it runs on as it did on
average. So the clock is right for any performance, drawn at random or played by a person.
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
    """A map from quarters to seconds that never runs back.

    Attributes
    ----------
    quarters, onsets_sec : np.ndarray [shape=(n,)]
        Score time, increasing, and when it was reached.
    sec_per_quarter : float
        The pace outside of them.
    """

    quarters: Float64
    onsets_sec: Float64
    sec_per_quarter: float

    def seconds(self, quarter: npt.ArrayLike) -> Float64:
        """Return the seconds of places in the score, any shape."""
        place = np.asarray(quarter, dtype=np.float64)
        inside = np.interp(place, self.quarters, self.onsets_sec)
        before = np.minimum(place - self.quarters[0], 0.0) * self.sec_per_quarter
        after = np.maximum(place - self.quarters[-1], 0.0) * self.sec_per_quarter
        return np.asarray(inside + before + after)


def read_score_clock(
    notes: ScoreNoteArray, performed: PerformedArray, default_sec_per_quarter: float = 0.5
) -> ScoreClock:
    """Read the clock off a performance.

    Parameters
    ----------
    notes : np.ndarray [shape=(n,), dtype=SCORE_NOTE_DTYPE]
        At least one that is no grace note.
    performed : np.ndarray [shape=(n,), dtype=PERFORMED_DTYPE]
        The same notes, played.
    default_sec_per_quarter : float
        The pace when all notes begin together.

    Returns
    -------
    ScoreClock
        At each onset of the score the mean of the onsets that were played there.
    """
    beats = notes["grace"] == 0
    if not beats.any():
        raise InputError("a performance of grace notes only has no clock; expected at least one other note")
    quarters, place = np.unique(notes["onset_quarter"][beats], return_inverse=True)
    place = place.reshape(-1)
    mean_sec = np.bincount(place, performed["onset_sec"][beats]) / np.bincount(place)
    onsets_sec = np.maximum.accumulate(mean_sec)
    pace = default_sec_per_quarter
    if len(quarters) > 1:
        pace = (onsets_sec[-1] - onsets_sec[0]) / (quarters[-1] - quarters[0])
    return ScoreClock(quarters, onsets_sec, max(float(pace), _SHORTEST_SEC_PER_QUARTER))
