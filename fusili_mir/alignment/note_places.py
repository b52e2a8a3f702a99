"""Where on page images something may begin to sound, for want of a score that says so.

A column that sounds like nothing in the recording is paper, a bar line, a clef; columns side by side that sound
alike are one note head or chord. What is left are places to stop at, as the onsets of a score are.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from fusili_mir.alignment.position_maps import PlaceMoments
from fusili_mir.arrays import Bool, Float64, Int64
from fusili_mir.decoding.course import Course
from fusili_mir.decoding.similarity import CourseSimilarity
from fusili_mir.decoding.stop_times import StopTimes
from fusili_mir.pages.score_axis import ScoreAxis

__all__ = ["NotePlaces", "find_places"]

_LEAST_PROMINENCE = -1.0  # nats: how much like the frames of the recording, on the whole, a column must be
_ALIKE = 0.8  # cosine
_LISTENED_FRAMES = 2048
_SPREAD = 0.2  # longer notes take more room, but not in proportion


@dataclass(frozen=True)
class NotePlaces:
    """The places of a course of columns.

    Attributes
    ----------
    course : Course
        With a stop for each place; its times are columns, clefs and key signatures at the beginnings of systems
        left out.
    first, last : np.ndarray of int [shape=(n,)]
        From which to which stop of the course of columns each place reaches.
    lengths : np.ndarray [shape=(P,)]
        How long the way through each stop of the course of columns is: 0 in clefs and key signatures, else 1.
    """

    course: Course
    first: Int64
    last: Int64
    lengths: Float64

    def position(self, times: StopTimes, seconds: Float64) -> Float64:
        """Return where on the course of columns the music is.

        Parameters
        ----------
        times : StopTimes
            Of the places.
        seconds : np.ndarray [shape=(m,)]

        Returns
        -------
        np.ndarray [shape=(m,)]
            In stops, 3.5 is the middle of stop 3. From place to place it goes evenly; it is to the left of the
            first one before that begins, and to the right of the last one after that has begun.
        """
        heard = times.is_heard
        edges = np.arange(len(self.lengths) + 1)
        way = np.append(0.0, np.cumsum(self.lengths))
        middle = (self.first + self.last + 1)[heard] / 2
        onset_sec = times.onset_sec[heard]
        along = np.interp(seconds, onset_sec, np.interp(middle, edges, way))
        position = np.interp(along, way, edges)
        position = np.where(seconds < onset_sec[0], middle[0] - 1, position)
        position = np.where(seconds > onset_sec[-1], middle[-1] + 1, position)
        return np.clip(position, 0.0, len(self.lengths))

    def moments(self, times: StopTimes, columns: Int64, axis: ScoreAxis) -> PlaceMoments:
        """Return when places begin to sound.

        Parameters
        ----------
        times : StopTimes
            Of the places.
        columns : np.ndarray of int [shape=(P,)]
            Of the course of columns.
        axis : ScoreAxis

        Returns
        -------
        PlaceMoments
            Of the places that were heard, half a column wider on both sides: a note head reaches so far.
        """
        heard = times.is_heard
        first, last = axis.columns[columns[self.first[heard]]], axis.columns[columns[self.last[heard]]]
        margin_px = (first["x1"] - first["x0"]).astype(np.float64) / 2
        return PlaceMoments(
            first["system"].astype(np.int64),
            first["x0"] - margin_px,
            last["x1"] + margin_px,
            times.onset_sec[heard],
        )


def find_places(similarity: CourseSimilarity, scale: float, axis: ScoreAxis, is_silent: Bool) -> NotePlaces:
    """Find the places of a score where something in a recording may begin.

    Parameters
    ----------
    similarity : CourseSimilarity
        Of a course of columns.
    scale : float
        Of the cosines, as the bundle's model learnt it.
    axis : ScoreAxis
        Of the same columns.
    is_silent : np.ndarray of bool [shape=(M,)]
        Frames that are not listened to: paper may sound like silence.

    Returns
    -------
    NotePlaces
        All columns, if none sounds like the recording.
    """
    columns = similarity.course.columns
    heard = similarity if is_silent.all() else replace(similarity, frames=similarity.frames[~is_silent])
    prominence = heard.prominence(scale, heard.baseline(scale), _LISTENED_FRAMES)
    sounding = np.flatnonzero(prominence > _LEAST_PROMINENCE)
    if not len(sounding):
        sounding = np.arange(len(columns))
    first = sounding[_begins_place(similarity, columns[sounding], axis)]
    ends = np.append(np.searchsorted(sounding, first[1:]), len(sounding))
    last = sounding[ends - 1]
    lengths = _lengths(columns, first, axis)
    way = np.append(0.0, np.cumsum(lengths))
    course = Course(columns[sounding], np.append(0, ends), np.append(way[first], way[-1]), spread=_SPREAD)
    return NotePlaces(course, first, last, lengths)


def _begins_place(similarity: CourseSimilarity, columns: Int64, axis: ScoreAxis) -> Bool:
    """Say which of some columns are unlike the one before, or not beside it [shape=(n,)]."""
    here, before = columns[1:], columns[:-1]
    system = axis.columns["system"]
    beside = (here == before + 1) & (system[here] == system[before])
    return np.append(True, ~beside | (similarity.likeness(here, before) < _ALIKE))


def _lengths(columns: Int64, first: Int64, axis: ScoreAxis) -> Float64:
    """Say how long the way through columns is [shape=(P,)]: none where systems have clefs and key signatures.

    They end about where systems begin to sound.
    """
    system = axis.columns["system"]
    number = np.arange(len(axis)) - np.searchsorted(system, system)  # of each column in its system
    begins = columns[first]
    _, leftmost = np.unique(system[begins], return_index=True)
    clef = np.quantile(number[begins[leftmost]], 0.5, method="lower")
    return np.where(number[columns] < clef, 0.0, 1.0)
