"""Where on page images something may begin to sound, if no symbolic score says so.

A column that resembles nothing in the recording is paper, a bar line or a clef; adjacent columns that resemble
each other are one note head or chord. What remains are places to stop at, like the onsets of a score.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fusili_mir.alignment.position_maps import PlaceMoments
from fusili_mir.arrays import Bool, Float64, Int64
from fusili_mir.decoding.course import Course
from fusili_mir.decoding.similarity import CourseSimilarity
from fusili_mir.decoding.stop_times import StopTimes
from fusili_mir.pages.score_axis import ScoreAxis
from fusili_mir.short_repr import short_repr

__all__ = ["NotePlaces", "find_places"]

# Set by hand; no fit is recorded.
_LEAST_PROMINENCE = -1.0  # nats: how similar a column must be to frames of the recording in general
_ALIKE = 0.8  # cosine of neighbouring columns that show the same notes
_LISTENED_FRAMES = 2048  # at most, spread over the recording


@short_repr
@dataclass(frozen=True)
class NotePlaces:
    """The places on a course of columns.

    Attributes
    ----------
    course : Course
        Course with one stop per place; its times are columns, not counting clefs and key signatures at the
        beginnings of systems.
    first, last : np.ndarray of int [shape=(n,)]
        First and last stop of the course of columns that each place covers.
    lengths : np.ndarray [shape=(P,)]
        Length of each stop of the course of columns: 0 in clefs and key signatures, otherwise about 1.
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
            Times of the places.
        seconds : np.ndarray [shape=(m,)]

        Returns
        -------
        np.ndarray [shape=(m,)]
            Position in stops: 3.5 is the middle of stop 3. It moves evenly from place to place; it is left of
            the first place before that begins, and right of the last one after that has begun.
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
        return np.asarray(np.clip(position, 0.0, len(self.lengths)))

    def moments(self, times: StopTimes, columns: Int64, axis: ScoreAxis) -> PlaceMoments:
        """Return when places begin to sound.

        Parameters
        ----------
        times : StopTimes
            Times of the places.
        columns : np.ndarray of int [shape=(P,)]
            Columns of the course of columns.
        axis : ScoreAxis

        Returns
        -------
        PlaceMoments
            Moments of the places that were heard, half a column wider on both sides, as note heads are.
        """
        heard = times.is_heard
        first, last = axis.columns[columns[self.first[heard]]], axis.columns[columns[self.last[heard]]]
        margin_px = (first["x1"] - first["x0"]).astype(np.float64) / 2
        return PlaceMoments(
            first["system"].astype(np.int64),
            first["x0"] - margin_px,
            last["x1"] + margin_px,
            times.onset_sec[heard],
            times.confidence[heard],
            times.margin_sec[heard],
        )


def find_places(
    similarity: CourseSimilarity,
    scale: float,
    axis: ScoreAxis,
    is_silent: Bool,
    is_mute: Bool | None = None,
    column_lengths: Float64 | None = None,
) -> NotePlaces:
    """Find the places of a score where something in a recording may begin.

    Parameters
    ----------
    similarity : CourseSimilarity
        Similarity of a course of columns.
    scale : float
        The bundle's scale of cosines.
    axis : ScoreAxis
        Score axis of the same columns.
    is_silent : np.ndarray of bool [shape=(M,)]
        Frames to ignore: paper may resemble silence.
    is_mute : np.ndarray of bool [shape=(C,)], optional
        Columns of the axis in which nothing begins: bar lines.
    column_lengths : np.ndarray [shape=(C,)], optional
        How long the music is expected to stay on each column of the axis; by default alike.

    Returns
    -------
    NotePlaces
        Places that cover all columns, if none resembles the recording.
    """
    columns = similarity.course.columns
    heard = similarity if is_silent.all() else similarity.among(np.flatnonzero(~is_silent))
    prominence = heard.prominence(scale, heard.baseline(scale), _LISTENED_FRAMES)
    is_paper = np.zeros(len(columns), dtype=bool) if is_mute is None else is_mute[columns]
    sounding = np.flatnonzero((prominence > _LEAST_PROMINENCE) & ~is_paper)
    if not len(sounding):
        sounding = np.arange(len(columns))
    first = sounding[_begins_place(similarity, columns[sounding], axis)]
    ends = np.append(np.searchsorted(sounding, first[1:]), len(sounding))
    last = sounding[ends - 1]
    lengths = _lengths(columns, first, axis)
    if column_lengths is not None:
        lengths = lengths * column_lengths[columns]
    way = np.append(0.0, np.cumsum(lengths))
    course = Course(columns[sounding], np.append(0, ends), np.append(way[first], way[-1]), is_spaced=True)
    return NotePlaces(course, first, last, lengths)


def _begins_place(similarity: CourseSimilarity, columns: Int64, axis: ScoreAxis) -> Bool:
    """Return which columns differ from the previous one, or are not adjacent to it [shape=(n,)]."""
    here, before = columns[1:], columns[:-1]
    system = axis.columns["system"]
    beside = (here == before + 1) & (system[here] == system[before])
    return np.append(True, ~beside | (similarity.likeness(here, before) < _ALIKE))


def _lengths(columns: Int64, first: Int64, axis: ScoreAxis) -> Float64:
    """Return the lengths of columns [shape=(P,)]: 0 where systems have clefs and key signatures, otherwise 1.

    Clefs and key signatures end about where systems begin to sound.
    """
    system = axis.columns["system"]
    number = np.arange(len(axis)) - np.searchsorted(system, system)  # index of each column in its system
    begins = columns[first]
    _, leftmost = np.unique(system[begins], return_index=True)
    clef = np.quantile(number[begins[leftmost]], 0.5, method="lower")
    return np.where(number[columns] < clef, 0.0, 1.0)
