from __future__ import annotations

import pytest
from example_scores import melody

from fusili_mir.errors import InputError
from fusili_mir.scores.score_file import parse_score

FIRST = melody(2)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("<divisions>", "<staves>100000</staves><divisions>", "<staves> is 100000, expected at most 64"),
        (
            "<duration>",
            "<duration>999999999",
            r"a <duration> of 9+\d* at \d+ divisions, expected at most 4096",
        ),
        ("<voice>", "<staff>99</staff><voice>", "<staff> is 99, expected at most 64"),
        ("<divisions>", "<divisions>1e9", "<divisions> is 1e9"),
        (
            "<divisions>",
            "<staff-details><staff-lines>100000</staff-lines></staff-details><divisions>",
            "<staff-lines> is 100000, expected at most 32",
        ),
    ],
)
def test_numbers_out_of_all_proportion_are_refused_at_once(old: str, new: str, message: str) -> None:
    assert old in FIRST
    with pytest.raises(InputError, match=message):
        parse_score(FIRST.replace(old, new, 1).encode(), "odd.musicxml")


def test_a_usual_score_is_not_refused() -> None:
    assert parse_score(FIRST.encode(), "tune.musicxml").kind == "musicxml"


@pytest.mark.parametrize(
    ("attributes", "message"),
    [('lines="100000"', "staffDef/@lines is 100000"), ('n="123456"', "staffDef/@n is 123456")],
)
def test_numbers_in_mei_are_looked_at_too(attributes: str, message: str) -> None:
    mei = (
        '<mei xmlns="http://www.music-encoding.org/ns/mei"><music><body><mdiv><score><scoreDef><staffGrp>'
        f'<staffDef {attributes}/></staffGrp></scoreDef><section><measure><staff n="1"><layer n="1">'
        '<note pname="c" oct="4" dur="4"/></layer></staff></measure></section></score></mdiv></body>'
        "</music></mei>"
    )
    with pytest.raises(InputError, match=message):
        parse_score(mei.encode(), "odd.mei")
