"""The dots of repeat signs: two round ones beside the line, with nothing above or below them.

A sixteenth rest has two balls where the dots would be, and a stem below them.
"""

from __future__ import annotations

import numpy as np

from fusili_mir.arrays import Float32
from fusili_mir.pages.sign_network import SPACE_PX

__all__ = ["has_dots"]

_NEAREST_PX, _FARTHEST_PX = 2, 15  # from the middle of a sign to its dots
_REACH_PX = 2  # columns beside a dot
_INNER = (slice(3, 7), slice(-6, -2))  # rows below the middle of a staff: the two spaces with dots
_OUTER = (slice(11, 15), slice(-14, -10))  # and the other two
_LINE = 0.45  # ink of a column in all four spaces: a part of the bar line
_ALONE = 0.75  # ink in the outer spaces, as a share of that in the inner ones
_FAINT = 0.1  # ink in which no dots can be told


def has_dots(strips: Float32, column: int, side: int) -> bool:
    """Return whether the dots of a repeat sign stand alone in any staff, or cannot be seen well.

    Parameters
    ----------
    strips : np.ndarray [shape=(n_staves, height, width)]
        Ink of the staves, 8 pixels a space, with their middle lines in the middle.
    column : int
        Middle of the sign.
    side : -1 or 1
        Whether the dots are to the left or to the right.

    Returns
    -------
    bool
        Also True at the ends of the strips, and in a single staff, in which something else may be near the dots.
    """
    first, stop = sorted((column + side * _NEAREST_PX, column + side * _FARTHEST_PX))
    seen = strips[:, :, max(0, first) : max(0, stop)]
    if len(strips) == 1 or seen.shape[2] < SPACE_PX:
        return True
    middle = strips.shape[1] // 2
    return any(_stands_alone(staff, middle) for staff in seen)


def _stands_alone(staff: Float32, middle: int) -> bool:
    inner, outer = ([_rows(staff, middle, rows) for rows in spaces] for spaces in (_INNER, _OUTER))
    is_line = np.min(outer, axis=0) > _LINE * max(0.3, float(staff.max()))
    is_line[1:] |= is_line[:-1].copy()
    is_line[:-1] |= is_line[1:].copy()
    dots = np.where(is_line, 0, np.min(inner, axis=0))
    dot = int(dots.argmax())
    others = np.where(is_line, 0, np.max(outer, axis=0))[max(0, dot - _REACH_PX) : dot + _REACH_PX + 1]
    return bool(dots[dot] < _FAINT or others.max() < _ALONE * dots[dot])


def _rows(staff: Float32, middle: int, rows: slice) -> Float32:
    """Return the mean ink of some rows, counted from the middle of a staff, in each column."""
    return np.asarray(staff[middle + rows.start : middle + rows.stop].mean(axis=0), np.float32)
