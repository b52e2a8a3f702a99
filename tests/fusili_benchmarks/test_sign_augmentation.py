"""Variations of strips: a staff of five lines, 8 pixels a space, with one note before a bar line."""

from __future__ import annotations

import numpy as np

from fusili_benchmarks.sign_augmentation import crowd_bar_lines


class _Always(np.random.Generator):
    """Draws the lower end of every range."""

    def __init__(self) -> None:
        super().__init__(np.random.PCG64(0))

    def uniform(self, low: float = 0.0, high: float = 1.0, size: None = None) -> float:  # type: ignore[override]
        return low


def staff_with_note():
    strip = np.full((1, 80, 200), 255, np.uint8)
    strip[0, 24:57:8] = 0
    strip[0, 36:44, 100:110] = 0  # a note
    strip[0, 24:57, 150] = 0  # a bar line
    return strip


def test_music_is_moved_up_to_a_bar_line_and_bar_lines_before_it_move_along() -> None:
    strip, lines = crowd_bar_lines(staff_with_note(), [(40.0, "single"), (150.0, "double")], _Always())
    dark = np.flatnonzero((strip[0, 38] == 0) & (np.arange(200) != 150))
    assert dark[-1] > 110
    assert lines[1] == (150.0, "double")
    assert lines[0][0] == 40.0 + (dark[-1] - 109)


def test_the_dots_of_a_repeat_sign_keep_their_distance() -> None:
    before = staff_with_note()
    strip, lines = crowd_bar_lines(before, [(150.0, "repeat-end")], _Always())
    np.testing.assert_array_equal(strip, before)
    assert lines == [(150.0, "repeat-end")]
