"""The tempo of measures, also of those that a recording holds in part only.

A recording that begins or ends in the middle of a measure says nothing about the length of that measure. With a
symbolic score, the onsets that are heard in it tell its tempo; on images it is unknown.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fusili_mir.alignment.passed_measures import measures_at
from fusili_mir.alignment.results import Alignment
from fusili_mir.arrays import Bool, Float64, Int64
from fusili_mir.short_repr import short_repr

__all__ = ["MeasureTempo", "measure_tempo"]

_SAME_BEAT = 1e-6
_SAME_SEC = 1e-6
_EDGE_SEC = 0.25  # music so near to either end of a recording goes on beyond it
_SAME_PX = 0.01


@short_repr
@dataclass(frozen=True)
class MeasureTempo:
    """The tempo of the rows of `Alignment.measures`; NaN where it is unknown.

    Attributes
    ----------
    beats_per_minute : np.ndarray [shape=(n,)]
        NaN where only images are known.
    measures_per_minute : np.ndarray [shape=(n,)]
    """

    beats_per_minute: Float64
    measures_per_minute: Float64


def measure_tempo(alignment: Alignment) -> MeasureTempo:
    """Find the tempo of each measure, each time it is played.

    Parameters
    ----------
    alignment : Alignment

    Returns
    -------
    MeasureTempo
    """
    measures = alignment.measures
    lasting_sec = (measures["end_sec"] - measures["start_sec"]).astype(np.float64)
    if alignment.played is None:
        lasting_sec[_is_cut_on_images(alignment)] = np.nan
        a_minute = _over(60.0, lasting_sec)
        return MeasureTempo(np.full(len(measures), np.nan), a_minute)
    n_beats = (measures["end_beat"] - measures["start_beat"]).astype(np.float64)
    heard_beats = n_beats.copy()
    for row in np.flatnonzero(_is_cut(alignment)).tolist():
        heard_beats[row], lasting_sec[row] = _heard_part(alignment, row)
    beats = heard_beats * _over(60.0, lasting_sec)
    return MeasureTempo(beats, beats * _over(1.0, n_beats))


def _over(value: float, other: Float64) -> Float64:
    """Divide, where something is positive; NaN elsewhere."""
    return np.asarray(np.divide(value, other, where=other > 0, out=np.full(len(other), np.nan)))


def _onsets(alignment: Alignment) -> tuple[Float64, Float64]:
    """Return the beats and seconds of the onsets that are heard, in order; grace notes have none of their own."""
    notes = alignment.notes
    kept = np.isfinite(notes["onset_sec"]) & ~notes["is_grace"]
    beats, seconds = notes["onset_beat"][kept].astype(np.float64), notes["onset_sec"][kept]
    order = np.lexsort((seconds, beats))
    beats, first = np.unique(beats[order], return_index=True)
    return beats, seconds[order][first]


def _is_cut(alignment: Alignment) -> Bool:
    """Mark the measures of a symbolic score of which the recording lacks the beginning or the end."""
    measures, grid = alignment.measures, alignment.grid
    beats, _ = _onsets(alignment)
    begins = np.array([np.any(np.abs(beats - beat) < _SAME_BEAT) for beat in measures["start_beat"]], bool)
    lacks_start = ~begins & (measures["start_sec"] <= grid.audio_start_sec + _SAME_SEC)
    return np.asarray(lacks_start | (measures["end_sec"] >= grid.end_sec - _SAME_SEC))


def _heard_part(alignment: Alignment, row: int) -> tuple[float, float]:
    """Return the beats and the seconds from the first to the last onset that is heard of a measure."""
    measure = alignment.measures[row]
    beats, seconds = _onsets(alignment)
    # The onset that ends it counts, too.
    inside = (beats > measure["start_beat"] - _SAME_BEAT) & (beats < measure["end_beat"] + _SAME_BEAT)
    if np.count_nonzero(inside) < 2:
        return np.nan, np.nan
    return float(np.ptp(beats[inside])), float(seconds[inside][-1] - seconds[inside][0])


def _is_cut_on_images(alignment: Alignment) -> Bool:
    """Mark the first and the last measure on images if the recording lacks their beginning or end."""
    is_cut = np.zeros(len(alignment.measures), bool)
    moments, grid = alignment.moments, alignment.grid
    music = np.flatnonzero(~alignment.path.is_filler)
    if not len(is_cut) or moments is None or not len(moments.seconds) or not len(music):
        return is_cut
    system, x0, measure = _places(alignment)
    heard = _first_and_last_heard(alignment, system, x0)
    if heard is None:
        return is_cut
    first, last = heard
    begins_sec = float(grid.centre(music[0])) - grid.audio_start_sec
    if begins_sec < _EDGE_SEC and first > 0:
        is_cut[0] = measure[first - 1] == measure[first] and x0[first - 1] < x0[first]
    if grid.end_sec - float(grid.centre(music[-1])) < _EDGE_SEC and last + 1 < len(measure):
        is_cut[-1] = True  # something would have followed
    return is_cut


def _places(alignment: Alignment) -> tuple[Int64, Float64, Int64]:
    """Return the system, the left edge and the measure of each place along the course."""
    course = alignment.similarity.course
    column = alignment.axis.columns[course.columns[course.first[:-1]]]
    system = column["system"].astype(np.int64)
    x0, x1 = column["x0"].astype(np.float64), column["x1"].astype(np.float64)
    return system, x0 - (x1 - x0) / 2, measures_at(alignment.pages.measures, system, (x0 + x1) / 2)


def _first_and_last_heard(alignment: Alignment, system: Int64, x0: Float64) -> tuple[int, int] | None:
    """Return the first and the last place along the course that begins to sound in the recording."""
    moments, stop = alignment.moments, alignment.path.stop
    assert moments is not None  # noqa: S101
    found = []
    for end, near in ((0, int(stop[0])), (-1, int(stop[-1]))):
        same = np.flatnonzero((system == moments.system[end]) & (np.abs(x0 - moments.x0[end]) < _SAME_PX))
        if not len(same):
            return None
        found.append(int(same[np.abs(same - near).argmin()]))
    return found[0], found[1]
