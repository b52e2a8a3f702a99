"""Brackets of first and second endings above the systems of page images.

A small network says where brackets begin, and above which measures they run (`fusili_mir.pages.sign_network`).
What is known about them decides the rest: a bracket is a thin level line that begins beside a bar line and ends
at one; a first ending ends with a repeat sign, and others follow it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fusili_mir.arrays import Float32, GreyImage, Table
from fusili_mir.pages.bar_lines import find_peaks, ink_strips
from fusili_mir.pages.level_lines import LevelLines
from fusili_mir.pages.sign_network import (
    ENDING_CLASSES,
    ENDING_COLUMN_PX,
    ENDING_MARGIN_SPACES,
    ENDING_ROWS_PX,
    SPACE_PX,
    ending_scores,
)

__all__ = ["ENDING_DTYPE", "Bracket", "find_brackets", "find_endings"]

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
_APART_PX = 3 * SPACE_PX  # smallest distance of beginnings
_SHORTEST_PX = 4 * SPACE_PX
_BEFORE_PX, _AFTER_PX = 1.5 * SPACE_PX, 4.0 * SPACE_PX  # from a bar line to a beginning
_CORNER_PX = 2 * SPACE_PX  # from where the network sees a beginning to its corner
_NEXT_PX = 3.5 * SPACE_PX  # from the end of an ending to the beginning of the next
_SKIPPED_PX = 2 * SPACE_PX  # a bar line so near to a beginning is the one at which it begins
_CLEAR = 0.8  # share of a line that is seen where it can be seen well
_GOES_ON, _FADES, _SURELY = 0.75, 0.4, 0.9  # shares of a measure below a line, and of what the network sees
_CONTINUED = 0.4  # share of a measure below a bracket that goes on, where no line is seen
_CONTINUED_IN_NEXT = 0.7  # the same in the next system
_OVERHEAD = 0.5  # share of the first measure of a bracket
_THICKEST_PX = 0.35 * SPACE_PX  # of its line; beams are half a space thick
_CERTAIN = 0.99  # probability of a beginning that a thick line does not outweigh: something may touch it
_ENDS = ("repeat-end", "repeat-both")


@dataclass(frozen=True)
class Bracket:
    """A bracket in the strip above a system, in pixels of the strip.

    Attributes
    ----------
    first, stop : int
        Its ends.
    number : int
        Which of `ENDING_CLASSES` it is; 0 for the rest of a bracket that begins in the system before.
    probability : float
    """

    first: int
    stop: int
    number: int
    probability: float


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
    is_open, may_follow = False, True  # nothing is known about the page before
    bottom = -np.inf  # of the system before
    for system in systems:
        first_staff = staves[(staves["system"] == system["system"]) & (staves["staff"] == 0)]
        strips, segment = ink_strips(ink, system, first_staff, ENDING_MARGIN_SPACES)
        on_page = segment.pieces[0].on_page
        scale = segment.width_px / (on_page.x1 - on_page.x0)  # pixels of the strip per pixel of the page
        lines = bar_lines[bar_lines["system"] == system["system"]]
        stops = [round((float(line["x"]) - on_page.x0) * scale) for line in lines]
        ends_here = [str(line["kind"]) in _ENDS for line in lines]
        above_px = (bottom - on_page.y0) * SPACE_PX / float(first_staff["space_px"][0]) + SPACE_PX / 2
        first_row = int(np.clip(above_px, 0, ENDING_ROWS_PX))
        strip = strips[0, :ENDING_ROWS_PX]
        strip[:first_row] = 0  # what is there belongs to the system above
        brackets = find_brackets(strip, stops, ends_here, is_open, may_follow, first_row)
        for bracket in brackets:
            x0, x1 = (on_page.x0 + column / scale for column in (bracket.first, bracket.stop))
            numbers = ",".join(map(str, ENDING_CLASSES[bracket.number] or ()))
            begins, sure = bracket.number > 0, bracket.probability
            rows.append((system["page"], system["system"], x0, x1, numbers, begins, sure))
        reaches_end = bool(brackets) and brackets[-1].stop >= (stops or [segment.width_px])[-1]
        repeats_at_end = bool(ends_here) and ends_here[-1]
        is_open, may_follow = reaches_end and not repeats_at_end, reaches_end or repeats_at_end
        bottom = float(system["y1"])
    return np.array(rows, dtype=ENDING_DTYPE)


def find_brackets(
    strip: Float32,
    stops: list[int],
    ends_here: list[bool],
    is_open: bool = False,
    may_follow: bool = True,
    first_row: int = 0,
) -> list[Bracket]:
    """Find the brackets in the strip above a system.

    Parameters
    ----------
    strip : np.ndarray [shape=(height, width)]
        Ink above the first staff; see `ending_scores`.
    stops : list of int
        Columns of the bar lines.
    ends_here : list of bool
        Whether each of them ends a repeat.
    is_open : bool
        Whether a bracket goes on beyond the end of the system before.
    may_follow : bool
        Whether the system before ends with a bracket or a repeat sign, or is unknown.
    first_row : int
        Rows above it belong to the system before.

    Returns
    -------
    list of Bracket
        From left to right.
    """
    return _Above(strip, stops, ends_here, first_row).brackets(is_open, may_follow)


@dataclass(frozen=True)
class _Start:
    """Where a bracket begins, and the row of its line if one is seen."""

    column: int
    row: int | None
    number: int
    probability: float


class _Above:
    """The strip above a system: what the network sees in it, and its lines."""

    def __init__(self, strip: Float32, stops: list[int], ends_here: list[bool], first_row: int) -> None:
        self._begins, self._inside = ending_scores(strip)
        self._lines = LevelLines(strip, first_row)
        width = strip.shape[1]
        self._bar_lines = stops
        self._stops = stops or [width]
        self._ends_here = ends_here if stops else [False]

    def brackets(self, is_open: bool, may_follow: bool) -> list[Bracket]:
        starts = self._starts()
        found: list[Bracket] = []
        following = starts[0].column if starts else len(self._inside) * ENDING_COLUMN_PX
        if is_open and following + _SKIPPED_PX >= self._stops[0]:
            rest = self._rest(following)
            found += [rest] if rest else []
        for number, start in enumerate(starts):
            stop = self._stop(start, starts[number + 1].column if number + 1 < len(starts) else None)
            bracket = Bracket(start.column, stop, start.number, start.probability)
            if stop - start.column >= _SHORTEST_PX and self._is_likely(bracket, found, may_follow):
                found.append(bracket)
        return found

    def _starts(self) -> list[_Start]:
        """Return where brackets begin, at most one in each measure."""
        likely = 1 - self._begins[:, 0]
        starts: list[_Start] = []
        for peak in find_peaks(likely, _LEAST, _APART_PX // ENDING_COLUMN_PX):
            seen_at = round((peak + 0.5) * ENDING_COLUMN_PX)
            if not self._may_begin(seen_at):
                continue
            stop = self._next(seen_at)
            corner = self._lines.corner(seen_at - _CORNER_PX, seen_at + _CORNER_PX, stop)
            row, column = corner or (
                self._lines.row(seen_at + SPACE_PX, min(seen_at + 7 * SPACE_PX, stop)),
                seen_at,
            )
            is_beam = likely[peak] < _CERTAIN and self._is_beam(row, column, stop)
            if is_beam or not self._is_overhead(column, row):
                continue
            number = int(self._begins[peak, 1:].argmax()) + 1
            start = _Start(column, row, number, float(likely[peak]))
            last = starts[-1] if starts else None
            if last is not None and not any(
                last.column + _SKIPPED_PX < stop <= column + _SKIPPED_PX for stop in self._stops
            ):
                if (row is not None, start.probability) > (last.row is not None, last.probability):
                    starts[-1] = start
            else:
                starts.append(start)
        return starts

    def _may_begin(self, column: int) -> bool:
        """Return whether a column is in the first measure, or beside a bar line."""
        if column <= self._stops[0] + _AFTER_PX:
            return True
        return any(-_BEFORE_PX <= column - stop <= _AFTER_PX for stop in self._bar_lines)

    def _is_overhead(self, column: int, row: int | None) -> bool:
        """Return whether a line is seen above the first measure of a bracket, or the network sees one."""
        stop = self._next(column)
        if self._overhead(column, stop) >= _OVERHEAD:
            return True
        if row is None:
            return False
        return self._lines.follow(row, column, stop).seen >= _SURELY

    def _is_beam(self, row: int | None, first: int, stop: int) -> bool:
        """Return whether a line is too thick for a bracket."""
        return row is not None and self._lines.thickness(row, first, stop) > _THICKEST_PX

    def _is_likely(self, bracket: Bracket, before: list[Bracket], may_follow: bool) -> bool:
        """Return whether a bracket ends with a repeat sign, follows one, or may do so in another system."""
        after_sign = any(
            ends and -_BEFORE_PX <= bracket.first - stop <= _AFTER_PX
            for stop, ends in zip(self._stops, self._ends_here, strict=True)
        )
        at_sign = any(
            ends and stop == bracket.stop for stop, ends in zip(self._stops, self._ends_here, strict=True)
        )
        follows = bool(before) and bracket.first - before[-1].stop < _NEXT_PX
        begins_system = bracket.first + _SKIPPED_PX < self._stops[0] and may_follow
        return at_sign or after_sign or follows or begins_system or bracket.stop >= self._stops[-1]

    def _next(self, column: int) -> int:
        return min(
            (stop for stop in self._stops if stop > column + _SKIPPED_PX),
            default=len(self._inside) * ENDING_COLUMN_PX,
        )

    def _overhead(self, first: int, stop: int) -> float:
        """Return how much of some columns the network sees below a bracket."""
        left = first // ENDING_COLUMN_PX
        return float(self._inside[left : max(left + 1, stop // ENDING_COLUMN_PX)].mean())

    def _stop(self, start: _Start, following: int | None) -> int:
        """Return where a bracket ends: after its first measure, and others above which it goes on."""
        end, row, is_clear = None, start.row, False
        for stop, ends_here in zip(self._stops, self._ends_here, strict=True):
            if stop <= start.column + _SKIPPED_PX:
                continue
            if end is not None and following is not None and stop > following + _SKIPPED_PX:
                break
            left = start.column if end is None else end
            line = None if row is None else self._lines.follow(row, left, stop)
            seen, overhead = 0.0 if line is None else line.seen, self._overhead(left, stop)
            if end is None:
                is_clear = seen >= _CLEAR
            elif is_clear:
                if seen < _GOES_ON and not (seen >= _FADES and overhead >= _SURELY):
                    break
            elif overhead < _CONTINUED:
                break
            end, row = stop, row if line is None else line.row
            if ends_here:
                break
        return end or len(self._inside) * ENDING_COLUMN_PX

    def _rest(self, following: int) -> Bracket | None:
        """Return the rest of a bracket that goes on from the system before; its line begins after the clef."""
        row = self._rest_row()
        below = np.flatnonzero(self._inside[: self._stops[0] // ENDING_COLUMN_PX] >= _OVERHEAD)
        if not len(below) and row is None:
            return None
        first = int(below[0]) * ENDING_COLUMN_PX if row is None else self._lines.begin(row, self._stops[0])
        end = first
        for stop, ends_here in zip(self._stops, self._ends_here, strict=True):
            line = None if row is None else self._lines.follow(row, end, stop)
            is_seen = line is not None and line.seen >= _GOES_ON
            if not is_seen and self._overhead(end, stop) < _CONTINUED_IN_NEXT:
                break
            if stop > following + _SKIPPED_PX:
                break
            end, row = stop, row if line is None else line.row
            if ends_here:
                break
        if end - first < _SHORTEST_PX:
            return None
        seen = 0.0 if row is None else self._lines.follow(row, first, end).seen
        return Bracket(first, end, 0, max(seen, self._overhead(first, end)))

    def _rest_row(self) -> int | None:
        """Return the row of a line above the second half of the first measure, which ends with it or goes on."""
        first, stop = self._stops[0] // 2, self._stops[0] - SPACE_PX // 2
        row = self._lines.row(first, stop) if stop - first >= _SHORTEST_PX else None
        if row is None or self._is_beam(row, first, stop):
            return None
        # Hairpins and words in a row are seen in part.
        return row if self._lines.follow(row, self._lines.begin(row, stop), stop).seen >= _SURELY else None
