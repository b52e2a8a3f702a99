from __future__ import annotations

import math
from pathlib import Path

import pytest

from fusili_mir.alignment.anchors import Anchor, anchors_csv, as_anchors, parse_anchor
from fusili_mir.errors import InputError

ALL = (
    Anchor(1.5, measure="3"),
    Anchor(2.25, measure="3", time=2),
    Anchor(4.0, note="n,7"),
    Anchor(5.5, place=(1, 420.5, 310.0)),
)


def test_a_table_gives_back_the_anchors_that_it_was_written_from(tmp_path: Path) -> None:
    (tmp_path / "anchors.csv").write_text(anchors_csv(ALL), encoding="utf-8")
    assert as_anchors(tmp_path / "anchors.csv") == ALL


def test_anchors_may_be_a_mapping_pairs_or_texts() -> None:
    expected = (Anchor(42.5, measure="17"), Anchor(61.0, measure="18"))
    assert as_anchors({17: 42.5, "18": 61}) == expected
    assert as_anchors([(17, 42.5), ("18", 61)]) == expected
    assert as_anchors(["17=42.5", "18=61"]) == expected
    assert as_anchors(None) == ()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("17", r"anchor '17'; expected MEASURE=SECOND such as 17=42\.5"),
        ("17=soon", "anchor '17=soon': 'soon' is not a time"),
        ("17:0=3", "measure 17 is anchored for time 0; expected 1 or more"),
        ("17=nan", "measure 17 is anchored at nan s"),
    ],
)
def test_a_text_that_is_no_anchor_is_refused_in_one_line(text: str, expected: str) -> None:
    with pytest.raises(InputError, match=expected):
        parse_anchor(text)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("measure,time\n3,4\n", "no column `second`; expected a header with measure, pass, note"),
        ("measure,second\n3,4\n4,late\n", "line 3: 'late' is not a time; expected seconds or m:ss"),
        (
            "measure,note,second\n3,n1,4\n",
            "line 2: an anchor without a measure, a note or a place",
        ),
    ],
)
def test_a_table_that_cannot_be_used_says_why_and_where(tmp_path: Path, content: str, expected: str) -> None:
    (tmp_path / "anchors.csv").write_text(content)
    with pytest.raises(InputError, match=expected):
        as_anchors(tmp_path / "anchors.csv")


def test_a_table_may_have_minutes_and_seconds(tmp_path: Path) -> None:
    (tmp_path / "anchors.csv").write_text("measure,second\n3,42.5\n9,1:02.5\n")
    assert [anchor.second for anchor in as_anchors(tmp_path / "anchors.csv")] == [42.5, 62.5]


def test_a_table_that_is_missing_is_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"nothing\.csv: not found"):
        as_anchors(tmp_path / "nothing.csv")


@pytest.mark.parametrize("place", [(0, math.nan, 1.0), (0, 1.0, math.inf), (-1, 1.0, 1.0)])
def test_a_place_that_is_nowhere_is_refused(place: tuple[int, float, float]) -> None:
    with pytest.raises(InputError, match="expected a page from 0, and numbers for x and y"):
        Anchor(1.0, place=place)
