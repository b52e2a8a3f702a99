"""The written tempo of a score: from score time to seconds.

Metronome marks and MusicXML's ``<sound tempo>`` are followed. A score that does not begin with one takes the
tempo of its opening word (Andante, Lebhaft, ...), or else of its first mark, or else 120 quarters per minute.
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
_PLAUSIBLE_QPM = (10.0, 400.0)  # any other number in a file is a mistake or a playback trick

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
    """A tempo that is constant from mark to mark.

    Parameters
    ----------
    quarters : tuple of float
        Place of each mark, strictly increasing; second 0 is at the first mark.
    qpm : tuple of float
        Quarter notes per minute from each mark on; the first value also applies before its mark.
    """

    quarters: tuple[float, ...]
    qpm: tuple[float, ...]

    def __post_init__(self) -> None:
        if not self.quarters or len(self.quarters) != len(self.qpm):
            raise InputError(
                f"{len(self.quarters)} places and {len(self.qpm)} tempos; expected one tempo per place"
            )
        if not (np.all(np.isfinite(self.quarters)) and np.all(np.diff(self.quarters) > 0)):
            raise InputError(
                f"tempo marks at the quarters {self.quarters}; expected strictly increasing places"
            )
        if not (np.all(np.isfinite(self.qpm)) and min(self.qpm) > 0):
            raise InputError(f"tempos of {self.qpm} quarters per minute; expected numbers above 0")

    def seconds(self, quarter: npt.ArrayLike) -> Float64:
        """Return the seconds of places in the score; arrays of any shape."""
        place = np.asarray(quarter, dtype=np.float64)
        start = np.array(self.quarters)
        spq = 60.0 / np.array(self.qpm)  # seconds per quarter
        start_sec = np.concatenate([[0.0], np.cumsum(np.diff(start) * spq[:-1])])
        mark = np.maximum(np.searchsorted(start, place, side="right") - 1, 0)
        return np.asarray(start_sec[mark] + (place - start[mark]) * spq[mark])


def read_written_tempo(
    score_data: ps.Score | ps.Part | list[ps.Part], default_qpm: float = DEFAULT_QPM
) -> WrittenTempo:
    """Read the tempo marks of all parts; of two marks at the same place, that of the upper part counts.

    Parameters
    ----------
    score_data : partitura.score.Score, partitura.score.Part or list of Part
    default_qpm : float
        Quarter notes per minute if the score has neither a number nor a known word.

    Returns
    -------
    WrittenTempo
        Second 0 is the first point of the score, so also the first note of a pickup.
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
