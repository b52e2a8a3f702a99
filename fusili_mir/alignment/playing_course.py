"""The course of a symbolic score: its onsets in playing order, and where each note is among them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fusili_mir.alignment.played import PlayedScore
from fusili_mir.arrays import Bool, Int64, Table
from fusili_mir.decoding.course import Course
from fusili_mir.errors import InputError
from fusili_mir.pages.score_axis import ScoreAxis
from fusili_mir.short_repr import short_repr

__all__ = ["PlayingCourse", "playing_course"]


@short_repr
@dataclass(frozen=True)
class PlayingCourse:
    """The onsets of a symbolic score as a course, and where each of its notes is on it.

    Attributes
    ----------
    course : Course
        Course whose times are beats.
    stop_of_note : np.ndarray of int [shape=(n_notes,)]
        The stop at which each note begins; -1 for notes without a head on the pages.
    begins_stop : np.ndarray of bool [shape=(n_notes,)]
        Whether the stop begins with the note: onsets that fall into the same columns share a stop, and only the
        first of them begins it.
    """

    course: Course
    stop_of_note: Int64
    begins_stop: Bool


def playing_course(played: PlayedScore, axis: ScoreAxis) -> PlayingCourse:
    """Make every onset of a score a stop; grace notes are onsets of their own.

    Parameters
    ----------
    played : PlayedScore
    axis : ScoreAxis
        Score axis of the same pages.

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
        raise InputError("none of the notes has a place on the pages; expected at least one note head")
    end = float((notes["onset_beat"] + notes["duration_beat"]).max())
    first = np.concatenate(([0], np.cumsum([len(columns) for columns in stops])))
    course = Course(np.concatenate(stops), first.astype(np.int64), np.append(start, max(end, start[-1])))
    return PlayingCourse(course, stop_of_note, begins_stop)


def _onsets(notes: Table) -> Int64:
    """Return the index of the onset of each note; grace notes in one column share an onset."""
    apart = np.diff(notes["onset_beat"]) > 1e-6
    apart |= np.diff(notes["is_grace"])
    both_grace = notes["is_grace"][1:] & notes["is_grace"][:-1]
    apart |= both_grace & (np.diff(notes["x0"]) > (notes["x1"] - notes["x0"])[:-1] / 2)
    return np.concatenate(([0], np.cumsum(apart)))
