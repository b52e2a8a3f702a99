"""Square segments: some measures in one image of fixed size, with the line breaks of the page.

The lines of music are stacked and left-aligned, all at one scale: the largest at which everything fits. Together
they lie in the middle of the square, with the same paper on either side.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fusili_mir.arrays import Table
from fusili_mir.errors import InputError
from fusili_mir.pages.segments import Box, Piece, Segment

__all__ = ["square_segment"]


def square_segment(
    systems: Table,
    measures: Table,
    first: int,
    last: int,
    side_px: int = 224,
    margin_spaces: float = 3.0,
) -> Segment:
    """Lay out consecutive measures in a square.

    Parameters
    ----------
    systems, measures : np.ndarray of `SYSTEM_DTYPE`, `MEASURE_DTYPE`
        Systems and measures of the pages.
    first, last : int
        First and last measure, both included.
    side_px : int
        Width and height of the segment.
    margin_spaces : float
        Margin above and below each line of music, in staff spaces.

    Returns
    -------
    Segment
        The segment, with one piece per system.
    """
    rows = measures[(measures["measure"] >= first) & (measures["measure"] <= last)]
    if not len(rows):
        raise InputError(f"there are no measures {first} to {last}; the score has {len(measures)}")
    lines = [
        _line(systems, rows[rows["system"] == system], measures, margin_spaces) for system in _order(rows)
    ]
    scale = min(
        side_px / max(line.box.x1 - line.box.x0 for line in lines),
        side_px / sum(line.box.y1 - line.box.y0 for line in lines),
    )
    # Whole pixels in the segment, and exactly what they show on the page.
    widths = [min(side_px, max(1, round((line.box.x1 - line.box.x0) * scale))) for line in lines]
    heights = [max(1, int((line.box.y1 - line.box.y0) * scale)) for line in lines]
    left, top = (side_px - max(widths)) // 2, (side_px - sum(heights)) // 2
    pieces = []
    for line, width, height in zip(lines, widths, heights, strict=True):
        on_page = Box(line.box.x0, line.box.y0, line.box.x0 + width / scale, line.box.y0 + height / scale)
        pieces.append(Piece(line.page, on_page, Box(left, top, left + width, top + height)))
        top += height
    return Segment(side_px, side_px, tuple(pieces))


@dataclass(frozen=True)
class _Line:
    page: int
    box: Box  # on the page


def _order(rows: Table) -> list[int]:
    return [int(system) for system in np.unique(rows["system"])]


def _line(systems: Table, rows: Table, measures: Table, margin_spaces: float) -> _Line:
    """Return the part of a system that shows some of its measures; the first one includes clef and key."""
    (system,) = systems[systems["system"] == rows["system"][0]]
    in_system = measures[measures["system"] == system["system"]]
    at_start = rows["measure"].min() == in_system["measure"].min()
    x0 = float(system["x0"] if at_start else rows["x0"].min())
    margin_px = margin_spaces * float(system["space_px"])
    box = Box(x0, float(system["y0"]) - margin_px, float(rows["x1"].max()), float(system["y1"]) + margin_px)
    return _Line(int(system["page"]), box)
