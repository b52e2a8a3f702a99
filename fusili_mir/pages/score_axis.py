"""The score axis: the columns of all segments in reading order, and where they lie on the pages.

A column is a narrow vertical part of one system, across all its staves: the horizontal resolution of the image
encoder. The columns of a system follow each other without gap or overlap; systems follow each other in reading
order over all pages.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fusili_mir.argument_kinds import checked
from fusili_mir.arrays import Float64, Int64, Table
from fusili_mir.errors import InputError
from fusili_mir.short_repr import short_repr

__all__ = ["COLUMN_DTYPE", "ScoreAxis"]

COLUMN_DTYPE = np.dtype(
    [("page", "i4"), ("system", "i4"), ("x0", "f4"), ("y0", "f4"), ("x1", "f4"), ("y1", "f4")]
)
"""One column of a system, in pixels of the page."""


@checked
@short_repr
@dataclass(frozen=True)
class ScoreAxis:
    """The columns of a score in reading order.

    Attributes
    ----------
    columns : np.ndarray of `COLUMN_DTYPE` [shape=(C,)]
        The columns, sorted by system, then from left to right.
    """

    columns: Table

    def __post_init__(self) -> None:
        columns = self.columns
        if columns.dtype != COLUMN_DTYPE or columns.ndim != 1 or not len(columns):
            raise InputError(
                f"a score axis of {columns.dtype} {columns.shape}; expected at least one row of COLUMN_DTYPE"
            )
        same_system = np.diff(columns["system"]) == 0
        if np.any(np.diff(columns["system"]) < 0) or np.any(np.diff(columns["x0"])[same_system] <= 0):
            raise InputError("the columns of a score axis are out of reading order")

    def __len__(self) -> int:
        return len(self.columns)

    def centre(self, column: npt.ArrayLike) -> tuple[Int64, Float64, Float64]:
        """Return the (page, x, y) centres of columns, in pixels of the page."""
        index = np.asarray(column, dtype=np.int64)
        if np.any((index < 0) | (index >= len(self))):
            wrong = index[(index < 0) | (index >= len(self))].flat[0]
            raise InputError(f"column {wrong} is outside the score axis (0..{len(self) - 1})")
        rows = self.columns[index]
        x = (rows["x0"].astype(np.float64) + rows["x1"]) / 2
        y = (rows["y0"].astype(np.float64) + rows["y1"]) / 2
        return rows["page"].astype(np.int64), x, y

    def system_names(self) -> dict[int, str]:
        """Name each system as a reader would: by its page, and its number from the top of that page."""
        names: dict[int, str] = {}
        page, number = -1, 0
        systems, first = np.unique(self.columns["system"], return_index=True)
        for system, column in zip(systems.tolist(), first.tolist(), strict=True):
            number = number + 1 if self.columns["page"][column] == page else 1
            page = int(self.columns["page"][column])
            names[system] = f"page {page + 1} system {number}"
        return names

    def index_in_system(self, system: npt.ArrayLike, x: npt.ArrayLike) -> Int64:
        """Return the columns of systems that contain, or are nearest to, x; -1 for systems without columns."""
        system, x = np.broadcast_arrays(np.asarray(system, np.int64), np.asarray(x, np.float64))
        first = np.searchsorted(self.columns["system"], system, side="left")
        stop = np.searchsorted(self.columns["system"], system, side="right")
        # Systems are laid end to end on one line, so a single search covers all of them.
        left = float(self.columns["x0"].min())
        stride_px = float(self.columns["x1"].max()) - left + 1.0
        starts = self.columns["system"] * stride_px + (self.columns["x0"] - left)
        place = system * stride_px + np.clip(x - left, 0.0, stride_px - 1.0)
        column = np.clip(np.searchsorted(starts, place, side="right") - 1, first, stop - 1)
        return np.where(first < stop, column, -1).astype(np.int64)

    def index(self, page: npt.ArrayLike, x: npt.ArrayLike, y: npt.ArrayLike) -> Int64:
        """Return the columns nearest to places (page, x, y); -1 on pages without music.

        A place between two systems belongs to the one whose box is nearer; a place left or right of a system,
        to its first or last column.

        >>> columns = np.array([(0, 0, 10, 5, 20, 45), (0, 0, 20, 5, 30, 45)], COLUMN_DTYPE)
        >>> ScoreAxis(columns).index(page=[0, 0, 1], x=[12, 90, 12], y=[30, 60, 30]).tolist()
        [0, 1, -1]
        """
        page, x, y = np.broadcast_arrays(
            np.asarray(page, np.int64), np.asarray(x, np.float64), np.asarray(y, np.float64)
        )
        _, first = np.unique(self.columns["system"], return_index=True)
        heads = self.columns[first]
        below = heads["y0"] - y[..., None]  # (..., n_systems)
        above = y[..., None] - heads["y1"]
        distance = np.where(heads["page"] == page[..., None], np.maximum(np.maximum(below, above), 0), np.inf)
        nearest = heads["system"][distance.argmin(axis=-1)]
        found = np.isfinite(distance.min(axis=-1))
        return np.where(found, self.index_in_system(nearest, x), -1).astype(np.int64)
