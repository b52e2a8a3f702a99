"""Finding soundfonts and folders of samples, and playing single notes through fluidsynth.

`fusili_mir.audio.soundfonts` says which soundfonts Debian has, and where they are looked for: in the folders that
``FUSILI_SOUNDFONTS`` names or, without it, where Debian installs them.

A folder of single-note recordings counts as a soundfont with one instrument. This fetches a concert grand that
none of our models is trained on (Salamander Grand Piano V3 by Alexander Holm, CC BY 3.0), for
``FUSILI_SOUNDFONTS=samples`` (with Debian's soundfonts,
``samples:/usr/share/sounds/sf2:/usr/share/sounds/sf3``)::

    for layer in 4 8 12; do
        npm pack @audio-samples/piano-velocity$layer
        mkdir -p samples/salamander/$layer
        tar -xf audio-samples-piano-velocity$layer-*.tgz -C samples/salamander/$layer
    done
"""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import mido
import numpy as np
import soundfile

from fusili_mir.arrays import Float32
from fusili_mir.audio.soundfonts import (
    FLUIDSYNTH_HZ,
    FOLDERS_VARIABLE,
    INSTALL_LINE,
    Soundfont,
    debian_package,
    find_sample_folder,
    find_soundfonts,
    run_fluidsynth,
)
from fusili_mir.errors import FusiliWarning, InputError

__all__ = [
    "FLUIDSYNTH_HZ",
    "INSTALL_LINE",
    "NoteRequest",
    "Soundfont",
    "SoundfontWarning",
    "choose_soundfont",
    "find_soundfont",
    "find_soundfonts",
    "play_notes",
]

_TICKS_PER_SEC = 1000


class SoundfontWarning(FusiliWarning):
    """A soundfont that stands in for another one."""


@dataclass(frozen=True)
class NoteRequest:
    """A single note: struck, held, released and left to ring."""

    pitch: int  # MIDI
    velocity: int  # MIDI
    held_sec: float
    ring_sec: float


def find_soundfont(name: str) -> Soundfont:
    """Return the soundfont with this name: a folder of samples, or a file name without its suffix."""
    font = _installed(name)
    if font is None:
        found = ", ".join(font.name for font in find_soundfonts())
        raise InputError(
            f"no soundfont {name!r} on this machine{_how_to_install(name)}; found {found}. Folders of soundfonts "
            f"or samples are named in {FOLDERS_VARIABLE}"
        )
    return font


def choose_soundfont(name: str, strict: bool = False) -> Soundfont:
    """Return the soundfont with this name or, if it is not installed, another one of this machine.

    Parameters
    ----------
    name : str
        Name as in `find_soundfont`.
    strict : bool
        Whether no other soundfont will do.

    Returns
    -------
    Soundfont
        Its name says which one it is.

    Warns
    -----
    SoundfontWarning
        If another soundfont is used. The message says which package brings the one that was asked for.
    """
    font = _installed(name)
    if font is not None or strict:
        return font or find_soundfont(name)
    other = find_soundfonts()[0]
    warnings.warn(
        f"the soundfont {name} is not installed{_how_to_install(name)}; {other.name} is used instead",
        SoundfontWarning,
        stacklevel=2,
    )
    return other


def _installed(name: str) -> Soundfont | None:
    folder = find_sample_folder(name)
    return folder or next((font for font in find_soundfonts() if font.name == name), None)


def _how_to_install(name: str) -> str:
    package = debian_package(name)
    return f" (`apt-get install {package}` brings it)" if package else ""


def play_notes(soundfont: Soundfont, program: int, requests: Sequence[NoteRequest]) -> list[Float32]:
    """Play notes one after another, without reverberation or chorus.

    Parameters
    ----------
    soundfont : Soundfont
    program : int
        General MIDI program, counted from 0.
    requests : sequence of NoteRequest

    Returns
    -------
    list of np.ndarray [shape=(samples,)]
        Mono sound of each request at `FLUIDSYNTH_HZ`, from the attack to the end of the ringing.
    """
    if not 0 <= program <= 127:
        raise InputError(f"program {program} is not a General MIDI program; expected 0..127")
    with tempfile.TemporaryDirectory() as folder:
        midi, wav = Path(folder, "notes.mid"), Path(folder, "notes.wav")
        _midi_file(program, requests).save(midi)
        run_fluidsynth(soundfont, midi, wav)
        sound, _ = soundfile.read(wav, dtype="float32", always_2d=True)
    mono = sound.mean(axis=1, dtype=np.float32)
    clips, start_sec = [], 0.0
    for request in requests:
        end_sec = start_sec + request.held_sec + request.ring_sec
        clips.append(mono[round(start_sec * FLUIDSYNTH_HZ) : round(end_sec * FLUIDSYNTH_HZ)])
        start_sec = end_sec
    return clips


def _midi_file(program: int, requests: Sequence[NoteRequest]) -> mido.MidiFile:
    track = mido.MidiTrack()
    track.append(mido.MetaMessage("set_tempo", tempo=1_000_000))  # one beat per second
    track.append(mido.Message("program_change", program=program))
    rest_ticks = 0
    for request in requests:
        held_ticks = round(request.held_sec * _TICKS_PER_SEC)
        track.append(mido.Message("note_on", note=request.pitch, velocity=request.velocity, time=rest_ticks))
        track.append(mido.Message("note_off", note=request.pitch, time=held_ticks))
        rest_ticks = round(request.ring_sec * _TICKS_PER_SEC)
    track.append(mido.MetaMessage("end_of_track", time=rest_ticks))
    return mido.MidiFile(ticks_per_beat=_TICKS_PER_SEC, tracks=[track])
