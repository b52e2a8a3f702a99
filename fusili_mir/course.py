"""The course: the places that a warping path runs along, in the order in which they are played.

A stop is a place where something begins to sound. With page images alone every column is a stop, in reading
order. With a symbolic score, the stops are its onsets: each looks at the columns that hold its note heads, a
repeated measure comes as often as it is played, and stretches where nothing begins are no stops.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fusili_mir.boxes import BoxArray
from fusili_mir.errors import InputError
from fusili_mir.geometry import Float64, Int64
from fusili_mir.played import PlayedScore
from fusili_mir.score_axis import ScoreAxis

__all__ = ["Course", "PlayingCourse", "playing_course", "reading_course"]


@dataclass(frozen=True)
class Course:
    """Stops in playing order.

    Attributes
    ----------
    columns : np.ndarray of int [shape=(n,)]
        The columns of the score axis that the stops look at, stop after stop.
    first : np.ndarray of int [shape=(P + 1,)]
        Stop p looks at ``columns[first[p]:first[p + 1]]``: at least one.
    start : np.ndarray of float [shape=(P + 1,)]
        When each stop begins in the score, and, at the end, when the last one ends: beats, or columns where
        only images are known. Never falls.
    of_columns : bool
        Whether every column is a stop, for want of knowing where something begins.
    spread : float
        How far durations in a recording depart from those of the course, at a steady tempo: the standard
        deviation of the logarithm of their ratio.
    """

    columns: Int64
    first: Int64
    start: Float64
    of_columns: bool = False
    spread: float = 0.12

    def __post_init__(self) -> None:
        if len(self.first) < 2 or len(self.start) != len(self.first):
            raise InputError(
                f"a course of {len(self.first) - 1} stops with {len(self.start)} times; expected at least one "
                "stop, and a time more than stops"
            )
        if self.first[0] != 0 or self.first[-1] != len(self.columns) or np.any(np.diff(self.first) < 1):
            raise InputError("a course has a stop without columns")
        if np.any(np.diff(self.start) < 0):
            raise InputError("the stops of a course are out of playing order")

    def __len__(self) -> int:
        return len(self.first) - 1


def reading_course(axis: ScoreAxis, columns: Int64 | None = None) -> Course:
    """Make every column a stop.

    Parameters
    ----------
    axis : ScoreAxis
    columns : np.ndarray of int, optional
        The columns in the order in which they are played; by default, all of them in reading order.

    Returns
    -------
    Course
        Its times are counted in columns.
    """
    columns = np.arange(len(axis)) if columns is None else columns
    steps = np.arange(len(columns) + 1)
    return Course(columns.astype(np.int64), steps.astype(np.int64), steps.astype(np.float64), of_columns=True)


@dataclass(frozen=True)
class PlayingCourse:
    """The onsets of a symbolic score as a course, and where each of its notes is on it.

    Attributes
    ----------
    course : Course
        Its times are beats.
    stop_of_note : np.ndarray of int [shape=(n_notes,)]
        The stop at which each note begins; -1 for notes without a head on the pages.
    begins_stop : np.ndarray of bool [shape=(n_notes,)]
        Whether the stop begins with the note: where onsets fall into the same columns they share a stop, and
        only the first of them begins with it.
    """

    course: Course
    stop_of_note: Int64
    begins_stop: npt.NDArray[np.bool_]


def playing_course(played: PlayedScore, axis: ScoreAxis) -> PlayingCourse:
    """Make every onset of a score a stop; grace notes are onsets of their own.

    Parameters
    ----------
    played : PlayedScore
    axis : ScoreAxis
        Of the same pages.

    Returns
    -------
    PlayingCourse
    """
    notes = played.notes
    middle = np.nan_to_num((notes["x0"].astype(np.float64) + notes["x1"]) / 2)
    column = np.where(notes["page"] >= 0, axis.index_in_system(notes["system"], middle), -1)
    onset = _onsets(notes)
    stop_of_note = np.full(len(notes), -1, dtype=np.int64)
    begins_stop = np.zeros(len(notes), dtype=bool)
    stops: list[Int64] = []
    start: list[float] = []
    for group in np.split(np.arange(len(notes)), np.flatnonzero(np.diff(onset)) + 1):
        shown = group[column[group] >= 0]
        if not len(shown):
            continue
        looked_at = np.unique(column[shown])
        if not stops or not np.array_equal(stops[-1], looked_at):
            stops.append(looked_at)
            start.append(float(notes["onset_beat"][group[0]]))
            begins_stop[shown] = True
        stop_of_note[shown] = len(stops) - 1
    if not stops:
        raise InputError("none of the notes has a place on the pages")
    end = float((notes["onset_beat"] + notes["duration_beat"]).max())
    first = np.concatenate(([0], np.cumsum([len(columns) for columns in stops])))
    course = Course(np.concatenate(stops), first.astype(np.int64), np.append(start, max(end, start[-1])))
    return PlayingCourse(course, stop_of_note, begins_stop)


def _onsets(notes: BoxArray) -> Int64:
    """Count the onsets of notes in playing order; grace notes sound together if they stand in one column."""
    apart = np.diff(notes["onset_beat"]) > 1e-6
    apart |= np.diff(notes["is_grace"])
    both_grace = notes["is_grace"][1:] & notes["is_grace"][:-1]
    apart |= both_grace & (np.diff(notes["x0"]) > (notes["x1"] - notes["x0"])[:-1] / 2)
    return np.concatenate(([0], np.cumsum(apart)))
