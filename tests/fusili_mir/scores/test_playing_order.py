from __future__ import annotations

import pytest

from fusili_mir.errors import InputError
from fusili_mir.scores.playing_order import parse_playing_order, write_playing_order

SIX = ["1", "2", "3", "4", "5", "6"]


@pytest.mark.parametrize(
    "text", ["1-2 1-2 3-6", "1-2, 1-2, 3-", "1-2\n1-2\n3-6", "1 2 1-2 3-6", "1\N{EN DASH}2 1\N{EN DASH}2 3-6"]
)
def test_spans_are_separated_by_spaces_commas_or_lines(text) -> None:
    assert parse_playing_order(text, SIX) == (0, 1, 0, 1, 2, 3, 4, 5)


def test_numbers_are_the_printed_ones() -> None:
    assert parse_playing_order("0-12a 12a", ["0", "12", "12a"]) == (0, 1, 2, 2)


def test_a_measure_that_a_repeat_sign_divides_is_named_as_one() -> None:
    assert parse_playing_order("1-2 2-3", ["1", "2", "2", "3"]) == (0, 1, 2, 1, 2, 3)


def test_a_file_may_have_lines_and_comments(tmp_path) -> None:
    file = tmp_path / "repeats.txt"
    file.write_text("1-2  # the theme\n1-2\n\n# without the second repeat\n3-6\n")
    expected = (0, 1, 0, 1, 2, 3, 4, 5)
    assert parse_playing_order(file, SIX) == expected
    assert parse_playing_order(str(file), SIX) == expected


def test_a_sequence_of_measures_or_spans_is_read_alike() -> None:
    assert parse_playing_order([1, 2, "1-3"], SIX) == (0, 1, 0, 1, 2)


@pytest.mark.parametrize(
    ("order", "message"),
    [
        ("", "repeats are '', expected measures as played, such as '1-8 1-8 9-16'"),
        ("-3", "'-3' is no span"),
        ("1-2-3", "'1-2-3' is no span"),
        ("3-1", "repeats '3-1' go backwards"),
        ("1-9", "repeats name measure 9; the measures of the score are 1 to 6"),
        ("orders/mine.txt", "'orders/mine.txt' are neither a file that exists nor a measure of the score"),
        ("mine.txt", "'mine.txt' are neither a file that exists nor a measure of the score"),
        (7, "repeats are 7, expected measures as played"),
        ("1-6 " * 20000, "repeats: .* measures as played, expected at most 100000"),
    ],
)
def test_what_is_no_order_is_refused_in_one_line(order, message) -> None:
    with pytest.raises(InputError, match=message) as refused:
        parse_playing_order(order, SIX)
    assert "\n" not in str(refused.value)


def test_numbers_that_begin_anew_in_another_movement_are_refused() -> None:
    with pytest.raises(InputError, match="measure 1, which the score has 2 times, in different places"):
        parse_playing_order("1-2", ["1", "2", "1", "2"])


def test_a_file_that_is_no_text_is_refused(tmp_path) -> None:
    file = tmp_path / "repeats.txt"
    file.write_bytes(b"\xff\xfe\x00\x81")
    with pytest.raises(InputError, match="cannot be read"):
        parse_playing_order(file, SIX)
    with pytest.raises(InputError, match="cannot be read"):
        parse_playing_order(tmp_path, SIX)


def test_parts_of_a_divided_measure_have_letters_that_are_read_and_written() -> None:
    numbers = ["0", "1", "2", "2", "3"]
    played = [(0, 3), (1, 3), (3, 5)]
    assert write_playing_order(played, numbers) == "0-2a 1-2a 2b-3"
    assert parse_playing_order("0-2a 1-2a 2b-3", numbers) == (0, 1, 2, 1, 2, 3, 4)
    assert parse_playing_order("2", numbers) == (2, 3)
    assert write_playing_order([(2, 3), (3, 4), (2, 4)], numbers) == "2a 2b 2"


@pytest.mark.parametrize("text", ["", "  \n", "# nothing yet\n"])
def test_a_file_without_measures_is_named(tmp_path, text) -> None:
    file = tmp_path / "repeats.txt"
    file.write_text(text)
    with pytest.raises(
        InputError, match=r"repeats\.txt: a file without measures; expected measures as played"
    ):
        parse_playing_order(file, SIX)
