"""Bar lines and repeat signs on page images.

A small network says how much each column of a system looks like a bar line of some kind
(`fusili_mir.pages.sign_network`); bar lines are where it peaks.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fusili_mir.arrays import Float32, GreyImage, Table
from fusili_mir.geometry import strip_height_px
from fusili_mir.pages.repeat_dots import has_dots
from fusili_mir.pages.segments import Segment, cut_segment, staff_strips
from fusili_mir.pages.sign_network import (
    BAR_LINE_CLASSES,
    BAR_LINE_COLUMN_PX,
    BAR_LINE_MARGIN_SPACES,
    SPACE_PX,
    bar_line_scores,
)

__all__ = ["BAR_LINE_DTYPE", "find_bar_lines", "find_peaks", "ink_strips"]

_FIELDS: list[tuple[str, Any]] = [
    ("page", "i4"),
    ("system", "i4"),
    ("x", "f4"),
    ("kind", "U12"),
    ("probability", "f4"),
]
BAR_LINE_DTYPE = np.dtype(_FIELDS)
"""One bar line of a system, across all its staves: the x of its middle, and its kind: single, double, final,
dotted, repeat-begin, repeat-end or repeat-both."""

_BESIDE_SPACES = 2.0  # shown left and right of a system
_APART_SPACES = 1.25  # smallest distance of bar lines
_EDGE_SPACES = 1.0  # the line at the left edge of a system is no bar line
_LEAST = 0.5  # probability of any kind
_DOTS = {"repeat-begin": (1,), "repeat-end": (-1,), "repeat-both": (-1, 1)}  # sides
_REACH = 2  # columns around a peak that speak for its kind


def find_bar_lines(ink: GreyImage, systems: Table, staves: Table) -> Table:
    """Find the bar lines of the systems of a page.

    Parameters
    ----------
    ink : np.ndarray [shape=(height, width)]
        The deskewed page, evenly lit: 255 is paper (see `fusili_mir.pages.ink.evenly_lit`).
    systems, staves : np.ndarray of `SYSTEM_DTYPE`, `STAFF_DTYPE`
        Its systems and staves.

    Returns
    -------
    np.ndarray of `BAR_LINE_DTYPE`
        Bar lines by system, from left to right.
    """
    rows: list[tuple[Any, ...]] = []
    apart = round(_APART_SPACES * SPACE_PX / BAR_LINE_COLUMN_PX)
    for system in systems:
        strips, segment = ink_strips(ink, system, staves, BAR_LINE_MARGIN_SPACES)
        scores = bar_line_scores(strips)
        any_kind = 1 - scores[:, 0]
        first_x = float(system["x0"]) + _EDGE_SPACES * float(system["space_px"])
        for column in find_peaks(any_kind, _LEAST, apart):
            near = slice(max(0, column - _REACH), column + _REACH + 1)
            weight = any_kind[near]
            middle = float(np.average(np.arange(len(any_kind))[near], weights=weight)) + 0.5
            x = float(segment.to_page(middle * BAR_LINE_COLUMN_PX, 1.0)[1])
            kind = _kind(scores[near].sum(axis=0), strips, round(middle * BAR_LINE_COLUMN_PX))
            if x > first_x or kind == "repeat-begin":
                rows.append((system["page"], system["system"], x, kind, any_kind[column]))
    return np.array(rows, dtype=BAR_LINE_DTYPE)


def _kind(scores: Float32, strips: Float32, column: int) -> str:
    """Return the likeliest kind of a bar line; of the repeat signs, only those whose dots are there."""
    missing = [side for side in (-1, 1) if not has_dots(strips, column, side)]
    possible = [
        number
        for number, kind in enumerate(BAR_LINE_CLASSES)
        if number > 0 and not any(side in _DOTS.get(kind, ()) for side in missing)
    ]
    return BAR_LINE_CLASSES[max(possible, key=lambda number: scores[number])]


def ink_strips(
    ink: GreyImage, system: np.void, staves: Table, margin_spaces: float
) -> tuple[Float32, Segment]:
    """Cut the staves of a system from a page, with a little of what is beside them.

    Returns
    -------
    strips : np.ndarray [shape=(n_staves, height, width)]
        Ink of each staff, `SPACE_PX` pixels a space; 0 is paper, 1 is black.
    segment : Segment
        Where they lie on the page, which counts as page 0.
    """
    beside_px = _BESIDE_SPACES * float(system["space_px"])
    shown = (float(system["x0"]) - beside_px, float(system["x1"]) + beside_px)
    own = staves[staves["system"] == system["system"]].copy()
    own["page"] = 0
    row = np.array([system])
    row["page"] = 0
    segment = staff_strips(row, own, int(system["system"]), SPACE_PX, margin_spaces, shown)
    height = strip_height_px(SPACE_PX, margin_spaces)
    image = cut_segment(segment, [ink])
    return (1 - image.reshape(-1, height, image.shape[1]) / np.float32(255)).astype(np.float32), segment


def find_peaks(values: Float32, least: float, apart: int) -> list[int]:
    """Return the highest places above `least`, none nearer than `apart` to another, from left to right.

    >>> find_peaks(np.array([0, 0.9, 0.8, 0, 0.6], np.float32), least=0.5, apart=2)
    [1, 4]
    """
    found: list[int] = []
    rest = values.copy()
    while len(rest) and rest.max() > least:
        peak = int(rest.argmax())
        found.append(peak)
        rest[max(0, peak - apart + 1) : peak + apart] = 0
    return sorted(found)
