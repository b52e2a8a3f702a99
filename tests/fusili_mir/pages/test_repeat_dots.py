"""Dots beside a double bar line, drawn by hand: 8 pixels a space, a staff from row 24 to row 56."""

from __future__ import annotations

import numpy as np
import pytest

from fusili_mir.pages.repeat_dots import has_dots


def staff_with_double_bar_line():
    strip = np.zeros((80, 100), np.float32)
    strip[24:57:8] = 0.8
    strip[24:57, 58:59] = strip[24:57, 62:63] = 1
    return strip


def with_dots(strip, column: int):
    for row in (36, 44):
        strip[row - 2 : row + 2, column - 2 : column + 2] = 1
    return strip


@pytest.mark.parametrize(("column", "side"), [(52, -1), (69, 1)])
def test_two_dots_beside_the_line_are_seen(column: int, side: int) -> None:
    staff = with_dots(staff_with_double_bar_line(), column)
    assert has_dots(np.stack([staff, staff]), 60, side)


def test_the_balls_of_a_rest_are_no_dots_because_its_stem_goes_on() -> None:
    rest = with_dots(staff_with_double_bar_line(), 52)
    rest[40:56, 51:54] = 1
    assert not has_dots(np.stack([rest, rest]), 60, -1)
    assert has_dots(rest[None], 60, -1)  # in a single staff, the network has the last word


def test_one_staff_whose_dots_stand_alone_is_enough() -> None:
    rest = with_dots(staff_with_double_bar_line(), 52)
    rest[40:56, 51:54] = 1
    dots = with_dots(staff_with_double_bar_line(), 52)
    assert has_dots(np.stack([rest, dots]), 60, -1)


def test_where_nothing_can_be_seen_dots_are_possible() -> None:
    staves = np.stack([staff_with_double_bar_line()] * 2)
    assert has_dots(staves, 60, -1)
    assert has_dots(staves, 3, -1)
