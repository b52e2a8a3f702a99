"""partitura and a plain MIDI reader get back what was written, and bars lie where the recording has them."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path

import mido
import numpy as np
import partitura as pt
import pytest
from example_performances import PITCHES, perform, record
from example_scores import measure, note, score

from fusili_mir.alignment.aligning import align_recording
from fusili_mir.alignment.played import play_pages
from fusili_mir.alignment.results import Alignment
from fusili_mir.model.encoder import Encoder
from fusili_mir.output.label_files import save_sonic_visualiser
from fusili_mir.output.performance_midi import performance_midi, save_performance_midi
from fusili_mir.pages.pages import render_pages


def heard(alignment: Alignment) -> np.ndarray:
    return alignment.notes[np.isfinite(alignment.notes["onset_sec"])]


def read_back(alignment: Alignment, folder: Path) -> np.ndarray:
    """The notes of all tracks as partitura reads them."""
    save_performance_midi(alignment, folder / "performance.mid")
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a note that another one cuts off is a warning
        performance = pt.load_performance_midi(folder / "performance.mid")
    return np.concatenate([part.note_array() for part in performance.performedparts])


def seconds_of(midi: mido.MidiFile, kind: str) -> list[tuple[float, mido.MetaMessage]]:
    """All messages of a kind, with their seconds."""
    found, now = [], 0.0
    for message in midi:
        now += message.time
        if message.type == kind:
            found.append((now, message))
    return found


@pytest.mark.parametrize("name", ["duet", "repeated", "cut_short"])
def test_partitura_reads_all_notes_that_were_heard_within_a_millisecond(
    name: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    alignment: Alignment = request.getfixturevalue(name)
    notes, expected = read_back(alignment, tmp_path), heard(alignment)
    assert len(notes) == len(expected)
    got = sorted(zip(notes["pitch"].tolist(), notes["onset_sec"].tolist(), strict=True))
    want = sorted(zip(expected["pitch"].tolist(), expected["onset_sec"].tolist(), strict=True))
    assert [pitch for pitch, _ in got] == [pitch for pitch, _ in want]
    assert [second for _, second in got] == pytest.approx([second for _, second in want], abs=0.001)


def test_unisons_of_parts_and_of_voices_are_kept(duet: Alignment, tmp_path: Path) -> None:
    assert len(read_back(duet, tmp_path)) == 3 * len(PITCHES)


def test_each_part_has_a_track_a_channel_a_name_and_a_program(duet: Alignment) -> None:
    conductor, *tracks = performance_midi(duet).tracks
    assert conductor.name == "duet"
    assert [track.name for track in tracks] == ["Singstimme", "Klavier", "Klavier, voice 2"]
    channels = [{message.channel for message in track if message.type == "note_on"} for track in tracks]
    assert [len(each) for each in channels] == [1, 1, 1]
    assert len(set.union(*channels)) == 3
    assert 9 not in set.union(*channels)  # percussion
    programs = [
        next(message.program for message in track if message.type == "program_change") for track in tracks
    ]
    assert programs == [52, 0, 0]


def test_the_bars_of_the_score_lie_at_the_seconds_of_the_recording(duet: Alignment) -> None:
    midi = performance_midi(duet)
    markers = seconds_of(midi, "marker")
    assert [message.text for _, message in markers] == [f"measure {number}" for number in range(1, 9)]
    starts = [heard(duet)["onset_sec"][heard(duet)["measure"] == each].min() for each in range(8)]
    assert [second for second, _ in markers] == pytest.approx(starts, abs=0.001)
    tick, ticks = 0, []
    for message in midi.tracks[0]:
        tick += message.time
        if message.type == "marker":
            ticks.append(tick)
    assert set(np.diff(ticks).tolist()) == {2 * midi.ticks_per_beat}  # 2/4, whatever the tempo
    assert ticks[0] % (2 * midi.ticks_per_beat) == 0  # after whole bars of rest
    assert ticks[0] // (2 * midi.ticks_per_beat) == round(2.4 / (2 * 0.48))


def test_notes_lie_on_the_grid_of_the_score(duet: Alignment) -> None:
    midi = performance_midi(duet)
    tick, ticks = 0, set()
    for message in midi.tracks[1]:
        tick += message.time
        if message.type == "note_on":
            ticks.add(tick % midi.ticks_per_beat)
    assert ticks == {0}  # quarter notes on quarters


def test_irregular_measures_have_a_time_signature_of_their_own(repeated: Alignment) -> None:
    midi = performance_midi(repeated)
    signatures = [
        (message.numerator, message.denominator) for _, message in seconds_of(midi, "time_signature")
    ]
    assert signatures == [(2, 4), (1, 4), (2, 4)]  # a bar of rest, the pick-up, and the rest of the score
    assert [message.text for _, message in seconds_of(midi, "marker")] == [
        f"measure {number}" for number in (0, 1, 2, 1, 3)
    ]


def test_after_fifteen_channels_tracks_go_on_at_the_next_port(tmp_path: Path, encoder: Encoder) -> None:
    bars = [
        measure(note(pitch, "half"), number, first=number == 1)
        for number, pitch in enumerate(("C5", "E5", "D5"), 1)
    ]
    (tmp_path / "choir.musicxml").write_text(score(*[bars] * 17))
    pages = render_pages(tmp_path / "choir.musicxml")
    sung = perform(play_pages(pages))
    _, first = np.unique(sung["onset_sec"], return_index=True)  # seventeen at once would be too loud
    alignment = align_recording(pages, record(sung[first]), model=encoder)
    assert len(read_back(alignment, tmp_path)) == 51
    tracks = performance_midi(alignment).tracks[1:]
    ports = [next(message.port for message in track if message.type == "midi_port") for track in tracks]
    assert ports == [0] * 15 + [1] * 2
    keys = {
        (port, message.channel)
        for port, track in zip(ports, tracks, strict=True)
        for message in track
        if message.type == "note_on"
    }
    assert len(keys) == 17


def test_names_that_the_charset_of_midi_cannot_spell_are_kept(
    tmp_path: Path, encoder: Encoder, duet: Alignment
) -> None:
    content = Path(duet.pages.filename).read_text().replace("Klavier", "Рояль")
    (tmp_path / "duet.musicxml").write_text(content, encoding="utf-8")
    pages = render_pages(tmp_path / "duet.musicxml")
    alignment = align_recording(pages, record(perform(play_pages(pages))), model=encoder)
    save_performance_midi(alignment, tmp_path / "performance.mid")
    read = mido.MidiFile(tmp_path / "performance.mid", charset="utf-8")
    assert read.tracks[2].name == "Рояль"


def test_transposing_instruments_sound_as_they_are_heard(duet: Alignment, tmp_path: Path) -> None:
    sung = {str(each.id) for each in duet.pages.score.parts[0].notes}  # type: ignore[union-attr]
    lower = replace(duet, pages=replace(duet.pages, transpositions=dict.fromkeys(sung, -2)))
    pitches = [
        [message.note for message in performance_midi(each).tracks[1] if message.type == "note_on"]
        for each in (duet, lower)
    ]
    assert pitches[1] == [pitch - 2 for pitch in pitches[0]]
    save_sonic_visualiser(lower, tmp_path)
    for name in ("notes.svl", "sonic-visualiser.csv"):
        assert (tmp_path / name).read_text().count(str(min(pitches[1]))) > 0
