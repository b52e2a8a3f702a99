import sys
from pathlib import Path

import numpy as np
import partitura as pt
import partitura.score as ps
import pytest
from partitura.performance import Performance, PerformedPart

from fusili_mir.errors import InputError, MissingExtraError
from fusili_training.sound.human_timing import played_notes_from_match, played_notes_from_midi
from fusili_training.sound.score_notes import read_score_notes

# a scale in quarters, played at second 0.5 + 0.4 i with increasing delays; n2 is left out, one note is added
ONSETS_SEC = np.array([0.5, 0.91, 1.33, 1.74, 2.16, 2.59, 3.01, 3.47])
STEPS = "CDEFGABC"


def make_score() -> ps.Score:
    part = ps.Part("P1", quarter_duration=4)
    part.add(ps.TimeSignature(4, 4), 0)
    for i, step in enumerate(STEPS):
        note = ps.Note(step=step, octave=4 + i // 7, id=f"n{i}", voice=1, staff=1)
        part.add(note, 4 * i, 4 * i + 4)
    ps.add_measures(part)
    return ps.Score([part])


def make_performance(controls: list[dict[str, object]]) -> Performance:
    pitches = read_score_notes(make_score())["pitch"]
    notes = [
        {"id": f"n{i + 10}", "midi_pitch": int(p), "note_on": on, "note_off": on + 0.3, "velocity": 50 + i}
        for i, (p, on) in enumerate(zip(pitches, ONSETS_SEC, strict=True))
        if i != 2
    ]
    notes.append({"id": "n99", "midi_pitch": 90, "note_on": 2.0, "note_off": 2.1, "velocity": 30})
    for note in notes:
        note |= {"track": 0, "channel": 0, "note_on_tick": 0, "note_off_tick": 0}
    return Performance(PerformedPart(notes, controls=controls, ppq=1000, mpq=500_000))


def check(played: np.ndarray) -> None:
    kept = [0, 1, 3, 4, 5, 6, 7]
    by_id = {str(note["id"]): note for note in played}
    assert set(by_id) == {f"n{i}" for i in kept} | {""}
    np.testing.assert_allclose([by_id[f"n{i}"]["onset_sec"] for i in kept], ONSETS_SEC[kept], atol=1.1e-3)
    assert [by_id[f"n{i}"]["velocity"] for i in kept] == [50 + i for i in kept]
    assert by_id[""]["pitch"] == 90
    assert (np.diff(played["onset_sec"]) >= 0).all()


def test_a_match_file_gives_each_score_note_its_onset(tmp_path: Path) -> None:
    alignment = [
        {"label": "match", "score_id": f"n{i}", "performance_id": f"n{i + 10}"} for i in range(8) if i != 2
    ]
    alignment += [{"label": "deletion", "score_id": "n2"}, {"label": "insertion", "performance_id": "n99"}]
    performance = make_performance(controls=[])
    score = make_score()
    pt.save_match(alignment, performance, score, out=tmp_path / "a.match", ppq=1000, mpq=500_000)
    played = played_notes_from_match(tmp_path / "a.match", read_score_notes(score))
    check(played)
    np.testing.assert_allclose(played["duration_sec"][0], 0.3, atol=1e-3)


def test_a_midi_file_is_aligned_with_the_score(tmp_path: Path) -> None:
    pedal: list[dict[str, object]] = [
        {"number": 64, "time": 0.6, "value": 127, "track": 0, "channel": 0},
        {"number": 64, "time": 1.2, "value": 0, "track": 0, "channel": 0},
    ]
    pt.save_performance_midi(make_performance(pedal), tmp_path / "a.mid")
    played = played_notes_from_midi(tmp_path / "a.mid", read_score_notes(make_score()))
    check(played)
    # held from 0.5 to 0.8, pedalled until 1.2
    assert played["duration_sec"][0] == pytest.approx(0.3, abs=2e-3)
    assert played["sounding_sec"][0] == pytest.approx(0.7, abs=2e-3)


def test_a_match_file_of_another_score_is_refused(tmp_path: Path) -> None:
    alignment = [
        {"label": "match", "score_id": f"n{i}", "performance_id": f"n{i + 10}"} for i in range(8) if i != 2
    ]
    alignment += [{"label": "deletion", "score_id": "n2"}, {"label": "insertion", "performance_id": "n99"}]
    pt.save_match(alignment, make_performance([]), make_score(), out=tmp_path / "a.match")
    other = read_score_notes(make_score())
    other["id"] = [f"x{i}" for i in range(len(other))]
    with pytest.raises(InputError, match="only 0 of 7 matched notes"):
        played_notes_from_match(tmp_path / "a.match", other)


@pytest.mark.parametrize("content", [b"", b"not a match file\n", b"\xff\xfe\x00"])
def test_broken_files_give_one_line(tmp_path: Path, content: bytes) -> None:
    broken = tmp_path / "broken"
    broken.write_bytes(content)
    notes = read_score_notes(make_score())
    for read in (played_notes_from_match, played_notes_from_midi):
        with pytest.raises(InputError, match="cannot be read") as caught:
            read(broken, notes)
        assert "\n" not in str(caught.value)


def test_a_missing_file_gives_one_line(tmp_path: Path) -> None:
    for read in (played_notes_from_match, played_notes_from_midi):
        with pytest.raises(InputError, match="cannot be read"):
            read(tmp_path / "nowhere", read_score_notes(make_score()))


def test_without_parangonar_the_message_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "parangonar", None)
    with pytest.raises(MissingExtraError, match=r"fusili-mir\[integrations\]"):
        played_notes_from_midi(tmp_path / "a.mid", read_score_notes(make_score()))
