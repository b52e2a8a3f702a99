from __future__ import annotations

import math
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any, get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fusili_mir.alignment.align_options import AligningKeywords, AlignKeywords, AlignOptions, read_options
from fusili_mir.alignment.aligning import align_pages, align_recording, align_score
from fusili_mir.alignment.anchors import Anchor
from fusili_mir.errors import InputError

NAMES = [each.name for each in fields(AlignOptions)]


def test_keywords_of_functions_are_the_fields() -> None:
    assert list(AlignKeywords.__annotations__) == NAMES
    assert set(get_type_hints(AligningKeywords, localns={"Bundle": Any, "Encoder": Any})) == {
        *NAMES,
        "model",
        "cache",
    }
    for function in (align_recording, align_score, align_pages):
        assert function.__code__.co_argcount == 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"transpose": 25}, "transpose is 25, expected -24 to 24 semitones"),
        ({"transpose": "up"}, "transpose is 'up', expected -24 to 24 semitones"),
        ({"transpose": True}, "transpose is True, expected"),
        ({"transpose": math.nan}, "transpose is nan, expected"),
        ({"a4_hz": 44}, "a4_hz is 44, expected 220 to 880 Hz"),
        ({"start_sec": -1}, "start_sec is -1, expected 0 or more seconds"),
        ({"end_sec": math.inf}, "end_sec is inf, expected 0 or more seconds"),
        ({"start_sec": 9, "end_sec": 8}, "the excerpt ends at 8 s and starts at 9 s; expected a later end"),
        ({"pages": "two"}, "pages 'two', expected pages and spans"),
        ({"pages": 2}, "pages are 2, expected a text"),
        ({"cuts": "yes"}, "cuts is 'yes', expected true or false"),
        ({"cuts": True, "repeats": "maximal"}, "cuts are looked for, and repeats are 'maximal'"),
        ({"repeats": 8}, "repeats are 8, expected measures as played"),
        ({"anchors": {17: "late"}}, "anchor"),
        ({"anchors": 17}, "anchors: 17, expected a table"),
        ({"dpi": 0}, "dpi is 0, expected 1 or more dots per inch"),
    ],
)
def test_what_makes_no_sense_is_refused_where_it_comes_in(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        AlignOptions(**options)


def test_what_comes_in_is_converted_once(tmp_path: Path) -> None:
    (tmp_path / "played.txt").write_text("1-8  # once\n1-8")
    (tmp_path / "anchors.csv").write_text("measure,second\n17,0:42.5\n")
    options = AlignOptions(
        repeats=tmp_path / "played.txt", anchors=str(tmp_path / "anchors.csv"), transpose=-2, start_sec=75
    )
    assert options.repeats.split() == ["1-8", "1-8"]  # type: ignore[union-attr]
    assert options.anchors == (Anchor(42.5, measure="17"),)
    assert (options.transpose, options.start_sec) == (-2.0, 75.0)
    assert AlignOptions(repeats=["1-8", 9]).repeats == "1-8 9"
    assert AlignOptions(repeats="as-written").repeats == "as_written"
    assert AlignOptions(repeats=((0, 2), (0, 4))).repeats == ((0, 2), (0, 4))


def test_a_known_transposition_means_modern_pitch_unless_it_is_said() -> None:
    known = [AlignOptions(), AlignOptions(transpose=0), AlignOptions(transpose=0, a4_hz=415)]
    assert [options.known_a4_hz for options in known] == [None, 440.0, 415.0]


NUMBERS = st.floats(0, 24, allow_nan=False)


@given(
    st.none() | NUMBERS,
    st.sampled_from(["auto", "maximal", "1-8 1-8", ((0, 2), (0, 4))]),
    st.none() | st.sampled_from(["3-7", "1,3-"]),
    st.lists(st.builds(Anchor, NUMBERS, measure=st.sampled_from("17")), max_size=3),
)
def test_options_survive_json(transpose: float | None, repeats: Any, pages: str | None, anchors: Any) -> None:
    options = AlignOptions(transpose=transpose, repeats=repeats, pages=pages, anchors=anchors, start_sec=1.5)
    assert AlignOptions.from_json(options.to_json()) == options


@pytest.mark.parametrize(
    "content",
    [
        None,
        [],
        {"transposition": 2},
        {"anchors": [3]},
        {"anchors": 3},
        {"anchors": [{"second": "soon"}]},
        {"repeats": [[1]]},
    ],
)
def test_json_of_strangers_is_refused_in_one_line(content: Any) -> None:
    with pytest.raises(InputError) as raised:
        AlignOptions.from_json(content)
    assert "\n" not in str(raised.value)


def test_a_cell_that_is_empty_leaves_what_holds_for_all() -> None:
    usual = AlignOptions(transpose=3, cuts=True)
    assert read_options({"transpose": "", "cuts": " ", "start": "1:15"}, usual) == AlignOptions(
        transpose=3, cuts=True, start_sec=75
    )
    with pytest.raises(InputError, match="option 'transpos'; did you mean transpose"):
        read_options({"transpos": "2"})


def test_options_are_read_without_what_makes_start_up_slow() -> None:
    code = "import sys, fusili_mir.cli.commands.align; print(sorted(sys.modules))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "fusili_mir.alignment.align_options" in found
    assert not {"'partitura'", "'scipy'", "'onnxruntime'"} & set(found.strip("[]\n").split(", "))
