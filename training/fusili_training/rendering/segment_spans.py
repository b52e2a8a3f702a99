"""Dividing a score into spans of measures, and laying out the segment of each span.

A span is a range of measures, so it means the same in every engraving of a piece: the segment of a mutant shows
the measures of its original.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from fusili_mir.arrays import Float32, Table
from fusili_mir.pages.segments import Segment, staff_strips
from fusili_mir.pages.square_segments import square_segment
from fusili_training.rendering.render_recipe import SegmentOptions

__all__ = ["Span", "list_spans", "segment_of", "square_spans"]

_N_LIMITS = 16


@dataclass(frozen=True)
class Span:
    """Measures from `first` to `last`, both included, counted from 0."""

    first: int
    last: int


def list_spans(systems: Table, measures: Table, options: SegmentOptions) -> list[Span]:
    """List the segments of an engraved score.

    Parameters
    ----------
    systems, measures : np.ndarray of `SYSTEM_DTYPE`, `MEASURE_DTYPE`
    options : SegmentOptions

    Returns
    -------
    list of Span
        Spans in reading order. Squares overlap, strips do not. A strip of one measure may exceed the maximum
        width.
    """
    if options.shape == "square":
        return square_spans(int(measures["measure"].max()) + 1, options)
    return [span for system in systems for span in _system_spans(system, measures, options)]


def square_spans(n_measures: int, options: SegmentOptions) -> list[Span]:
    """List the squares of a score with so many measures; a short one has one."""
    starts = range(0, max(n_measures - options.n_measures, 0) + 1, options.hop_measures)
    return [Span(first, min(first + options.n_measures, n_measures) - 1) for first in starts]


def segment_of(
    span: Span, systems: Table, staves: Table, measures: Table, options: SegmentOptions
) -> Segment | None:
    """Lay out the segment of a span.

    Parameters
    ----------
    span : Span
    systems, staves, measures : np.ndarray of `SYSTEM_DTYPE`, `STAFF_DTYPE`, `MEASURE_DTYPE`
    options : SegmentOptions

    Returns
    -------
    Segment or None
        None if the measures were not all engraved, or, for strips, if they do not lie in one system.
    """
    rows = measures[(measures["measure"] >= span.first) & (measures["measure"] <= span.last)]
    if len(rows) != span.last - span.first + 1:
        return None
    if options.shape == "square":
        return square_segment(systems, measures, span.first, span.last, options.side_px)
    if len(np.unique(rows["system"])) != 1:
        return None
    system = int(rows["system"][0])
    x_range = _x_range(span, systems[systems["system"] == system][0], measures)
    return staff_strips(systems, staves, system, options.space_px, options.margin_spaces, x_range)


def _system_spans(system: np.void, measures: Table, options: SegmentOptions) -> list[Span]:
    """Divide a system into as few spans as its width requires, all of similar width."""
    rows = np.sort(measures[measures["system"] == system["system"]], order="measure")
    if not len(rows):
        return []
    ends_px = (rows["x1"] - system["x0"]) * (options.space_px / float(system["space_px"]))
    cuts = _cut(ends_px, options.max_width_px)
    lowest_px = min(float(ends_px[-1]) / (len(cuts) + 1), options.max_width_px)
    # The lowest limit with the same number of cuts gives the most even widths.
    for limit_px in np.linspace(lowest_px, options.max_width_px, _N_LIMITS):
        if len(_cut(ends_px, limit_px)) == len(cuts):
            cuts = _cut(ends_px, limit_px)
            break
    numbers = rows["measure"]
    edges = [0, *cuts, len(rows)]
    return [Span(int(numbers[begin]), int(numbers[end - 1])) for begin, end in pairwise(edges)]


def _cut(ends_px: Float32, limit_px: float) -> list[int]:
    """Return the measures before which a system is cut, so that no span of several measures exceeds a limit."""
    cuts: list[int] = []
    start_px = 0.0
    for place in range(1, len(ends_px)):
        if ends_px[place] - start_px > limit_px:
            cuts.append(place)
            start_px = float(ends_px[place - 1])
    return cuts


def _x_range(span: Span, system: np.void, measures: Table) -> tuple[float, float]:
    """Return the x range of a span; at the ends of a system it includes what is outside the measures."""
    rows = measures[measures["system"] == system["system"]]
    first, last = rows[rows["measure"] == span.first][0], rows[rows["measure"] == span.last][0]
    x0 = system["x0"] if span.first == rows["measure"].min() else first["x0"]
    x1 = system["x1"] if span.last == rows["measure"].max() else last["x1"]
    return float(x0), float(x1)
