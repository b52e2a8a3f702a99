"""Where on the pages the music is in each frame: a place that moves smoothly from onset to onset.

Between two onsets in a system the place moves in a straight line from one to the other; before a line break it
moves to the end of the system. Measures in which nothing begins are entered at their bar line.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fusili_mir.alignment.intervals import INTERVAL_FIELDS, put_interval
from fusili_mir.alignment.note_places import NotePlaces
from fusili_mir.alignment.played import PlayedScore
from fusili_mir.alignment.tempo_map import TempoMap
from fusili_mir.arrays import Float64, Int32, Table
from fusili_mir.decoding.course import Course
from fusili_mir.decoding.stop_times import StopTimes
from fusili_mir.decoding.warping_path import WarpingPath
from fusili_mir.geometry import FrameGrid
from fusili_mir.pages.score_axis import ScoreAxis

__all__ = ["FRAME_DTYPE", "frames_of_notes", "frames_of_places"]

_FIELDS: list[tuple[str, Any]] = [
    ("onset_sec", "f8"),
    ("page", "i4"),
    ("system", "i4"),
    ("x", "f4"),
    ("y", "f4"),
    ("similarity", "f4"),
    ("confidence", "f4"),
    *INTERVAL_FIELDS,
]
FRAME_DTYPE = np.dtype(_FIELDS)
"""One audio frame: when it begins within the recording, the place on the page that sounds at its middle, the
similarity of the two, and the confidence in the place: 0 where something other than the score is heard. The place
is reached between `earliest_sec` and `latest_sec`, with about the probability `INTERVAL_PROBABILITY`; where
something else is heard, these are the ends of the recording."""


def frames_of_places(
    path: WarpingPath,
    places: NotePlaces,
    times: StopTimes,
    course: Course,
    axis: ScoreAxis,
    grid: FrameGrid,
) -> Table:
    """Locate each frame between the places that begin before and after it, if only images are known.

    Parameters
    ----------
    path : WarpingPath
        Path along the places.
    places : NotePlaces
    times : StopTimes
        Times at which the places begin.
    course : Course
        Course of the columns that contain the places, one column per stop.
    axis : ScoreAxis
    grid : FrameGrid

    Returns
    -------
    np.ndarray of `FRAME_DTYPE` [shape=(M,)]
    """
    position = places.position(times, grid.centre(np.arange(len(grid))))
    stop = np.minimum(position.astype(np.int64), len(course) - 1)
    column = axis.columns[course.columns[course.first[stop]]]
    frames = _frames(path, grid)
    frames["page"], frames["system"] = column["page"], column["system"]
    frames["x"] = column["x0"] + (position - stop) * (column["x1"] - column["x0"])
    frames["y"] = (column["y0"] + column["y1"]) / 2
    return frames


def frames_of_notes(
    path: WarpingPath, played: PlayedScore, tempo: TempoMap, axis: ScoreAxis, grid: FrameGrid
) -> Table:
    """Locate each frame between the onsets before and after it.

    Parameters
    ----------
    path : WarpingPath
    played : PlayedScore
    tempo : TempoMap
        Map between beats and seconds.
    axis : ScoreAxis
    grid : FrameGrid

    Returns
    -------
    np.ndarray of `FRAME_DTYPE` [shape=(M,)]
    """
    beat, system, x = _anchors(played)
    end_beat = max(float((played.notes["onset_beat"] + played.notes["duration_beat"]).max()), beat[-1] + 1e-6)
    goes_on = np.append((np.diff(system) == 0) & (np.diff(x) >= 0), False)
    towards = np.where(goes_on, np.append(x[1:], x[-1]), np.maximum(_measure_ends(played, beat), x))

    now = np.clip(tempo.to_beats(grid.centre(np.arange(len(grid)))), beat[0], end_beat)
    anchor = np.searchsorted(beat, now, side="right") - 1
    share = (now - beat[anchor]) / np.diff(beat, append=end_beat)[anchor]

    frames = _frames(path, grid)
    frames["system"] = system[anchor]
    frames["x"] = x[anchor] + share * (towards[anchor] - x[anchor])
    column = axis.index_in_system(frames["system"], frames["x"])
    frames["page"], _, frames["y"] = axis.centre(column)
    return frames


def _frames(path: WarpingPath, grid: FrameGrid) -> Table:
    frames = np.zeros(len(grid), dtype=FRAME_DTYPE)
    frames["onset_sec"] = grid.within(grid.start_sec + np.arange(len(grid)) * grid.frame_sec)
    frames["similarity"] = path.similarity
    frames["confidence"] = path.confidence
    put_interval(frames, grid.centre(np.arange(len(grid))), path.margin_sec, grid)
    return frames


def _anchors(played: PlayedScore) -> tuple[Float64, Int32, Float64]:
    """Return the beats at which the place on the page is known, with system and x, in playing order."""
    notes = played.notes[(played.notes["page"] >= 0) & ~played.notes["is_grace"]]
    if not len(notes):
        notes = played.notes[played.notes["page"] >= 0]
    measures = played.measures
    beat = np.concatenate((notes["onset_beat"], measures["start_beat"])).round(6)
    system = np.concatenate((notes["system"], measures["system"]))
    middle = (notes["x0"].astype(np.float64) + notes["x1"]) / 2
    x = np.concatenate((middle, measures["x0"].astype(np.float64)))
    # At each beat the leftmost note counts; the bar line only where no note begins.
    is_bar_line = np.repeat([0, 1], [len(notes), len(measures)])
    order = np.lexsort((x, is_bar_line, beat))
    beat, first = np.unique(beat[order], return_index=True)
    return beat, system[order][first], x[order][first]


def _measure_ends(played: PlayedScore, beat: Float64) -> Float64:
    """Return the x of the right bar line of the measure that contains each beat."""
    measure = np.searchsorted(played.measures["start_beat"].round(6), beat, side="right") - 1
    return np.asarray(played.measures["x1"][np.maximum(measure, 0)], dtype=np.float64)
