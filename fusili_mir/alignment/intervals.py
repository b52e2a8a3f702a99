"""Intervals: between which seconds a note, a measure or the place of a frame may really lie."""

from __future__ import annotations

from typing import Any

from fusili_mir.arrays import Float64, Table
from fusili_mir.geometry import FrameGrid

__all__ = ["INTERVAL_FIELDS", "INTERVAL_NAMES", "put_interval"]

INTERVAL_NAMES = ("earliest_sec", "latest_sec")
INTERVAL_FIELDS: list[tuple[str, Any]] = [(name, "f8") for name in INTERVAL_NAMES]
"""Ends of the interval in which the truth lies: for notes with a probability of `INTERVAL_PROBABILITY`."""


def put_interval(table: Table, seconds: Float64, margin_sec: Float64, grid: FrameGrid) -> None:
    """Write intervals of `margin_sec` to either side of some seconds into a table, within the recording.

    Parameters
    ----------
    table : np.ndarray with `INTERVAL_FIELDS` [shape=(n,)]
        Changed in place.
    seconds, margin_sec : np.ndarray [shape=(n,)]
        NaN where nothing was heard.
    grid : FrameGrid
        Frames of the recording.
    """
    table["earliest_sec"] = grid.within(seconds - margin_sec)
    table["latest_sec"] = grid.within(seconds + margin_sec)
