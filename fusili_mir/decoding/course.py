"""The course: the places that a warping path runs along, in playing order.

A stop is a place where something begins to sound. With page images alone, every column is a stop, in reading
order. With a symbolic score, the stops are its onsets: each looks at the columns that contain its note heads, a
repeated measure occurs as often as it is played, and stretches in which nothing begins have no stops.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from fusili_mir.arrays import Float64, Int64
from fusili_mir.errors import InputError
from fusili_mir.short_repr import short_repr

__all__ = ["Course", "reading_course"]


@short_repr
@dataclass(frozen=True)
class Course:
    """Stops in playing order.

    Attributes
    ----------
    columns : np.ndarray of int [shape=(n,)]
        Columns of the score axis that the stops look at, stop by stop.
    first : np.ndarray of int [shape=(P + 1,)]
        Stop p looks at ``columns[first[p]:first[p + 1]]``: at least one.
    start : np.ndarray of float [shape=(P + 1,)]
        Score time at which each stop begins and, as last entry, at which the last stop ends: in beats, or in
        columns if only images are known. Non-decreasing.
    of_columns : bool
        Whether every column is a stop, because it is not known where something begins.
    is_spaced : bool
        Whether its times are distances on a page, which follow the durations of the music only loosely.
    """

    columns: Int64
    first: Int64
    start: Float64
    of_columns: bool = False
    is_spaced: bool = False

    def __post_init__(self) -> None:
        if len(self.first) < 2 or len(self.start) != len(self.first):
            raise InputError(
                f"a course of {len(self.first) - 1} stops with {len(self.start)} times; expected at least one "
                "stop, and one more time than stops"
            )
        if self.first[0] != 0 or self.first[-1] != len(self.columns) or np.any(np.diff(self.first) < 1):
            raise InputError("a course has a stop without columns; expected at least one column per stop")
        if np.any(np.diff(self.start) < 0):
            raise InputError("the stops of a course are out of playing order; expected non-decreasing times")

    def __len__(self) -> int:
        return len(self.first) - 1

    def part(self, stops: slice) -> Course:
        """Return some successive stops as a course of their own."""
        first = self.first[stops.start : stops.stop + 1]
        return replace(
            self,
            columns=self.columns[first[0] : first[-1]],
            first=first - first[0],
            start=self.start[stops.start : stops.stop + 1],
        )


def reading_course(columns: Int64) -> Course:
    """Make every column a stop.

    Parameters
    ----------
    columns : np.ndarray of int [shape=(n,)]
        Columns of the score axis, in the order in which they are played.

    Returns
    -------
    Course
        Course whose times are counted in columns.

    Examples
    --------
    >>> course = reading_course(np.array([0, 1, 2, 0, 1]))  # the first two columns are repeated
    >>> len(course), course.start.tolist()
    (5, [0.0, 1.0, 2.0, 3.0, 4.0, 5.0])
    """
    steps = np.arange(len(columns) + 1)
    return Course(columns.astype(np.int64), steps.astype(np.int64), steps.astype(np.float64), of_columns=True)
