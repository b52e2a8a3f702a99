"""Measures from bar lines: systems of 100 staff spaces of 10 px, worked out by hand."""

from __future__ import annotations

import numpy as np

from fusili_mir.boxes import SYSTEM_DTYPE
from fusili_mir.pages.bar_lines import BAR_LINE_DTYPE
from fusili_mir.pages.endings import ENDING_DTYPE
from fusili_mir.pages.read_measures import read_measures
from fusili_mir.scores.repeat_structure import Ending, RepeatStructure


def systems(n: int = 1):
    rows = [(0, number, 2, 100, 300 * number + 100, 1100, 300 * number + 240, 10) for number in range(n)]
    return np.array(rows, SYSTEM_DTYPE)


def bar_lines(*rows: tuple[int, float, str]):
    return np.array([(0, system, x, kind, 1.0) for system, x, kind in rows], BAR_LINE_DTYPE)


def endings(*rows: tuple[int, float, float, str, bool]):
    return np.array(
        [(0, system, x0, x1, numbers, begins, 1.0) for system, x0, x1, numbers, begins in rows], ENDING_DTYPE
    )


FOUR = ((0, 400, "single"), (0, 600, "single"), (0, 850, "single"), (0, 1100, "final"))


def test_measures_lie_between_bar_lines_and_are_counted_from_1() -> None:
    read = read_measures(systems(), bar_lines(*FOUR), endings())
    assert read.measures["x0"].tolist() == [100, 400, 600, 850]
    assert read.measures["x1"].tolist() == [400, 600, 850, 1100]
    assert read.measures["number"].tolist() == ["1", "2", "3", "4"]
    assert read.measures["y1"].tolist() == [240] * 4
    assert not read.repeats.has_repeats


def test_numbers_go_on_in_the_next_system() -> None:
    lines = bar_lines((0, 600, "single"), (0, 1100, "single"), (1, 500, "single"), (1, 1100, "final"))
    measures = read_measures(systems(2), lines, endings()).measures
    assert measures["number"].tolist() == ["1", "2", "3", "4"]
    assert measures["system"].tolist() == [0, 0, 1, 1]
    assert measures["measure"].tolist() == [0, 1, 2, 3]


def test_a_narrow_first_measure_is_an_upbeat() -> None:
    lines = bar_lines((0, 230, "single"), (0, 500, "single"), (0, 800, "single"), (0, 1100, "final"))
    assert read_measures(systems(), lines, endings()).measures["number"].tolist() == ["0", "1", "2", "3"]


def test_repeat_signs_belong_to_the_measures_beside_them() -> None:
    lines = bar_lines(
        (0, 400, "repeat-begin"), (0, 600, "repeat-both"), (0, 850, "repeat-end"), (0, 1100, "final")
    )
    repeats = read_measures(systems(), lines, endings()).repeats
    assert repeats == RepeatStructure(4, begins=(1, 2), ends=(1, 2))


def test_a_repeat_sign_after_the_clef_divides_nothing() -> None:
    lines = bar_lines(
        (0, 600, "single"), (0, 1100, "single"), (1, 170, "repeat-begin"), (1, 1100, "repeat-end")
    )
    read = read_measures(systems(2), lines, endings())
    assert read.measures["x0"].tolist() == [100, 600, 170]
    assert read.repeats == RepeatStructure(3, begins=(2,), ends=(2,))


def test_a_signature_after_the_last_bar_line_is_no_measure_but_a_measure_without_one_is() -> None:
    lines = bar_lines((0, 600, "single"), (0, 1060, "single"), (1, 600, "single"))
    read = read_measures(systems(2), lines, endings())
    assert read.measures["x1"].tolist() == [600, 1060, 600, 1100]


def test_a_system_without_bar_lines_is_one_measure() -> None:
    read = read_measures(systems(2), bar_lines(), endings())
    assert read.measures["x0"].tolist() == [100, 100]
    assert len(read_measures(systems(0), bar_lines(), endings()).measures) == 0


def test_endings_cover_the_measures_below_their_brackets() -> None:
    lines = bar_lines((0, 400, "single"), (0, 600, "repeat-end"), (0, 850, "single"), (0, 1100, "final"))
    brackets = endings((0, 402, 596, "1", True), (0, 604, 845, "2", True))
    repeats = read_measures(systems(), lines, brackets).repeats
    assert repeats.endings == (Ending(1, 2, (1,)), Ending(2, 3, (2,)))


def test_numbers_that_were_not_read_follow_from_their_order() -> None:
    lines = bar_lines((0, 400, "single"), (0, 600, "repeat-end"), (0, 850, "single"), (0, 1100, "final"))
    brackets = endings((0, 402, 596, "", True), (0, 604, 845, "1", True))
    repeats = read_measures(systems(), lines, brackets).repeats
    assert [ending.numbers for ending in repeats.endings] == [(1,), (2,)]


def test_a_bracket_goes_on_in_the_next_system() -> None:
    lines = bar_lines((0, 600, "single"), (0, 1100, "single"), (1, 500, "repeat-end"), (1, 1100, "final"))
    brackets = endings((0, 605, 1100, "1", True), (1, 150, 490, "", False), (1, 505, 1090, "2", True))
    repeats = read_measures(systems(2), lines, brackets).repeats
    assert repeats.endings == (Ending(1, 3, (1,)), Ending(3, 4, (2,)))


def test_a_bracket_without_any_repeat_is_something_else() -> None:
    assert read_measures(systems(), bar_lines(*FOUR), endings((0, 402, 596, "1", True))).repeats.endings == ()


def test_the_parts_of_a_measure_that_a_repeat_sign_divides_share_a_number_where_an_upbeat_comes_again() -> (
    None
):
    upbeat = ((0, 230, "single"), (0, 500, "single"), (0, 800, "single"), (0, 1100, "single"))
    divided = ((1, 350, "single"), (1, 600, "single"), (1, 780, "repeat-end"), (1, 870, "single"))
    lines = bar_lines(*upbeat, *divided, (1, 1100, "final"))
    numbers = read_measures(systems(2), lines, endings()).measures["number"].tolist()
    assert numbers == ["0", "1", "2", "3", "4", "5", "6", "6", "7"]


def test_a_measure_may_be_divided_by_the_end_of_a_system() -> None:
    upbeat = ((0, 230, "single"), (0, 500, "single"), (0, 870, "single"), (0, 1100, "repeat-end"))
    divided = ((1, 190, "repeat-begin"), (1, 260, "single"), (1, 540, "single"), (1, 820, "single"))
    lines = bar_lines(*upbeat, *divided, (1, 1100, "final"))
    numbers = read_measures(systems(2), lines, endings()).measures["number"].tolist()
    assert numbers == ["0", "1", "2", "3", "3", "4", "5", "6"]


def test_a_repeat_sign_between_whole_measures_divides_none() -> None:
    upbeat = ((0, 230, "single"), (0, 500, "single"), (0, 800, "single"), (0, 1100, "single"))
    whole = ((1, 300, "single"), (1, 500, "repeat-end"), (1, 700, "single"), (1, 900, "single"))
    lines = bar_lines(*upbeat, *whole, (1, 1100, "final"))
    numbers = read_measures(systems(2), lines, endings()).measures["number"].tolist()
    assert numbers == [str(number) for number in range(9)]


def test_a_bracket_after_a_repeat_sign_is_the_next_ending_whatever_number_was_read() -> None:
    lines = bar_lines(
        (0, 600, "single"),
        (0, 1100, "repeat-end"),
        (1, 500, "single"),
        (1, 800, "single"),
        (1, 1100, "final"),
    )
    brackets = endings((0, 605, 1095, "1", True), (1, 150, 490, "1", True))
    repeats = read_measures(systems(2), lines, brackets).repeats
    assert repeats.endings == (Ending(1, 2, (1,)), Ending(2, 3, (2,)))
