"""Finding soundfonts and folders of samples, and playing single notes through fluidsynth.

The `fluidsynth` program runs in its own process. The Python binding is not used: with it installed, importing
partitura tries to download a soundfont.

On Debian and Ubuntu this installs the minimum (6 MB of samples)::

    apt-get install --no-install-recommends fluidsynth timgm6mb-soundfont

| package | name | licence |
| --- | --- | --- |
| timgm6mb-soundfont | TimGM6mb | GPL-2 |
| musescore-general-soundfont-small | MuseScore_General_Lite | MIT |
| fluid-soundfont-gm | FluidR3_GM | MIT |

A folder of single-note recordings counts as a soundfont with one instrument. This fetches a concert grand that
none of our models is trained on (Salamander Grand Piano V3 by Alexander Holm, CC BY 3.0), for
``FUSILI_SOUNDFONTS=samples``::

    for layer in 4 8 12; do
        npm pack @audio-samples/piano-velocity$layer
        mkdir -p samples/salamander/$layer
        tar -xf audio-samples-piano-velocity$layer-*.tgz -C samples/salamander/$layer
    done
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import mido
import numpy as np
import soundfile

from fusili_mir.arrays import Float32
from fusili_mir.errors import InputError, MissingExtraError

__all__ = [
    "FLUIDSYNTH_HZ",
    "INSTALL_LINE",
    "NoteRequest",
    "Soundfont",
    "find_soundfont",
    "find_soundfonts",
    "play_notes",
]

INSTALL_LINE = "apt-get install --no-install-recommends fluidsynth timgm6mb-soundfont"
FLUIDSYNTH_HZ = 48_000

_LICENCES = {
    "TimGM6mb": "GPL-2",
    "MuseScore_General_Lite": "MIT",
    "MuseScore_General": "MIT",
    "FluidR3_GM": "MIT",
    "salamander": "CC-BY-3.0",
}
_FOLDERS = (
    "/usr/share/sounds/sf2",
    "/usr/share/sounds/sf3",
    "/usr/share/soundfonts",
    "/usr/local/share/soundfonts",
)
_FOLDERS_VARIABLE = "FUSILI_SOUNDFONTS"  # additional folders, separated as in PATH
_TICKS_PER_SEC = 1000
_TIME_LIMIT_SEC = 600


@dataclass(frozen=True)
class Soundfont:
    """A soundfont file on this machine, or a folder of single-note recordings."""

    name: str
    path: Path
    licence: str  # "unknown" if this module does not know it

    @property
    def is_sample_folder(self) -> bool:
        """Whether this is a folder of recordings: one instrument for all programs."""
        return self.path.is_dir()


@dataclass(frozen=True)
class NoteRequest:
    """A single note: struck, held, released and left to ring."""

    pitch: int  # MIDI
    velocity: int  # MIDI
    held_sec: float
    ring_sec: float


def find_soundfonts() -> list[Soundfont]:
    """List the soundfont files of this machine, sorted by name.

    The folders of the environment variable ``FUSILI_SOUNDFONTS`` are searched first, then those where
    distributions install soundfonts.

    Returns
    -------
    list of Soundfont
        At least one: if there is none, the error says how to install one.
    """
    own = _own_folders()
    found: dict[str, Soundfont] = {}
    for folder in [*own, *_FOLDERS]:
        for path in sorted(Path(folder).glob("*.sf[23]")):
            # Links such as default-GM.sf2 point to a file with another name.
            target = path.resolve()
            if target.is_file():
                name = target.stem
                found.setdefault(name, Soundfont(name, target, _LICENCES.get(name, "unknown")))
    if not found:
        raise MissingExtraError(
            f"no soundfont (.sf2, .sf3) found in {', '.join([*own, *_FOLDERS])}; install one with "
            f"`{INSTALL_LINE}` or name its folder in {_FOLDERS_VARIABLE}"
        )
    return [found[name] for name in sorted(found)]


def find_soundfont(name: str) -> Soundfont:
    """Return the soundfont with a given name, that of a folder of samples or of a file without its suffix."""
    for folder in [*_own_folders(), *_FOLDERS]:
        if (Path(folder) / name).is_dir():
            return Soundfont(name, Path(folder, name).resolve(), _LICENCES.get(name, "unknown"))
    fonts = find_soundfonts()
    for font in fonts:
        if font.name == name:
            return font
    raise InputError(
        f"no soundfont {name!r} on this machine; found {', '.join(font.name for font in fonts)}. Add folders of "
        f"soundfonts or samples to {_FOLDERS_VARIABLE}"
    )


def _own_folders() -> list[str]:
    return [folder for folder in os.environ.get(_FOLDERS_VARIABLE, "").split(os.pathsep) if folder]


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
    executable = shutil.which("fluidsynth")
    if executable is None:
        raise MissingExtraError(f"the program `fluidsynth` was not found; install it with `{INSTALL_LINE}`")
    _check_is_soundfont(soundfont.path)
    with tempfile.TemporaryDirectory() as folder:
        midi, wav = Path(folder, "notes.mid"), Path(folder, "notes.wav")
        _midi_file(program, requests).save(midi)
        # -n no MIDI input, -i no shell, -R/-C reverberation and chorus off
        command = [executable, "-n", "-i", "-q", "-R", "0", "-C", "0", "-g", "0.5", "-r", str(FLUIDSYNTH_HZ)]
        command += [
            "-o",
            "synth.default-soundfont=",
            "-T",
            "wav",
            "-O",
            "float",
            "-F",
            str(wav),
            str(soundfont.path),
            str(midi),
        ]
        try:
            run = subprocess.run(  # noqa: S603 - no shell, and the executable is found by its absolute path
                command, capture_output=True, text=True, check=False, timeout=_TIME_LIMIT_SEC
            )
        except subprocess.TimeoutExpired as error:
            raise InputError(
                f"fluidsynth took more than {_TIME_LIMIT_SEC} s with {soundfont.path}"
            ) from error
        complaint = " ".join(run.stderr.split())
        if run.returncode or not wav.exists() or "error" in complaint:
            raise InputError(f"fluidsynth cannot play {soundfont.path}: {complaint or 'it gave no reason'}")
        sound, _ = soundfile.read(wav, dtype="float32", always_2d=True)
    mono = sound.mean(axis=1, dtype=np.float32)
    clips, start_sec = [], 0.0
    for request in requests:
        end_sec = start_sec + request.held_sec + request.ring_sec
        clips.append(mono[round(start_sec * FLUIDSYNTH_HZ) : round(end_sec * FLUIDSYNTH_HZ)])
        start_sec = end_sec
    return clips


def _check_is_soundfont(path: Path) -> None:
    # With anything else, fluidsynth would play the machine's default soundfont.
    try:
        with path.open("rb") as file:
            header = file.read(12)
    except OSError as error:
        raise InputError(f"cannot read the soundfont {path}: {error.strerror}") from error
    if header[:4] != b"RIFF" or header[8:] != b"sfbk":
        raise InputError(f"{path} is not a soundfont; expected a RIFF file of type sfbk")


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
