"""Brackets of first and second endings above the systems of page images."""

from __future__ import annotations

from typing import Any

import numpy as np

from fusili_mir.arrays import Float32, GreyImage, Table
from fusili_mir.pages.bar_lines import find_peaks, ink_strips
from fusili_mir.pages.sign_network import (
    ENDING_CLASSES,
    ENDING_COLUMN_PX,
    ENDING_MARGIN_SPACES,
    ENDING_ROWS_PX,
    SPACE_PX,
    ending_scores,
)

__all__ = ["ENDING_DTYPE", "find_endings"]

_FIELDS: list[tuple[str, Any]] = [
    ("page", "i4"),
    ("system", "i4"),
    ("x0", "f4"),
    ("x1", "f4"),
    ("numbers", "U8"),
    ("begins", "?"),
    ("probability", "f4"),
]
ENDING_DTYPE = np.dtype(_FIELDS)
"""One bracket above a system: its ends, the numbers that were read ("1", "1,2", or empty), and whether it begins
here or is the rest of one that begins in the system before."""

_LEAST = 0.5  # probability of a beginning
_APART_SPACES = 3.0  # smallest distance of beginnings
_LEAST_SPACES = 4.0  # length of a bracket
_CONTINUED = 0.4  # share of a measure below a bracket that goes on
_CONTINUED_IN_NEXT = 0.7  # the same in the next system
_ENDS = ("repeat-end", "repeat-both")


def find_endings(ink: GreyImage, systems: Table, staves: Table, bar_lines: Table) -> Table:
    """Find the brackets of endings above the systems of a page.

    Parameters
    ----------
    ink : np.ndarray [shape=(height, width)]
        The deskewed page, evenly lit; see `find_bar_lines`.
    systems, staves : np.ndarray of `SYSTEM_DTYPE`, `STAFF_DTYPE`
    bar_lines : np.ndarray of `BAR_LINE_DTYPE`
        Bar lines of the page: brackets end at them.

    Returns
    -------
    np.ndarray of `ENDING_DTYPE`
        Brackets by system, from left to right.
    """
    rows: list[tuple[Any, ...]] = []
    is_open = False  # whether a bracket reaches the end of the system before
    for system in systems:
        first_staff = staves[(staves["system"] == system["system"]) & (staves["staff"] == 0)]
        strips, segment = ink_strips(ink, system, first_staff, ENDING_MARGIN_SPACES)
        begins, inside = ending_scores(strips[0, :ENDING_ROWS_PX])
        n_columns = len(inside)
        to_column = n_columns / segment.width_px * SPACE_PX / float(system["space_px"])
        left_px = float(segment.pieces[0].on_page.x0)
        lines = bar_lines[bar_lines["system"] == system["system"]]
        stops = [round((float(line["x"]) - left_px) * to_column) for line in lines] or [n_columns]
        is_last = [str(line["kind"]) in _ENDS for line in lines] or [False]
        starts = _starts(begins)
        brackets: list[tuple[int, int, int]] = []
        if is_open and not (starts and starts[0] < stops[0] / 2):
            stop = _stop(0, stops, is_last, starts, inside, _CONTINUED_IN_NEXT)
            brackets += [(0, stop, 0)] if stop else []
        for start in starts:
            number = int(begins[start, 1:].argmax()) + 1
            brackets.append((start, _stop(start, stops, is_last, starts, inside, _CONTINUED), number))
        for start, stop, number in brackets:
            if stop - start < _LEAST_SPACES * SPACE_PX / ENDING_COLUMN_PX:
                continue
            x0, x1 = (left_px + column / to_column for column in (start, stop))
            numbers = ",".join(map(str, ENDING_CLASSES[number] or ()))
            sure = float(1 - begins[start, 0]) if number else float(inside[start:stop].mean())
            rows.append((system["page"], system["system"], x0, x1, numbers, number > 0, sure))
        is_open = bool(brackets) and brackets[-1][1] >= stops[-1] and not is_last[-1]
    return np.array(rows, dtype=ENDING_DTYPE)


def _starts(begins: Float32) -> list[int]:
    """Return the columns in which brackets begin, from left to right."""
    apart = round(_APART_SPACES * SPACE_PX / ENDING_COLUMN_PX)
    return find_peaks(1 - begins[:, 0], _LEAST, apart)


def _stop(
    start: int, stops: list[int], is_last: list[bool], starts: list[int], inside: Float32, least: float
) -> int:
    """Return where a bracket ends: after its first measure, and others above which it is seen."""
    end = 0 if start == 0 else min((stop for stop in stops if stop > start + 2), default=len(inside))
    following = min((other for other in starts if other > start), default=len(inside))
    before = start
    for stop, ends_here in zip(stops, is_last, strict=True):
        if stop <= start + 2:
            continue
        seen = float(inside[before:stop].mean()) if stop > before else 0.0
        if before > start and before >= following - 2:
            break
        if (before > start or start == 0) and seen < least:
            break
        end = before = stop
        if ends_here:
            break
    return end
