"""From score time to seconds, by the tempo marks of the score.

A metronome mark or MusicXML's ``<sound tempo>`` counts as it is. A score without one takes the tempo of the
first word it opens with (Andante, Lebhaft, ...), and 120 quarters a minute when it has no such word either.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from partitura import score as ps
from partitura.utils.music import to_quarter_tempo

from fusili_mir.arrays import Float64
from fusili_mir.errors import InputError

__all__ = ["DEFAULT_QPM", "WrittenTempo", "read_written_tempo"]

DEFAULT_QPM = 120.0
_PLAUSIBLE_QPM = (10.0, 400.0)  # anything else in a file is a slip or a playback trick

_WORD_QPM = {
    "grave": 40.0,
    "largo": 50.0,
    "lento": 54.0,
    "langsam": 56.0,
    "lent": 56.0,
    "adagio": 60.0,
    "larghetto": 63.0,
    "ruhig": 69.0,
    "andante": 76.0,
    "andantino": 84.0,
    "mässig": 88.0,
    "mäßig": 88.0,
    "moderato": 96.0,
    "modéré": 96.0,
    "bewegt": 104.0,
    "allegretto": 108.0,
    "animato": 120.0,
    "lebhaft": 126.0,
    "allegro": 126.0,
    "schnell": 138.0,
    "vif": 138.0,
    "vivace": 144.0,
    "presto": 168.0,
}


@dataclass(frozen=True)
class WrittenTempo:
    """A tempo that stays the same from mark to mark.

    Parameters
    ----------
    quarters : tuple of float
        Where each mark stands, strictly increasing; second 0 is at the first.
    qpm : tuple of float
        Quarter notes a minute from each mark on; the first also holds before it.
    """

    quarters: tuple[float, ...]
    qpm: tuple[float, ...]

    def __post_init__(self) -> None:
        if not self.quarters or len(self.quarters) != len(self.qpm):
            raise InputError(
                f"{len(self.quarters)} places and {len(self.qpm)} tempos; expected one tempo for each place"
            )
        if not (np.all(np.isfinite(self.quarters)) and np.all(np.diff(self.quarters) > 0)):
            raise InputError(f"tempo marks must stand in increasing order; found quarters {self.quarters}")
        if not (np.all(np.isfinite(self.qpm)) and min(self.qpm) > 0):
            raise InputError(f"tempos must be positive quarters a minute; found {self.qpm}")

    def seconds(self, quarter: npt.ArrayLike) -> Float64:
        """Return the seconds of places in the score, any shape."""
        place = np.asarray(quarter, dtype=np.float64)
        start = np.array(self.quarters)
        spq = 60.0 / np.array(self.qpm)  # seconds per quarter
        start_sec = np.concatenate([[0.0], np.cumsum(np.diff(start) * spq[:-1])])
        mark = np.maximum(np.searchsorted(start, place, side="right") - 1, 0)
        return np.asarray(start_sec[mark] + (place - start[mark]) * spq[mark])


def read_written_tempo(
    score_data: ps.Score | ps.Part | list[ps.Part], default_qpm: float = DEFAULT_QPM
) -> WrittenTempo:
    """Read the tempo marks of all parts; where two stand at one place the upper part's counts.

    Parameters
    ----------
    score_data : partitura.score.Score, partitura.score.Part or list of Part
    default_qpm : float
        Quarter notes a minute where the score neither gives a number nor a known word.

    Returns
    -------
    WrittenTempo
        It starts at the first point of the score, so a pickup's first note is at second 0.
    """
    parts = [score_data] if isinstance(score_data, ps.Part) else list(score_data)
    parts = [part for part in parts if part.first_point is not None]
    if not parts:
        return WrittenTempo((0.0,), (default_qpm,))
    start = min(float(part.quarter_map(part.first_point.t)) for part in parts)
    marks: dict[float, float] = {}
    for part in parts:
        for mark in part.iter_all(ps.Tempo):
            qpm = float(to_quarter_tempo(mark.unit or "q", mark.bpm))
            if _PLAUSIBLE_QPM[0] <= qpm <= _PLAUSIBLE_QPM[1]:
                marks.setdefault(float(part.quarter_map(mark.start.t)), qpm)
    if start not in marks:
        marks[start] = _opening_qpm(parts) or (marks[min(marks)] if marks else default_qpm)
    places = sorted(marks)
    return WrittenTempo(tuple(places), tuple(marks[place] for place in places))


def _opening_qpm(parts: list[ps.Part]) -> float | None:
    for part in parts:
        opening = part.first_point.t
        marks = [
            *part.iter_all(ps.Direction, opening, opening + 1, include_subclasses=True),
            *part.iter_all(ps.Words, opening, opening + 1),
        ]
        for mark in marks:
            for word in re.findall(r"\w+", (getattr(mark, "raw_text", None) or mark.text or "").lower()):
                if word in _WORD_QPM:
                    return _WORD_QPM[word]
    return None
