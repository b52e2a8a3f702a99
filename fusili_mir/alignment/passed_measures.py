"""When the measures of page images are played: wherever measures are known, but no notes.

A measure begins when the first place in it begins to sound or, if nothing begins in it, when the music passes its
left bar line. It lasts until the next one begins.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fusili_mir.alignment.intervals import INTERVAL_NAMES
from fusili_mir.alignment.position_maps import PlaceMoments
from fusili_mir.alignment.results import ALIGNED_MEASURE_DTYPE, Alignment
from fusili_mir.arrays import Float64, Int64, Table

__all__ = ["measures_at", "passed_measures", "with_passed_measures"]

_BACK_PX = 2.0  # the music has gone back, rather than being rounded to another pixel


def with_passed_measures(alignment: Alignment) -> Alignment:
    """Add the measures that a recording passes to a result on deskewed pages that has none."""
    if len(alignment.measures) or not len(alignment.pages.measures):
        return alignment
    return replace(alignment, measures=passed_measures(alignment))


def passed_measures(alignment: Alignment) -> Table:
    """Time the measures of the pages that a recording passes.

    Parameters
    ----------
    alignment : Alignment
        A result on deskewed pages with `Pages.measures`.

    Returns
    -------
    np.ndarray of `ALIGNED_MEASURE_DTYPE`
        Measures in playing order: one row each time the music passes a measure, with its box on the deskewed
        page. Beats are NaN.
    """
    measures = alignment.pages.measures
    frames = alignment.frames[~alignment.path.is_filler]
    measure = measures_at(measures, frames["system"], frames["x"])
    if alignment.stretches:  # an ending that is leapt over is not played
        played = np.concatenate([np.arange(*stretch) for stretch in alignment.stretches])
        measure[~np.isin(measures["measure"][measure], played)] = -1
    frames, measure = frames[measure >= 0], measure[measure >= 0]
    if not len(measure):
        return np.empty(0, ALIGNED_MEASURE_DTYPE)
    goes_back = (np.diff(frames["system"]) == 0) & (np.diff(frames["x"]) < -_BACK_PX)
    first = np.concatenate(([0], np.flatnonzero((np.diff(measure) != 0) | goes_back) + 1))
    passed = np.empty(len(first), ALIGNED_MEASURE_DTYPE)
    for name in measures.dtype.names or ():
        passed[name] = measures[name][measure[first]]
    passed["start_beat"] = passed["end_beat"] = np.nan
    crossed_sec = frames["onset_sec"][first]
    end_sec = float(alignment.grid.within(frames["onset_sec"][-1] + alignment.grid.frame_sec))
    until_sec = np.append(crossed_sec[1:], end_sec)
    passed["start_sec"] = crossed_sec
    if alignment.moments is not None:
        begun = _first_moments(
            measures, alignment.moments, measure[first], crossed_sec - alignment.grid.frame_sec, until_sec
        )
        passed["start_sec"] = np.where(np.isnan(begun), crossed_sec, begun)
    passed["end_sec"] = np.append(passed["start_sec"][1:], max(end_sec, passed["start_sec"][-1]))
    counts = np.diff(np.append(first, len(frames)))
    passed["confidence"] = np.add.reduceat(frames["confidence"], first) / counts
    middle_sec = crossed_sec + alignment.grid.frame_sec / 2
    for name in INTERVAL_NAMES:
        passed[name] = alignment.grid.within(passed["start_sec"] + frames[name][first] - middle_sec)
    return passed


def measures_at(measures: Table, system: Int64, x: Float64) -> Int64:
    """Return the rows of the measures at x in systems, or nearest to it; -1 in systems without measures."""
    rows = np.full(len(system), -1, np.int64)
    for number in np.unique(measures["system"]):
        own = np.flatnonzero(measures["system"] == number)
        own = own[np.argsort(measures["x0"][own], kind="stable")]
        here = system == number
        place = np.searchsorted(measures["x0"][own], x[here], side="right") - 1
        rows[here] = own[np.maximum(place, 0)]
    return rows


def _first_moments(
    measures: Table, moments: PlaceMoments, measure: Int64, start_sec: Float64, end_sec: Float64
) -> Float64:
    """Return when the first place of each measure begins to sound while the music passes it, or NaN."""
    own = measures_at(measures, moments.system, (moments.x0 + moments.x1) / 2)
    begun = np.full(len(measure), np.nan)
    for row, each in enumerate(measure):
        inside = (own == each) & (moments.seconds >= start_sec[row]) & (moments.seconds < end_sec[row])
        if inside.any():
            begun[row] = moments.seconds[inside][0]
    return begun
