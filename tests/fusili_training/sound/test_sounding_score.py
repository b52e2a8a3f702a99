from __future__ import annotations

from pathlib import Path

import example_scores
from example_scores import measure, note, score

from fusili_mir.scores.score_file import read_score_file
from fusili_training.sound.sounding_score import SoundingScore, read_sounding_score


def _read(content: str, folder: Path) -> SoundingScore:
    path = folder / "score.musicxml"
    path.write_text(content)
    return read_sounding_score(read_score_file(path))


def test_measures_begin_where_the_ones_before_end(tmp_path: Path) -> None:
    sounding = _read(example_scores.song(3), tmp_path)
    assert sounding.measure_quarters.tolist() == [0, 2, 4, 6]
    assert sounding.part_ids == ("P1", "P2")
    assert sounding.notes["part"].tolist().count(1) == 12


def test_a_pick_up_comes_before_zero_and_repeats_stay_folded(tmp_path: Path) -> None:
    sounding = _read(example_scores.VOLTAS, tmp_path)
    assert sounding.measure_quarters.tolist() == [-1, 0, 2, 4, 6]
    assert len(sounding.notes) == 5  # n3 and n4 are one note


def test_heads_of_a_tie_share_its_time(tmp_path: Path) -> None:
    sounding = _read(example_scores.VOLTAS, tmp_path)
    first, second = (sounding.heads[sounding.row_of_head[head]] for head in ("n3", "n4"))
    assert first["note"] == second["note"]
    assert (first["onset_quarter"], first["end_quarter"], first["first"], first["last"]) == (
        0,
        2,
        True,
        False,
    )
    assert (second["onset_quarter"], second["end_quarter"], second["first"], second["last"]) == (
        2,
        3,
        False,
        True,
    )


def test_cues_and_notes_without_heads_do_not_sound_and_hidden_notes_are_not_seen(tmp_path: Path) -> None:
    cue = note("C5", note_id="cue").replace("<pitch>", "<cue/><pitch>")
    headless = note("D5", note_id="none").replace("</staff>", "</staff><notehead>none</notehead>")
    hidden = note("E5", note_id="hidden").replace("<note ", "<note print-object='no' ")
    plain = note("F5", note_id="plain")
    sounding = _read(score([measure(cue + headless, 1, first=True), measure(hidden + plain, 2)]), tmp_path)
    assert sounding.notes["id"].tolist() == ["hidden", "plain"]
    assert sounding.heads["id"].tolist() == ["plain"]


def test_transposing_parts_sound_where_they_sound(tmp_path: Path) -> None:
    transpose = "<transpose><diatonic>-1</diatonic><chromatic>-2</chromatic></transpose></attributes>"
    clarinet = measure(note("C5") + note("D5"), 1, first=True).replace("</attributes>", transpose)
    sounding = _read(score([clarinet]), tmp_path)
    assert sounding.notes["pitch"].tolist() == [70, 72]


def test_notes_beyond_a_piano_are_left_out(tmp_path: Path) -> None:
    sounding = _read(score([measure(note("C0") + note("C5"), 1, first=True)]), tmp_path)
    assert sounding.notes["pitch"].tolist() == [72]
