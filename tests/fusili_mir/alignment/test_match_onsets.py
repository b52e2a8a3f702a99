from __future__ import annotations

from pathlib import Path

import partitura as pt
import pytest
from example_performances import tune
from partitura.performance import PerformedPart

from fusili_mir.alignment.match_onsets import reference_onsets
from fusili_mir.errors import InputError
from fusili_mir.pages.pages import render_pages


@pytest.fixture
def match_file(tmp_path: Path) -> Path:
    """Four notes of a score: the first three are played, at 0.5, 1.25 and 2 s, and one more is added."""

    (tmp_path / "tune.musicxml").write_text(tune(("C4", "E4", "G4", "C5")))
    score = render_pages(tmp_path / "tune.musicxml").score
    assert score is not None
    part = score.parts[0]
    played = [("p0", 60, 0.5), ("p1", 64, 1.25), ("p2", 67, 2.0), ("p3", 61, 2.5)]
    notes = [
        {
            "id": name,
            "midi_pitch": pitch,
            "note_on": onset_sec,
            "note_off": onset_sec + 0.4,
            "velocity": 64,
            "track": 0,
            "channel": 1,
        }
        for name, pitch, onset_sec in played
    ]
    ids = [str(note.id) for note in part.notes_tied]
    alignment = [
        {"label": "match", "score_id": ids[0], "performance_id": "p0"},
        {"label": "match", "score_id": ids[1], "performance_id": "p1"},
        {"label": "match", "score_id": ids[2], "performance_id": "p2"},
        {"label": "deletion", "score_id": ids[3]},
        {"label": "insertion", "performance_id": "p3"},
    ]
    out = tmp_path / "tune.match"
    pt.save_match(alignment, PerformedPart(notes), part, out=str(out), assume_unfolded=True)
    return out


def test_matched_notes_have_the_onsets_of_the_performance(match_file: Path) -> None:
    onsets = reference_onsets(match_file)
    assert sorted(onsets.values()) == pytest.approx([0.5, 1.25, 2.0], abs=2e-3)  # match files count ticks


def test_notes_that_were_not_played_or_not_written_are_missing(match_file: Path) -> None:
    assert len(reference_onsets(match_file)) == 3


def test_ids_are_those_of_the_score(match_file: Path) -> None:
    score = render_pages(match_file.with_name("tune.musicxml")).score
    assert score is not None
    ids = [str(note.id) for note in score.parts[0].notes_tied]
    assert list(reference_onsets(str(match_file))) == ids[:3]


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none\.match: not found; expected a match file"):
        reference_onsets(tmp_path / "none.match")


@pytest.mark.parametrize("content", ["", "not a match file\n", "info(matchFileVersion,9.9.9).\n"])
def test_a_file_that_partitura_cannot_read_is_refused_in_one_line(tmp_path: Path, content: str) -> None:
    (tmp_path / "broken.match").write_text(content)
    with pytest.raises(InputError, match=r"broken\.match: cannot be read") as raised:
        reference_onsets(tmp_path / "broken.match")
    assert "\n" not in str(raised.value)
