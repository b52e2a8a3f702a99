"""Whole recordings in memory, mixed down: audio files, and MIDI played by fluidsynth."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from fusili_mir.arrays import Float32
from fusili_mir.audio.midi_recording import open_midi_recording
from fusili_mir.audio.recording import Recording
from fusili_mir.audio.soundfonts import Soundfont
from fusili_mir.errors import InputError

__all__ = ["Sound", "play_midi", "read_sound"]


@dataclass(frozen=True, eq=False)
class Sound:
    """Mono samples [shape=(n,)] with a full scale of 1."""

    samples: Float32
    sample_rate_hz: int

    @property
    def duration_sec(self) -> float:
        """Length of the sound."""
        return len(self.samples) / self.sample_rate_hz

    def cut(self, start_sec: float, end_sec: float) -> Sound:
        """Return the sound between two times."""
        first, last = (round(max(0.0, seconds) * self.sample_rate_hz) for seconds in (start_sec, end_sec))
        return Sound(self.samples[first:last], self.sample_rate_hz)


def read_sound(recording: Recording) -> Sound:
    """Read a whole recording."""
    blocks = [block.mean(axis=1, dtype=np.float32) for block in recording.blocks()]
    if not blocks:
        raise InputError(f"{recording.name}: has no samples; expected a recording")
    return Sound(np.concatenate(blocks), recording.sample_rate_hz)


def play_midi(filename: Path, soundfont: Soundfont | None = None) -> Sound:
    """Play a MIDI file.

    Parameters
    ----------
    filename : Path
    soundfont : Soundfont, optional
        By default the machine's first soundfont, as `find_soundfonts` lists them.

    Returns
    -------
    Sound
        Sound at `fusili_mir.audio.soundfonts.FLUIDSYNTH_HZ`, without reverberation or chorus.
    """
    if not filename.is_file():
        raise InputError(f"{filename}: not found; expected a MIDI file")
    recording = open_midi_recording(filename)
    return read_sound(recording if soundfont is None else replace(recording, soundfont=soundfont))
