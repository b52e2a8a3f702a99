"""Sync points for alphaTab: which place of which bar sounds at which millisecond.

`score.applyFlatSyncPoints` of alphaTab takes the list as it is.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TypedDict

import numpy as np

from fusili_mir.alignment.results import Alignment
from fusili_mir.output.score_time import ScoreTime, occurrences, score_time

__all__ = ["SyncPoint", "save_sync_points", "sync_points"]

_SPACING_QUARTERS = 1.0  # smallest distance between two points of a bar


class SyncPoint(TypedDict):
    """A place in a bar and its time, under the names that alphaTab gives them."""

    barIndex: int
    barOccurence: int
    barPosition: float
    millisecondOffset: float


def save_sync_points(alignment: Alignment, filename: str | Path) -> None:
    """Write the sync points as JSON, one per line; see `sync_points`."""
    lines = ",\n".join(json.dumps(point) for point in sync_points(alignment))
    Path(filename).write_text(f"[\n{lines}\n]\n", encoding="utf-8")


def sync_points(alignment: Alignment) -> list[SyncPoint]:
    """List places in bars with their times.

    Parameters
    ----------
    alignment : Alignment
        An alignment whose measures are known.

    Returns
    -------
    list of SyncPoint
        In playing order: the start of each measure that was heard, with a symbolic score also onsets within it,
        at most one per quarter note; at last, the end of the last measure.
    """
    measures = alignment.measures
    occurrence = occurrences(measures["measure"]).tolist()
    time = None if alignment.played is None else score_time(alignment)
    points: list[SyncPoint] = []
    for row in np.flatnonzero(np.isfinite(measures["start_sec"])).tolist():
        places = [(0.0, float(measures["start_sec"][row]))]
        end = 1.0
        if time is not None:
            places += _onsets(time, row)
            end = (time.measure_end_quarter[row] - time.measure_start_quarter[row]) / _bar_quarters(time, row)
        points += [_point(measures["measure"][row], occurrence[row], *place) for place in places]
        last = (min(float(end), 1.0), float(measures["end_sec"][row]))
    if points:
        points.append(_point(points[-1]["barIndex"], points[-1]["barOccurence"], *last))
    # Times must grow, or alphaTab's cursor would run backwards.
    kept: list[SyncPoint] = []
    for point in points:
        if not kept or point["millisecondOffset"] > kept[-1]["millisecondOffset"]:
            kept.append(point)
    return kept


def _onsets(time: ScoreTime, row: int) -> Iterator[tuple[float, float]]:
    """Yield places of a measure, from 0 to 1, at which something begins, and their seconds."""
    start, end = time.measure_start_quarter[row], time.measure_end_quarter[row]
    bar, last = _bar_quarters(time, row), start
    for quarter, second in zip(time.tempo.beats, time.tempo.seconds, strict=True):
        if start < quarter < end and quarter - last >= _SPACING_QUARTERS - 1e-6:
            yield min(float((quarter - start) / bar), 1.0), float(second)
            last = quarter


def _bar_quarters(time: ScoreTime, row: int) -> float:
    """Return the length that alphaTab gives a measure: that of its signature, except for a pick-up."""
    if row == 0:
        return float(time.measure_end_quarter[row] - time.measure_start_quarter[row])
    return float(time.bar_quarters[row])


def _point(measure: int, occurrence: int, position: float, second: float) -> SyncPoint:
    return {
        "barIndex": int(measure),
        "barOccurence": int(occurrence),
        "barPosition": round(position, 6),
        "millisecondOffset": round(1000 * second, 1),
    }
