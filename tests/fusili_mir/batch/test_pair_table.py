from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fusili_mir.alignment.align_options import AlignOptions
from fusili_mir.alignment.anchors import Anchor
from fusili_mir.batch.pair_request import PairRequest, request_of_json, with_names
from fusili_mir.batch.pair_table import as_pairs
from fusili_mir.batch.pair_workers import group_by_score
from fusili_mir.errors import FusiliWarning, InputError


def write(folder: Path, text: str) -> Path:
    (folder / "pairs.csv").write_text(text, encoding="utf-8")
    return folder / "pairs.csv"


def test_files_are_relative_to_the_table_and_images_of_a_score_are_separated_by_semicolons(
    tmp_path: Path,
) -> None:
    text = "\ufeffcomment,recording,score,start,name\nold,take.wav,1.png; 2.png,1:15,first\n,,,,\n"
    (pair,) = as_pairs(write(tmp_path, text))
    assert pair.score == (tmp_path / "1.png", tmp_path / "2.png")
    assert (pair.recording, pair.name, pair.options.start_sec) == (tmp_path / "take.wav", "first", 75.0)


def test_options_of_a_row_come_after_those_of_all_pairs(tmp_path: Path) -> None:
    table = write(tmp_path, "score,recording,transpose,cuts\na.mxl,a.wav,-2,no\na.mxl,b.wav,,\n")
    first, second = as_pairs(table, AlignOptions(transpose=3, cuts=True))
    assert [each.options.transpose for each in (first, second)] == [-2.0, 3.0]
    assert [each.options.cuts for each in (first, second)] == [False, True]


def test_anchors_and_files_of_repeats_are_found_beside_the_table(tmp_path: Path) -> None:
    (tmp_path / "played.txt").write_text("1-8 1-8")
    (tmp_path / "a.csv").write_text("measure,second\n17,42.5\n")
    rows = "a.mxl,a.wav,a.csv,played.txt\na.mxl,a.wav,17=42.5 33=1:20,1-8\n"
    first, second = as_pairs(write(tmp_path, f"score,recording,anchors,repeats\n{rows}"))
    assert first.options.anchors == (Anchor(42.5, measure="17"),)
    assert first.options.repeats == "1-8 1-8"
    assert second.options.anchors == (Anchor(42.5, measure="17"), Anchor(80.0, measure="33"))
    assert second.options.repeats == "1-8"


@pytest.mark.parametrize(
    ("column", "text", "message"),
    [
        ("start", "soon", "start: 'soon' is not a time"),
        ("transpose", "99", "transpose is 99.0, expected -24 to 24 semitones"),
        ("a4", "41", "a4_hz is 41.0, expected 220 to 880 Hz"),
        ("cuts", "perhaps", "cuts: 'perhaps', expected yes or no"),
        ("dpi", "high", "dpi: 'high' is not a number"),
        ("pages", "7-3", "pages '7-3', expected pages and spans"),
        ("anchors", "17=late", "'late' is not a time"),
    ],
)
def test_wrong_options_are_refused_with_the_line_that_has_them(
    tmp_path: Path, column: str, text: str, message: str
) -> None:
    table = write(tmp_path, f"score,recording,{column}\na.mxl,a.wav,\nb.mxl,b.wav,{text}\n")
    with pytest.raises(InputError, match=message) as raised:
        as_pairs(table)
    assert "pairs.csv, line 3: " in str(raised.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no column `score`"),
        ("score,audio\na,b\n", "no column `recording` .found: `score`, `audio`"),
        ("score,recording,score\na,b,c\n", "two columns `score`"),
        ("score,recording\n", "no pairs"),
        ("score,recording\na.mxl,\n", "line 2: no recording"),
        ("score,recording\n;,a.wav\n", "line 2: no score"),
    ],
)
def test_a_table_without_what_it_needs_is_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        as_pairs(write(tmp_path, text))


def test_a_table_that_is_no_text_or_not_there_is_refused(tmp_path: Path) -> None:
    (tmp_path / "binary.csv").write_bytes(b"RIFF\x00\x01\xffWAVE")
    for name, message in (
        ("binary.csv", r"binary.csv: cannot be read \(not a text"),
        ("none.csv", "none.csv: not found; expected a table"),
        ("", "Is a directory"),
    ):
        with pytest.raises(InputError, match=message):
            as_pairs(tmp_path / name)
    (tmp_path / "pairs.xlsx").write_bytes(b"PK\x03\x04...")
    with pytest.raises(InputError, match="save it as CSV"):
        as_pairs(tmp_path / "pairs.xlsx")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_a_table_is_read_as_spreadsheets_save_it(tmp_path: Path, encoding: str, delimiter: str) -> None:
    rows = (
        ("Recording", " Score ", "start", "remarks"),
        ("Grün.wav", '"1.png;2.png"', "0:12", "loud"),
        ("b c.wav", "b.mxl", "", ""),
    )
    text = "\r\n".join(delimiter.join(row) for row in rows) + "\r\n"
    (tmp_path / "pairs.csv").write_bytes(text.encode(encoding))
    first, second = as_pairs(tmp_path / "pairs.csv")
    assert first.score == (tmp_path / "1.png", tmp_path / "2.png")
    assert first.recording == tmp_path / "Grün.wav"
    assert first.options.start_sec == 12.0
    assert (second.score, second.recording) == ((tmp_path / "b.mxl",), tmp_path / "b c.wav")


def test_the_line_by_which_excel_names_its_separator_counts_as_a_line(tmp_path: Path) -> None:
    table = write(tmp_path, "sep=;\nscore;recording\na.mxl;\n")
    with pytest.raises(InputError, match="line 3: no recording"):
        as_pairs(table)


def test_a_column_that_is_likely_misspelt_is_named(tmp_path: Path) -> None:
    table = write(tmp_path, "score,recording,transpos,remarks\na.mxl,a.wav,2,\n")
    with pytest.warns(FusiliWarning, match="column `transpos` is ignored; is it meant to be `transpose`"):
        (pair,) = as_pairs(table)
    assert pair.options.transpose is None


def test_pairs_are_taken_from_python_too() -> None:
    pairs = as_pairs([("a.mxl", "a.wav"), (["1.png", "2.png"], Path("b.wav"), AlignOptions(cuts=True))])
    assert [pair.name for pair in pairs] == ["a--a", "1--b"]
    assert pairs[1].options.cuts
    for wrong in (3, ["ab.wav"], [("only",)], [("a.mxl", "a.wav", "--cuts")]):
        with pytest.raises(InputError, match="expected"):
            as_pairs(wrong)  # type: ignore[arg-type]


@given(st.lists(st.text(max_size=150), min_size=1, max_size=8))
def test_any_name_becomes_a_folder_of_its_own_inside_the_results(names: list[str]) -> None:
    asked = [PairRequest((Path("a.mxl"),), Path("a.wav"), name=name) for name in names]
    named = [request.name for request in with_names(asked)]
    assert len({name.casefold() for name in named}) == len(names)
    for name in named:
        assert (Path("/results") / name).resolve().parent == Path("/results")
        assert not name.startswith(".")
        assert len(name.encode()) < 200
        assert name.isprintable()


def test_a_request_survives_the_way_to_another_process() -> None:
    options = AlignOptions(
        transpose=-2.0,
        start_sec=1.5,
        anchors={17: 42.5},
        pages="3-7",
        repeats=((0, 2), (0, 4)),
    )
    request = PairRequest((Path("a.pdf#3-7"),), Path("a.wav"), options, "a")
    assert request_of_json(request.to_json()) == request


@given(st.lists(st.sampled_from("abc"), max_size=30), st.integers(1, 6))
def test_groups_hold_every_pair_once_one_score_each_and_keep_all_workers_busy(
    scores: list[str], n_workers: int
) -> None:
    asked = [
        PairRequest((Path(score),), Path(str(place)), name=str(place)) for place, score in enumerate(scores)
    ]
    groups = group_by_score(asked, n_workers)
    assert sorted(int(each.name) for group in groups for each in group) == list(range(len(scores)))
    assert all(len({each.score for each in group}) == 1 for group in groups)
    assert all(len(group) <= -(-len(scores) // n_workers) for group in groups)
