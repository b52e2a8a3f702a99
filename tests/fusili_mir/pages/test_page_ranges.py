from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fusili_mir.errors import InputError
from fusili_mir.pages.page_ranges import parse_page_range, split_page_range

PAGES = tuple("abcdefgh")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("3", "c"),
        ("3-5", "cde"),
        ("1,3-5", "acde"),
        ("7-", "gh"),
        ("5, 1-2", "eab"),
        (" 2 - 3 ", "bc"),
        ("8-8", "h"),
    ],
)
def test_pages_come_in_the_order_in_which_they_are_named(text: str, expected: str) -> None:
    assert "".join(parse_page_range(text).select(PAGES, "scan.pdf")) == expected


@given(st.integers(1, 8), st.integers(1, 8))
def test_a_span_holds_both_of_its_ends(one: int, other: int) -> None:
    first, last = sorted((one, other))
    assert parse_page_range(f"{first}-{last}").select(PAGES, "x") == PAGES[first - 1 : last]


@pytest.mark.parametrize("text", ["", "0", "0-3", "5-3", "a", "1-2-3", "-3", "1,,2", "1;2", "1.5", "³"])
def test_what_is_not_a_range_is_one_line(text: str) -> None:
    with pytest.raises(
        InputError, match=r"expected pages and spans such as '3-7' or '1,3-5', counted from 1"
    ):
        parse_page_range(text)


@pytest.mark.parametrize("pages", [3, range(3), ["3"], 1.5])
def test_a_range_is_a_text(pages: object) -> None:
    with pytest.raises(InputError, match="expected a text such as '3-7'"):
        parse_page_range(pages)


@pytest.mark.parametrize("text", ["9", "3-9", "9-", "1,12"])
def test_a_page_that_does_not_exist_is_one_line(text: str) -> None:
    with pytest.raises(InputError, match=r"page (9|12) does not exist: scan\.pdf has 8 pages"):
        parse_page_range(text).select(PAGES, "scan.pdf")
    with pytest.raises(InputError, match=r"x has 1 page$"):
        parse_page_range(text).select(PAGES[:1], "x")


def test_a_range_is_split_off_the_name_of_a_file(tmp_path: Path) -> None:
    for name in ("scan.pdf#3-7", "scan.pdf#page=3-7", "scan.pdf#pages=3-7"):
        path, pages = split_page_range(name)
        assert (path, pages) == (Path("scan.pdf"), parse_page_range("3-7"))
    assert split_page_range("scan.pdf") == (Path("scan.pdf"), None)
    assert split_page_range("scan #2b.pdf") == (Path("scan #2b.pdf"), None)
    (tmp_path / "op#27").write_text("a file with that very name")
    assert split_page_range(tmp_path / "op#27") == (tmp_path / "op#27", None)
    assert split_page_range(f"{tmp_path / 'op#27'}#2")[0] == tmp_path / "op#27"


def test_a_number_of_thousands_of_digits_is_one_line() -> None:
    with pytest.raises(InputError, match=r"^pages '999.*, expected pages and spans") as refused:
        parse_page_range("9" * 5000)
    assert len(str(refused.value)) < 500
