from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest
from example_scores import measure, melody, note, piano, score
from lxml import etree

from fusili_mir.boxes import NOTE_DTYPE
from fusili_mir.pages.engraving import engrave
from fusili_mir.pages.engraving_check import (
    FAR_SPACES,
    heads_off_staff,
    heads_out_of_order,
    hidden_notes,
    warn_of_disagreement,
)
from fusili_mir.pages.pages import render_pages
from fusili_mir.scores.loading import load_score
from fusili_mir.scores.score_file import ScoreFile, parse_score
from fusili_mir.scores.score_warning import ScoreWarning


def write(folder: Path, content: str) -> Path:
    (folder / "score.musicxml").write_text(content)
    return folder / "score.musicxml"


def said(file: Path) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ScoreWarning)
        render_pages(file)
    return [str(each.message) for each in caught]


def test_a_plain_score_and_its_engraving_agree(tmp_path: Path) -> None:
    assert said(write(tmp_path, piano(3))) == []


def test_a_note_without_a_head_is_said(tmp_path: Path) -> None:
    loaded = load_score(write(tmp_path, melody(2)))
    engraving = engrave(loaded.score_file)
    engraving.notes["notated_id"] = ["p0n0", "", "p0n2", "p0n3"]  # as if Verovio had dropped one
    with pytest.warns(ScoreWarning, match=r"1 of 4 notes have no head on the pages, .* \(first: 'p0n1'\)"):
        warn_of_disagreement(loaded, engraving)


def test_notes_that_the_file_hides_need_no_head(tmp_path: Path) -> None:
    hidden = note("D5").replace("<note", "<note print-object='no'")
    headless = note("E5").replace("<staff>", "<notehead>none</notehead><staff>")
    file = write(tmp_path, score([measure(note("C5") + hidden, first=True), measure(note("C5") + headless)]))
    assert len(hidden_notes(load_score(file).score_file)) == 2
    assert not [each for each in said(file) if "no head" in each]


def test_heads_far_from_their_staff_are_said(tmp_path: Path) -> None:
    far = score([measure(note("C5") + note("C0"), first=True)])  # 15 spaces below the treble staff
    (message,) = said(write(tmp_path, far))
    assert "1 of 2 heads are more than 12 ledger lines from their staff" in message
    assert "(first: 'p0n1')" in message


def test_the_distance_of_a_head_is_counted_in_staff_spaces() -> None:
    engraving = engrave(parse_score(score([measure(note("A3") + note("B4"), first=True)]).encode(), "two"))
    low, middle = heads_off_staff(engraving.notes, engraving.staves)
    assert low == pytest.approx(1.5, abs=0.15)  # A3: below the second ledger line
    assert middle < 0
    assert max(low, middle) < FAR_SPACES


def heads(*places: tuple[int, float]) -> np.ndarray:
    """Heads 10 px wide: (measure, x of their middle)."""
    table = np.zeros(len(places), NOTE_DTYPE)
    table["measure"] = [number for number, _ in places]
    table["x0"] = [x - 5 for _, x in places]
    table["x1"] = [x + 5 for _, x in places]
    return table


def test_a_head_left_of_an_earlier_one_is_out_of_order() -> None:
    notes = heads((0, 100), (0, 200), (0, 150), (1, 50))
    assert heads_out_of_order(notes, np.array([0.0, 1.0, 2.0, 3.0])).tolist() == [False, False, True, False]


def test_heads_of_a_chord_may_stand_side_by_side_and_grace_notes_anywhere() -> None:
    notes = heads((0, 100), (0, 110), (0, 98), (0, 20))
    assert not heads_out_of_order(notes, np.array([0.0, 0.0, 0.5, np.nan])).any()


def test_durations_that_disagree_with_what_is_printed_are_said(tmp_path: Path) -> None:
    """A voice of eighths that last for quarters: they sound late, and are printed early."""
    late = note("E5", "eighth").replace("<duration>1<", "<duration>2<") * 4
    even = note("C4", "eighth").replace("<voice>1", "<voice>2") * 8
    bar = measure(late + "<backup><duration>8</duration></backup>" + even, first=True)
    messages = said(write(tmp_path, score([bar.replace("<beats>2", "<beats>4")])))
    assert [each for each in messages if "heads are left of notes that sound before them" in each]


def test_a_score_file_of_ones_own_is_checked_too() -> None:
    tree = etree.fromstring(score([measure(note("C0", note_id="low"), first=True)]).encode())
    with pytest.warns(ScoreWarning, match="ledger lines"):
        render_pages(ScoreFile("own", "musicxml", tree))
