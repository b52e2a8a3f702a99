"""The course: the places that a warping path runs along, in the order in which they are played.

A stop is a place where something begins to sound. With page images alone every column is a stop, in reading
order. With a symbolic score, the stops are its onsets: each looks at the columns that hold its note heads, a
repeated measure comes as often as it is played, and stretches where nothing begins are no stops.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fusili_mir.arrays import Float64, Int64
from fusili_mir.errors import InputError

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


def reading_course(columns: Int64) -> Course:
    """Make every column a stop.

    Parameters
    ----------
    columns : np.ndarray of int [shape=(n,)]
        Columns of the score axis, in the order in which they are played.

    Returns
    -------
    Course
        Its times are counted in columns.
    """
    steps = np.arange(len(columns) + 1)
    return Course(columns.astype(np.int64), steps.astype(np.int64), steps.astype(np.float64), of_columns=True)
