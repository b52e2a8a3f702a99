"""Thin level lines in the strip above a staff, and the corners with which brackets begin.

The strip is ink, `SPACE_PX` pixels a space: 0 is paper. A line may sink or rise slowly, as on bent paper.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fusili_mir.arrays import Bool, Float32
from fusili_mir.pages.sign_network import ENDING_MARGIN_SPACES, SPACE_PX

__all__ = ["FollowedLine", "LevelLines"]

_DARK = 0.2  # darker than the paper above or below
_DENSEST = 0.3  # share of pixels that are; more are noise, and count for less
_BESIDE_PX = 3
_STEP_PX = 4
_LOWEST_ROW = round((ENDING_MARGIN_SPACES - 0.75) * SPACE_PX)  # below are the staff lines
_ARM_PX, _HOOK_PX = 24, 9  # what is seen of a line to the right of a corner, and below it
_MOST_CORNERS, _APART_PX = 3, 4  # corners to choose from, and their distance
_STEP = 0.5  # share of a step along a line that is seen where it goes on
_LINE, _HOOK, _BEYOND = 0.8, 0.7, 0.45  # shares of dark pixels along a line and a hook, and above a corner


@dataclass(frozen=True)
class FollowedLine:
    """A stretch of a line: the share of it that is seen, and the row in which it ends."""

    seen: float
    row: int


class LevelLines:
    """What is level and what is upright in a strip.

    Parameters
    ----------
    strip : np.ndarray [shape=(height, width)]
        Ink above a staff; see `fusili_mir.pages.sign_network.ending_scores`.
    first_row : int
        Rows above it belong to the system above.
    """

    def __init__(self, strip: Float32, first_row: int = 0) -> None:
        ink = np.clip(strip / max(float(np.percentile(strip, 99.5)), _DARK), 0, 1.5)
        self._ink = ink
        over, under = _shifted(ink, _BESIDE_PX, 0), _shifted(ink, -_BESIDE_PX, 0)
        left, right = _shifted(ink, _BESIDE_PX, 1), _shifted(ink, -_BESIDE_PX, 1)
        level, upright = ink - np.minimum(over, under), ink - np.minimum(left, right)
        darkness = max(_DARK, float(np.quantile(level[:_LOWEST_ROW], 1 - _DENSEST)))
        self._level = _widened(level > darkness, 0)
        self._upright = _widened(upright > darkness, 1)
        self._rows = slice(max(2, first_row), _LOWEST_ROW)

    def corner(self, first: int, stop: int, line_stop: int) -> tuple[int, int] | None:
        """Return the row and column of the clearest corner of a bracket in some columns, if there is one.

        Of several, the one whose line can be seen best up to `line_stop` counts.
        """
        first, stop = max(0, first), min(stop, self._level.shape[1])
        if stop <= first:
            return None
        arm = _ahead(self._level, 1, 2, _ARM_PX + 2)[self._rows, first:stop]
        hook = _ahead(self._upright, 0, 2, _HOOK_PX)[self._rows, first:stop]
        beyond = _ahead(self._upright, 0, -_HOOK_PX, -3)[self._rows, first:stop]
        before = _ahead(self._level, 1, -_HOOK_PX, -2)[self._rows, first:stop]
        fits = (arm >= _LINE) & (hook >= _HOOK) & (beyond <= _BEYOND)
        clear = np.where(fits, arm + hook - beyond - 0.3 * before, 0)
        found: list[tuple[float, int, int]] = []
        while clear.size and clear.max() > 0 and len(found) < _MOST_CORNERS:
            row, column = (int(place) for place in np.unravel_index(int(clear.argmax()), clear.shape))
            seen = self.follow(row + self._rows.start, column + first, line_stop).seen
            found.append((float(clear[row, column]) + 2 * seen, row + self._rows.start, column + first))
            clear[max(0, row - _APART_PX) : row + _APART_PX + 1] = 0
        return max(found)[1:] if found else None

    def row(self, first: int, stop: int) -> int | None:
        """Return the row in which a line runs along some columns, if there is one."""
        seen = self._level[self._rows, max(0, first) : stop]
        if not seen.size:
            return None
        share = seen.mean(axis=1)
        return int(share.argmax()) + self._rows.start if share.max() >= _LINE else None

    def begin(self, row: int, stop: int) -> int:
        """Follow a line backwards from a column to the one in which it begins."""
        for left in range(stop - 2 * _STEP_PX, -1, -_STEP_PX):
            row, share = self._step(row, slice(left, left + _STEP_PX))
            if share < _STEP:
                return left + _STEP_PX
        return 0

    def thickness(self, row: int, first: int, stop: int) -> float:
        """Return the height of what is drawn around a row in some columns, as if it were black, in pixels."""
        around = self._ink[max(0, row - _BESIDE_PX - 1) : row + _BESIDE_PX + 2, max(0, first) : stop]
        return float(np.median(around.sum(axis=0))) if around.size else 0.0

    def follow(self, row: int, first: int, stop: int) -> FollowedLine:
        """Follow a line from a row in one column to another column."""
        stop = min(stop, self._level.shape[1])
        n_seen = 0
        for left in range(first, stop, _STEP_PX):
            columns = slice(left, min(left + _STEP_PX, stop))
            near, share = self._step(row, columns)
            row = near if share >= _STEP else row
            n_seen += int(self._level[row, columns].sum())
        return FollowedLine(n_seen / max(1, stop - first), row)

    def _step(self, row: int, columns: slice) -> tuple[int, float]:
        """Return the row in which a line goes on, at most one higher or lower, and the share of it seen there."""
        near = [r for r in (row, row - 1, row + 1) if 0 <= r < len(self._level)]
        share = [float(self._level[r, columns].mean()) for r in near]
        best = max(range(len(near)), key=lambda n: share[n] + 0.1 * (n == 0))
        return near[best], share[best]


def _shifted(ink: Float32, by: int, axis: int) -> Float32:
    padding = [(abs(by), abs(by)) if each == axis else (0, 0) for each in range(2)]
    padded = np.pad(ink, padding, mode="edge")
    return np.take(padded, np.arange(ink.shape[axis]) + abs(by) - by, axis=axis)


def _widened(marked: Bool, axis: int) -> Bool:
    """Mark the neighbours of marked pixels, too."""
    wide = marked.copy()
    ahead, behind = [slice(None)] * 2, [slice(None)] * 2
    ahead[axis], behind[axis] = slice(1, None), slice(None, -1)
    wide[tuple(ahead)] |= marked[tuple(behind)]
    wide[tuple(behind)] |= marked[tuple(ahead)]
    return wide


def _ahead(marked: Bool, axis: int, first: int, stop: int) -> Float32:
    """Return the share of marked pixels among those from `first` to `stop` after each one."""
    padding = [(1, 0) if each == axis else (0, 0) for each in range(2)]
    counted = np.pad(np.cumsum(marked, axis=axis, dtype=np.int32), padding)
    place = np.arange(marked.shape[axis])
    ends = (np.clip(place + offset, 0, marked.shape[axis]) for offset in (first, stop))
    low, high = (np.take(counted, end, axis=axis) for end in ends)
    return ((high - low) / np.float32(stop - first)).astype(np.float32)
