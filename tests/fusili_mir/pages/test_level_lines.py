"""Level lines and corners, drawn by hand: 8 pixels a space, a strip of 140 rows."""

from __future__ import annotations

import numpy as np

from fusili_mir.pages.level_lines import LevelLines


def strip_with_bracket(first: int = 80, stop: int = 240, row: int = 40):
    strip = np.zeros((140, 400), np.float32)
    strip[row : row + 2, first:stop] = 1
    strip[row : row + 16, first : first + 2] = 1  # its hook
    strip[120:122] = 1  # the staff
    return strip


def test_a_corner_is_where_line_and_hook_meet() -> None:
    corner = LevelLines(strip_with_bracket()).corner(60, 100, 240)
    assert corner is not None
    assert abs(corner[0] - 40) <= 2
    assert abs(corner[1] - 80) <= 2


def test_of_two_corners_the_one_with_the_longer_line_counts() -> None:
    strip = strip_with_bracket(row=40)
    strip[10:12, 80:112] = 1
    strip[10:26, 80:82] = 1
    corner = LevelLines(strip).corner(60, 100, 240)
    assert corner is not None
    assert abs(corner[0] - 40) <= 2


def test_a_line_without_a_hook_and_a_stem_without_a_line_are_no_corners() -> None:
    line, stem = np.zeros((2, 140, 400), np.float32)
    line[40:42, 80:240] = 1
    stem[30:60, 80:82] = 1
    assert LevelLines(line).corner(60, 100, 240) is None
    assert LevelLines(stem).corner(60, 100, 240) is None


def test_a_stroke_that_goes_up_as_well_is_no_corner() -> None:
    strip = strip_with_bracket()
    strip[20:40, 80:82] = 1
    assert LevelLines(strip).corner(60, 100, 240) is None


def test_a_line_is_followed_to_its_end() -> None:
    lines = LevelLines(strip_with_bracket())
    assert lines.follow(40, 80, 240).seen > 0.95
    assert lines.follow(40, 240, 400).seen < 0.1


def test_a_line_may_sink_slowly() -> None:
    strip = np.zeros((140, 400), np.float32)
    for column in range(80, 400):
        strip[40 + column // 20 : 42 + column // 20, column] = 1
    followed = LevelLines(strip).follow(44, 80, 400)
    assert followed.seen > 0.9
    assert abs(followed.row - 59) <= 2


def test_the_system_above_has_no_lines_here() -> None:
    strip = strip_with_bracket(row=10)
    assert LevelLines(strip).row(90, 140) is not None
    assert LevelLines(strip, first_row=20).row(90, 140) is None


def test_a_beam_is_thicker_than_a_bracket() -> None:
    strip = strip_with_bracket(row=40)
    strip[70:74, 80:240] = 1  # half a space
    lines = LevelLines(strip)
    assert lines.thickness(40, 90, 230) == 2
    assert lines.thickness(71, 90, 230) == 4


def test_a_line_is_followed_backwards_to_its_beginning() -> None:
    assert abs(LevelLines(strip_with_bracket()).begin(40, 240) - 80) <= 4
