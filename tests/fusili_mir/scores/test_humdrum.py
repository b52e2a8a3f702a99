from __future__ import annotations

import warnings
from pathlib import Path

import partitura as pt
import pytest

from fusili_mir.pages.pages import render_pages
from fusili_mir.scores.loading import load_score
from fusili_mir.scores.score_warning import ScoreWarning

HEAD = "**kern\t**kern\n*clefF4\t*clefG2\n*M2/4\t*M2/4\n"
TAIL = "=\t=\n*-\t*-\n"


def kern(folder: Path, body: str, head: str = HEAD) -> Path:
    file = folder / "score.krn"
    file.write_text(head + body + TAIL)
    return file


def onsets(file: Path) -> list[tuple[str, float]]:
    """Pitch and onset in quarters of the notes of the upper staff, which is the first part."""
    part = load_score(file).score.parts[0]
    return [(f"{each.step}{each.octave}", float(part.quarter_map(each.start.t))) for each in part.notes]


def test_notes_have_the_ids_of_partitura(tmp_path: Path) -> None:
    file = kern(tmp_path, "=1\t=1\n4C\t4c\n4D\t8d\n.\t8e\n=2\t=2\n2E\t4f\n.\t4g\n")
    names = {str(note.id) for part in pt.load_score(str(file), quiet=True).parts for note in part.notes}
    assert set(render_pages(file).notes["id"].tolist()) == names


def test_the_notes_of_a_chord_have_ids_of_their_own(tmp_path: Path) -> None:
    file = kern(tmp_path, "=1\t=1\n2C\t2c 2e 2g\n")
    with pytest.warns(ScoreWarning, match="the id of an earlier note"):
        names = render_pages(file).notes["id"].tolist()
    assert len(set(names)) == 4


def test_a_rest_among_grace_notes_takes_no_time(tmp_path: Path) -> None:
    file = kern(tmp_path, "=1\t=1\n2C\t2c\n.\t32qqd\n.\t32qqr\n=2\t=2\n2C\t2e\n")
    assert onsets(file) == [("C4", 0.0), ("D4", 2.0), ("E4", 2.0)]


def test_a_line_of_null_tokens_takes_no_time(tmp_path: Path) -> None:
    file = kern(tmp_path, "=1\t=1\n2C\t2c\n=2\t=2\n.\t.\n2C\t2e\n")
    assert onsets(file) == [("C4", 0.0), ("E4", 2.0)]


def test_a_sign_of_another_meter_does_not_change_the_length_of_rests(tmp_path: Path) -> None:
    head = HEAD.replace("*M2/4\t*M2/4", "*met(c)\t*met(c)\n*M2/4\t*M2/4")
    file = kern(tmp_path, "=1\t=1\n2r\t2r\n=2\t=2\n2C\t2e\n", head)
    assert onsets(file) == [("E4", 2.0)]


def test_a_rest_without_a_length_lasts_for_the_measure(tmp_path: Path) -> None:
    file = kern(tmp_path, "=1\t=1\nr\tr\n=2\t=2\n2C\t2e\n")
    assert onsets(file) == [("E4", 2.0)]


def test_spines_may_split_and_join(tmp_path: Path) -> None:
    split = "*\t*^\n2C\t4c\t2e\n.\t4d\t.\n*\t*v\t*v\n=2\t=2\n2C\t2g\n"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ScoreWarning)
        found = onsets(kern(tmp_path, "=1\t=1\n" + split))
    assert sorted(found, key=lambda each: (each[1], each[0])) == [
        ("C4", 0.0),
        ("E4", 0.0),
        ("D4", 1.0),
        ("G4", 2.0),
    ]
