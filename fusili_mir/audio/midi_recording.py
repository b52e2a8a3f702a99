"""A performance as a MIDI file, synthesised with a soundfont of this machine."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import mido

from fusili_mir.arrays import Float32
from fusili_mir.audio.audio_file import AudioFile
from fusili_mir.audio.soundfonts import (
    FLUIDSYNTH_HZ,
    INSTALL_LINE,
    Soundfont,
    find_fluidsynth,
    find_soundfonts,
    run_fluidsynth,
)
from fusili_mir.boundary import reading
from fusili_mir.errors import InputError, MissingExtraError
from fusili_mir.limits import check_limit
from fusili_mir.progress import stage

__all__ = ["MidiRecording", "is_midi_file", "open_midi_recording"]


def is_midi_file(filename: Path) -> bool:
    """Return whether a file is a MIDI file, judged by its content."""
    try:
        with filename.open("rb") as file:
            start = file.read(12)
    except OSError:
        return False
    return start.startswith(b"MThd") or (start[:4] == b"RIFF" and start[8:] == b"RMID")


@dataclass(frozen=True)
class MidiRecording:
    """A MIDI file that is played when its blocks are asked for; its times are those of the MIDI file.

    Attributes
    ----------
    filename : Path
    soundfont : Soundfont
    label : str, optional
        Name used in messages, if it is not that of the file.
    """

    filename: Path
    soundfont: Soundfont
    label: str | None = None

    @property
    def name(self) -> str:
        """Name used in messages."""
        return self.label or str(self.filename)

    @property
    def sample_rate_hz(self) -> int:
        """Sampling rate at which it is synthesised."""
        return FLUIDSYNTH_HZ

    def blocks(self, progress: bool = False) -> Iterator[Float32]:
        """Synthesise the file and yield its sound."""
        with tempfile.TemporaryDirectory(prefix="fusili-mir-") as folder:
            wav = Path(folder, "midi.wav")
            with stage(f"synthesising with {self.soundfont.name}", shown=progress):
                run_fluidsynth(self.soundfont, self.filename, wav)
            yield from AudioFile(wav, self.name).blocks(progress)


def open_midi_recording(filename: Path, name: str | None = None) -> MidiRecording:
    """Check that a MIDI file can be played here: it has notes, and there are fluidsynth and a soundfont.

    Parameters
    ----------
    filename : Path
    name : str, optional
        Name used in messages, if it is not that of the file.

    Returns
    -------
    MidiRecording
    """
    label = name or str(filename)
    with reading(label, "expected a complete one", "a damaged MIDI file"):
        check_limit("midi_bytes", filename.stat().st_size, label)
        midi = mido.MidiFile(filename, clip=True)
        n_notes = sum(
            message.type == "note_on" and message.velocity > 0 for track in midi.tracks for message in track
        )
        duration_sec = float(midi.length)
    if not n_notes:
        raise InputError(f"{label}: a MIDI file without notes; expected a performance")
    check_limit("hours", duration_sec / 3600, label, "cut it into single pieces")
    try:
        find_fluidsynth()
        soundfont = find_soundfonts()[0]
    except MissingExtraError as error:
        raise MissingExtraError(
            f"{label}: a MIDI file, which is synthesised with fluidsynth and a soundfont; install them with "
            f"`{INSTALL_LINE}`, or give a sound file"
        ) from error
    return MidiRecording(filename, soundfont, name)
