"""How often the intervals of a bundle hold: of notes, of measures, and of frames on images."""

from __future__ import annotations

import numpy as np

from fusili_benchmarks.performances import Performance, first_onsets
from fusili_mir.alignment.results import Alignment
from fusili_mir.arrays import Bool, Float64, Table

__all__ = ["frames_hold", "measures_hold", "notes_hold"]

_SAME_BEAT = 1e-4
_BACK_SEC = -0.05  # heads of a system that sound in another order are repeated, and left out


def _holds(rows: Table, true_sec: Float64) -> Bool:
    return np.asarray((rows["earliest_sec"] <= true_sec) & (true_sec <= rows["latest_sec"]))


def _true_seconds(alignment: Alignment, performance: Performance) -> Float64:
    true = performance.true
    ids = [str(note) for note in alignment.notes["id"]]
    return np.array([true.get(each, true.get(f"{each}-1", np.nan)) for each in ids])


def notes_hold(alignment: Alignment, performance: Performance) -> Bool:
    """Say of each note whose time is known whether its interval holds it."""
    true_sec = _true_seconds(alignment, performance)
    known = np.isfinite(true_sec) & np.isfinite(alignment.notes["onset_sec"])
    return _holds(alignment.notes[known], true_sec[known])


def measures_hold(alignment: Alignment, performance: Performance) -> Bool:
    """Say of each measure that begins with notes whether its interval holds the middle one of their times."""
    true_sec, notes = _true_seconds(alignment, performance), alignment.notes
    found = []
    for measure in alignment.measures[np.isfinite(alignment.measures["start_sec"])]:
        begins = np.isfinite(true_sec) & ~notes["is_grace"]
        begins &= np.abs(notes["onset_beat"] - measure["start_beat"]) < _SAME_BEAT
        if begins.any():
            found.append(bool(_holds(measure, np.median(true_sec[begins]))))
    return np.array(found, dtype=bool)


def frames_hold(alignment: Alignment, performance: Performance) -> Bool:
    """Say of frames on images whether their intervals hold the time of their place.

    The truth between two heads of a system is taken to move evenly from one to the other, as frames do.
    """
    boxes, true_sec = first_onsets(performance.pages, performance.true)
    middle = ((boxes["x0"].astype(np.float64) + boxes["x1"]) / 2).round()
    frames = alignment.frames[~alignment.path.is_filler]
    found = [np.empty(0, dtype=bool)]
    for system in np.unique(boxes["system"]):
        own = boxes["system"] == system
        places, number = np.unique(middle[own], return_inverse=True)
        seconds = np.array([np.median(true_sec[own][number == each]) for each in range(len(places))])
        inside = (frames["system"] == system) & (frames["x"] >= places[0]) & (frames["x"] <= places[-1])
        if len(places) > 1 and np.all(np.diff(seconds) > _BACK_SEC):
            found.append(_holds(frames[inside], np.interp(frames["x"][inside], places, seconds)))
    return np.concatenate(found)
