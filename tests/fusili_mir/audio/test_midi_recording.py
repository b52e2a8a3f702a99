from __future__ import annotations

from pathlib import Path

import mido
import numpy as np
import pytest

from fusili_mir.audio.midi_recording import MidiRecording, is_midi_file, open_midi_recording
from fusili_mir.audio.opening import open_recording
from fusili_mir.audio.recording import read_recording
from fusili_mir.errors import InputError, MissingExtraError

needs_fluidsynth = pytest.mark.usefixtures("soundfont")


def write_midi(filename: Path, n_notes: int = 1) -> Path:
    """Write A4s, each half a second after the last one and half a second long."""
    track = mido.MidiTrack()
    for _ in range(n_notes):
        track.append(mido.Message("note_on", note=69, velocity=100, time=480))
        track.append(mido.Message("note_off", note=69, time=480))
    mido.MidiFile(ticks_per_beat=480, tracks=[track]).save(filename)
    return filename


@needs_fluidsynth
def test_a_midi_file_is_heard_at_its_own_seconds(tmp_path: Path) -> None:
    recording = open_recording(write_midi(tmp_path / "played.dat"))  # the content decides, not the name
    assert isinstance(recording, MidiRecording)
    samples = np.concatenate(list(read_recording(recording, 16_000)))
    assert np.abs(samples[: round(0.49 * 16_000)]).max() < 1e-3
    heard = samples[round(0.6 * 16_000) : round(0.9 * 16_000)]
    assert np.abs(np.fft.rfft(heard)).argmax() * 16_000 / len(heard) == pytest.approx(440, abs=4)


@needs_fluidsynth
def test_an_excerpt_of_a_midi_file_starts_where_it_says(tmp_path: Path) -> None:
    write_midi(tmp_path / "a.mid", 4)
    whole = np.concatenate(list(read_recording(tmp_path / "a.mid", 48_000)))
    part = np.concatenate(list(read_recording(open_recording(tmp_path / "a.mid", 1.0, 2.0), 48_000)))
    assert np.array_equal(part, whole[48_000:96_000])


def test_without_fluidsynth_or_soundfonts_the_message_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_midi(tmp_path / "a.mid")
    monkeypatch.setenv("FUSILI_SOUNDFONTS", str(tmp_path))
    expected = r"a\.mid: a MIDI file, .* `apt-get install .* timgm6mb-soundfont`, or give a sound file"
    with pytest.raises(MissingExtraError, match=expected):
        open_recording(tmp_path / "a.mid")
    monkeypatch.undo()
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingExtraError, match=expected):
        open_recording(tmp_path / "a.mid")


def test_a_midi_file_without_notes_or_torn_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="a MIDI file without notes"):
        open_recording(write_midi(tmp_path / "empty.mid", 0))
    data = write_midi(tmp_path / "torn.mid", 4).read_bytes()
    (tmp_path / "torn.mid").write_bytes(data[:30])
    assert is_midi_file(tmp_path / "torn.mid")
    with pytest.raises(InputError, match=r"torn\.mid: a damaged MIDI file"):
        open_midi_recording(tmp_path / "torn.mid")
