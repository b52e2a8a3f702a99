from __future__ import annotations

import io
from pathlib import Path

import mido
import partitura as pt
import pytest
from example_scores import VOLTAS, melody, piano
from partitura import score as ps

from fusili_mir.errors import InputError
from fusili_mir.pages.pages import render_pages
from fusili_mir.scores.midi_notation import grid_error, is_notated
from fusili_mir.scores.partitura_score import as_score, is_score_like, load_score_midi
from fusili_mir.scores.score_warning import ScoreWarning
from fusili_mir.scores.score_writing import write_score_file


def loaded(folder: Path, content: str = VOLTAS) -> ps.Score:
    (folder / "score.musicxml").write_text(content)
    score: ps.Score = pt.load_score(str(folder / "score.musicxml"), quiet=True)
    return score


def plain_part(notes: list[tuple[int, int]], divisions: int = 4) -> ps.Part:
    """A part without measures or ids: (onset, duration) in divisions."""
    part = ps.Part("P1", "melody", quarter_duration=divisions)
    for onset, duration in notes:
        part.add(ps.Note("C", 5, voice=1), onset, onset + duration)
    return part


def test_scores_parts_groups_and_lists_are_scores(tmp_path: Path) -> None:
    score = loaded(tmp_path)
    group = ps.PartGroup()
    group.children = list(score.parts)
    for each in (score, score.parts[0], group, list(score.parts), (group,)):
        assert is_score_like(each)
        assert render_pages(each).notes["id"].tolist() == render_pages(score).notes["id"].tolist()
    for other in (None, [], "score.musicxml", [score], score.parts[0].notes):
        assert not is_score_like(other)


def test_the_score_of_the_user_is_left_unchanged() -> None:
    part = plain_part([(0, 4), (4, 4), (8, 8)])
    render_pages(part)
    assert [note.id for note in part.notes] == [None, None, None]
    assert not list(part.iter_all(ps.Measure))
    assert part.first_point.t == 0
    assert part.last_point.t == 16


def test_a_part_without_measures_gets_some_and_its_notes_are_tied_across_them() -> None:
    pages = render_pages(plain_part([(0, 12), (12, 8), (20, 4)]))  # the second note crosses the barline
    assert pages.notes["measure"].tolist() == [0, 0, 1, 1]
    assert len(set(pages.notes["id"].tolist())) == 3


def test_parts_with_the_same_id_stay_apart() -> None:
    score = as_score([plain_part([(0, 4)]), plain_part([(0, 4)])], "two")
    assert [part.id for part in score.parts] == ["P1", "P1_2"]


def test_a_score_without_notes_is_refused() -> None:
    with pytest.raises(InputError, match="1 parts have no notes"):
        render_pages(ps.Part("P1"))


def test_gaps_in_any_voice_keep_their_place() -> None:
    part = ps.Part("P1", "gaps", quarter_duration=1)
    part.add(ps.TimeSignature(4, 4), 0)
    part.add(ps.Measure(1, "1"), 0, 4)
    for voice, onset in ((1, 0), (1, 3), (2, 2)):
        note = ps.Note("CG"[voice - 1], 5, voice=voice, staff=1, id=f"v{voice}t{onset}")
        note.symbolic_duration = {"type": "quarter"}
        part.add(note, onset, onset + 1)
    written = write_score_file(ps.Score([part]), "gaps")
    again = pt.load_musicxml(io.BytesIO(written.score_file.to_bytes()), quiet=True)
    places = {written.note_ids[str(note.id)]: note.start.t for note in again.parts[0].notes}
    assert places == {"v1t0": 0, "v1t3": 3, "v2t2": 2}
    assert not written.is_rounded


def midi(folder: Path, *tracks: list[tuple[int, int, int, int]]) -> Path:
    """A MIDI file: (channel, pitch, onset, duration) in ticks, 480 a quarter."""
    file = mido.MidiFile(ticks_per_beat=480)
    for notes in tracks:
        track = mido.MidiTrack()
        events = [
            (time, kind, channel, pitch)
            for channel, pitch, onset, duration in notes
            for time, kind in ((onset, "note_on"), (onset + duration, "note_off"))
        ]
        last = 0
        for time, kind, channel, pitch in sorted(events):
            track.append(mido.Message(kind, channel=channel, note=pitch, velocity=64, time=time - last))
            last = time
        file.tracks.append(track)
    file.save(folder / "score.mid")
    return folder / "score.mid"


def test_midi_has_the_ids_and_the_onsets_of_partitura(tmp_path: Path) -> None:
    file = midi(tmp_path, [(0, 72 + i % 3, 480 * i, 480) for i in range(8)])
    pages, theirs = render_pages(file), pt.load_score_midi(str(file), assign_note_ids=True, quiet=True)
    assert pages.score is not None
    assert pages.score.parts[0].note_array().tolist() == theirs.parts[0].note_array().tolist()
    assert set(pages.notes["id"].tolist()) == set(theirs.parts[0].note_array()["id"].tolist())


def test_a_wide_track_gets_two_staves(tmp_path: Path) -> None:
    file = midi(tmp_path, [(0, pitch, 480 * i, 480) for i in range(8) for pitch in (40, 76)])
    pages = render_pages(file)
    assert set(pages.systems["n_staves"].tolist()) == {2}
    low = {row["id"] for row in pages.score.parts[0].note_array() if row["pitch"] == 40}  # type: ignore[union-attr]
    assert {row["id"] for row in pages.notes if row["staff"] == 1} == low


def test_drums_are_left_out_and_said(tmp_path: Path) -> None:
    file = midi(tmp_path, [(9, 38, 0, 480)], [(0, 72, 0, 480)])
    with pytest.warns(ScoreWarning, match="1 of 2 tracks are drums"):
        assert len(render_pages(file).notes) == 1
    with pytest.raises(InputError, match="no track has notes with a pitch"), pytest.warns(ScoreWarning):
        render_pages(midi(tmp_path, [(9, 38, 0, 480)]))


def test_a_performance_is_engraved_with_a_rounded_rhythm_and_that_is_said(tmp_path: Path) -> None:
    file = midi(tmp_path, [(0, 72, 480 * i + 37 * (i % 5) + 19, 300) for i in range(16)])
    with pytest.warns(ScoreWarning, match="looks like a performance; the engraved rhythm is rounded"):
        pages = render_pages(file)
    assert len(set(pages.notes["id"].tolist())) == 16
    assert not is_notated(load_quietly(file).parts[0])


def load_quietly(file: Path) -> ps.Score:
    with pytest.warns(ScoreWarning):
        return load_score_midi(str(file))


def test_the_onsets_of_a_score_are_on_the_grid(tmp_path: Path) -> None:
    score = loaded(tmp_path, piano(3))
    assert grid_error(score) == 0
    assert all(is_notated(part) for part in score.parts)


def test_a_file_that_is_no_midi_is_refused(tmp_path: Path) -> None:
    (tmp_path / "score.mid").write_bytes(b"MThd" + melody(1).encode()[:40])
    with pytest.raises(InputError, match="partitura cannot read it as a score"):
        render_pages(tmp_path / "score.mid")
