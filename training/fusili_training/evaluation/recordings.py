"""Whole recordings in memory, mixed down: audio files, and MIDI played by fluidsynth."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import soundfile

from fusili_mir.arrays import Float32
from fusili_mir.audio.recording import Recording
from fusili_mir.errors import InputError, MissingExtraError
from fusili_training.sound.soundfonts import FLUIDSYNTH_HZ, INSTALL_LINE, Soundfont, find_soundfonts

__all__ = ["Sound", "play_midi", "read_sound"]

_TIME_LIMIT_SEC = 600


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
        By default the machine's first soundfont by name.

    Returns
    -------
    Sound
        Sound at `FLUIDSYNTH_HZ`, without reverberation or chorus.
    """
    executable = shutil.which("fluidsynth")
    if executable is None:
        raise MissingExtraError(f"the program `fluidsynth` was not found; install it with `{INSTALL_LINE}`")
    if not filename.is_file():
        raise InputError(f"{filename}: not found; expected a MIDI file")
    soundfont = soundfont or find_soundfonts()[0]
    with tempfile.TemporaryDirectory() as folder:
        wav = Path(folder, "midi.wav")
        # -n no MIDI input, -i no shell, -R/-C reverberation and chorus off
        command = [executable, "-n", "-i", "-q", "-R", "0", "-C", "0", "-g", "0.5", "-r", str(FLUIDSYNTH_HZ)]
        command += ["-T", "wav", "-O", "float", "-F", str(wav), str(soundfont.path), str(filename)]
        try:
            run = subprocess.run(  # noqa: S603 - no shell, and the executable is found by its absolute path
                command, capture_output=True, text=True, check=False, timeout=_TIME_LIMIT_SEC
            )
        except subprocess.TimeoutExpired as error:
            raise InputError(f"{filename}: fluidsynth took over {_TIME_LIMIT_SEC} s to play it") from error
        if run.returncode or not wav.exists():
            complaint = " ".join(run.stderr.split()) or "it gave no reason"
            raise InputError(f"{filename}: fluidsynth cannot play it: {complaint}")
        sound, _ = soundfile.read(wav, dtype="float32", always_2d=True)
    if not len(sound):
        raise InputError(f"{filename}: fluidsynth played nothing; expected a MIDI file with notes")
    return Sound(sound.mean(axis=1, dtype=np.float32), FLUIDSYNTH_HZ)
