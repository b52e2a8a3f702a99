"""partitura reads back every note, under its own id or the one that a warning names."""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import partitura as pt
import pytest
from example_performances import PITCHES, perform, record
from example_scores import measure, note, score

from fusili_mir.alignment.aligning import align_recording
from fusili_mir.alignment.played import play_pages
from fusili_mir.alignment.results import Alignment
from fusili_mir.model.encoder import Encoder
from fusili_mir.output.mei_recording import mei_with_recording
from fusili_mir.output.partitura_files import IdWarning, save_match, save_parangonada, writable_ids
from fusili_mir.pages.pages import render_pages

LONG = "note-0000001318117900-measure-12"
IDS = ("7up", "a b", "x#1", "n,2", LONG, f"other-{LONG}", "n_2", "ok")


@pytest.fixture(scope="module")
def odd_ids(tmp_path_factory: pytest.TempPathFactory, encoder: Encoder) -> Alignment:
    """A score whose ids have commas, spaces and number signs, or are long."""
    names = [*IDS, *(f"n{number}" for number in range(len(PITCHES) - len(IDS)))]
    bars = [
        measure("".join(note(PITCHES[k], note_id=names[k]) for k in (i, i + 1)), i // 2 + 1, first=i == 0)
        for i in range(0, len(PITCHES), 2)
    ]
    file = tmp_path_factory.mktemp("score") / "odd.musicxml"
    file.write_text(score(bars))
    pages = render_pages(file)
    alignment = align_recording(pages, record(perform(play_pages(pages))), model=encoder)
    assert alignment.notes["id"].tolist() == names
    return alignment


def test_ids_that_a_match_file_cannot_hold_are_replaced_with_a_warning(
    odd_ids: Alignment, tmp_path: Path
) -> None:
    with pytest.warns(IdWarning, match=r"1 note ids cannot be written to \.match files .*'n,2' by 'n_2_2'"):
        save_match(odd_ids, tmp_path / "odd.match")
    _, alignment, read = pt.load_match(tmp_path / "odd.match", create_score=True)
    expected = [name.replace("n,2", "n_2_2") for name in odd_ids.notes["id"].tolist()]
    assert [entry["score_id"] for entry in alignment] == expected
    assert sorted(each.id for each in read[0].notes) == sorted(expected)


def test_ids_that_parangonada_cannot_hold_are_replaced_with_a_warning(
    odd_ids: Alignment, tmp_path: Path
) -> None:
    with pytest.warns(IdWarning, match="4 note ids cannot be written to the tables of Parangonada"):
        save_parangonada(odd_ids, tmp_path)
    _, alignment, *_ = pt.load_parangonada_csv(tmp_path)
    score_ids = [entry["score_id"] for entry in alignment]
    assert len(set(score_ids)) == len(odd_ids.notes)
    assert {entry["performance_id"] for entry in alignment} == {f"n{each}" for each in score_ids}
    assert set(IDS) & set(score_ids) == {"7up", "a b", "n_2", "ok"}


def test_the_score_keeps_its_ids(odd_ids: Alignment, tmp_path: Path) -> None:
    assert odd_ids.played is not None
    before = [each.id for each in odd_ids.played.score[0].notes]
    with pytest.warns(IdWarning):
        save_match(odd_ids, tmp_path / "odd.match")
    assert [each.id for each in odd_ids.played.score[0].notes] == before


def test_ordinary_ids_are_written_without_a_warning(repeated: Alignment, tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        save_match(repeated, tmp_path / "a.match")
        save_parangonada(repeated, tmp_path)


def test_mei_has_ids_that_xml_allows(odd_ids: Alignment) -> None:
    xml_id = "{http://www.w3.org/XML/1998/namespace}id"
    root = mei_with_recording(odd_ids)
    ids = {str(each.get(xml_id)) for each in root.iter("{*}note")}
    assert {"_7up", "_a_b", "_x_1", "_n_2", LONG, "n_2", "ok"} <= ids
    references = {name[1:] for when in root.iter("{*}when") for name in str(when.get("data")).split()}
    assert references == ids


def test_new_ids_are_unique_and_short_enough() -> None:
    ids = [f"{'x' * 30}{number}" for number in range(12)] + ["y" * 40, "y" * 41, "y" * 19]
    names = writable_ids(ids, re.compile("#"), longest=20)
    written = [names.get(each, each) for each in ids]
    assert len(set(written)) == len(ids)
    assert max(len(each) for each in written) == 19  # n is put before ids of performed notes
    assert "y" * 19 not in names
