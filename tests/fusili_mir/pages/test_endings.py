"""Brackets above a system, with a network that is told what to see: what is known about endings decides."""

from __future__ import annotations

import numpy as np
import pytest

from fusili_mir.pages import endings
from fusili_mir.pages.endings import find_brackets
from fusili_mir.pages.sign_network import ENDING_COLUMN_PX

STOPS = [160, 320, 480, 640]
WIDTH = 660


def strip_with(*brackets: tuple[int, int]):
    strip = np.zeros((140, WIDTH), np.float32)
    strip[120:122] = 1
    for first, stop in brackets:
        strip[40:42, first:stop] = 1
        strip[40:56, first : first + 2] = 1
    return strip


@pytest.fixture
def seen(monkeypatch):
    """Let the network see beginnings with their numbers, and what is below a bracket."""

    def see(*starts: tuple[int, int], inside: tuple[tuple[int, int], ...] = (), sure: float = 1.0) -> None:
        begins = np.zeros((WIDTH // ENDING_COLUMN_PX, 6), np.float32)
        begins[:, 0] = 1
        overhead = np.zeros(len(begins), np.float32)
        for column, number in starts:
            begins[column // ENDING_COLUMN_PX, 0] = 1 - sure
            begins[column // ENDING_COLUMN_PX, number] = sure
        for first, stop in inside:
            overhead[first // ENDING_COLUMN_PX : stop // ENDING_COLUMN_PX] = 1
        monkeypatch.setattr(endings, "ending_scores", lambda _: (begins, overhead))

    return see


def ends(brackets) -> list[tuple[int, int]]:
    return [(20 * round(bracket.first / 20), bracket.stop) for bracket in brackets]


def test_a_first_and_a_second_ending_end_at_bar_lines(seen) -> None:
    seen((160, 1), (324, 2), inside=((160, 640),))
    found = find_brackets(strip_with((160, 318), (324, 478)), STOPS, [False, True, False, False])
    assert ends(found) == [(160, 320), (320, 480)]
    assert [bracket.number for bracket in found] == [1, 2]


def test_a_line_that_is_seen_to_end_outweighs_the_network(seen) -> None:
    seen((324, 2), inside=((324, 640),))
    found = find_brackets(strip_with((324, 478)), STOPS, [False, True, False, False])
    assert ends(found) == [(320, 480)]


def test_a_number_without_a_line_is_no_ending(seen) -> None:
    seen((160, 1))
    assert not find_brackets(strip_with(), STOPS, [False, True, False, False])


def test_a_bracket_far_from_every_bar_line_is_no_ending(seen) -> None:
    seen((240, 1), inside=((240, 320),))
    assert not find_brackets(strip_with((240, 320)), STOPS, [False, True, False, False])


def test_a_bracket_needs_a_repeat_sign_or_another_one_nearby(seen) -> None:
    seen((160, 1), inside=((160, 320),))
    strip = strip_with((160, 318))
    assert not find_brackets(strip, STOPS, [False] * 4)
    assert ends(find_brackets(strip, STOPS, [False, True, False, False])) == [(160, 320)]


def test_a_second_ending_may_begin_the_system_after_a_repeat_sign(seen) -> None:
    seen((80, 2), inside=((80, 160),))
    strip = strip_with((80, 158))
    assert ends(find_brackets(strip, STOPS, [False] * 4, may_follow=True)) == [(80, 160)]
    assert not find_brackets(strip, STOPS, [False] * 4, may_follow=False)


def test_a_bracket_goes_on_in_the_next_system(seen) -> None:
    seen(inside=((0, 320),))
    found = find_brackets(strip_with(), STOPS, [False, True, False, False], is_open=True)
    assert [(bracket.first, bracket.stop, bracket.number) for bracket in found] == [(0, 320, 0)]


def test_a_level_beam_above_a_measure_is_no_bracket(seen) -> None:
    seen((480, 1), inside=((480, 640),), sure=0.8)
    strip = strip_with()
    strip[60:64, 484:636] = 1  # half a space thick, with stems
    strip[60:100, 484:486] = strip[60:100, 634:636] = 1
    assert not find_brackets(strip, STOPS, [False] * 4)
    thin = strip_with((484, 636))
    assert ends(find_brackets(thin, STOPS, [False] * 4)) == [(480, 640)]


def test_the_rest_of_a_bracket_is_a_line_without_hook_and_number(seen) -> None:
    seen()
    strip = strip_with()
    strip[40:42, 60:318] = 1
    found = find_brackets(strip, STOPS, [False] * 4, is_open=True)
    assert ends(found) == [(60, 320)]
    assert [bracket.number for bracket in found] == [0]
    assert found[0].probability > 0.9
    assert not find_brackets(strip, STOPS, [False] * 4, is_open=False)
    strip[38:44, 60:318] = 1  # a beam
    assert not find_brackets(strip, STOPS, [False] * 4, is_open=True)


def test_a_line_with_gaps_is_not_the_rest_of_a_bracket(seen) -> None:
    seen()
    strip = strip_with()
    strip[40:42, 60:158] = 1
    for gap in range(80, 150, 14):
        strip[40:42, gap : gap + 3] = 0
    assert not find_brackets(strip, STOPS, [False] * 4, is_open=True)
