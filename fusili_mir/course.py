"""The course: the places that a warping path runs along, in the order in which they are played.

A stop is a place where something begins to sound. With page images alone every column is a stop, in reading
order. With a symbolic score, the stops are its onsets: each looks at the columns that hold its note heads, a
repeated measure comes as often as it is played, and stretches where nothing begins are no stops.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fusili_mir.errors import InputError
from fusili_mir.geometry import Float64, Int64
from fusili_mir.score_axis import ScoreAxis

__all__ = ["Course", "reading_course"]


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
    """

    columns: Int64
    first: Int64
    start: Float64

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
    return Course(columns.astype(np.int64), steps.astype(np.int64), steps.astype(np.float64))
