"""Soundfonts on this machine, and the program `fluidsynth` that plays MIDI files with them.

The program is called as a process of its own; the Python binding is not used (with it installed, importing
partitura tries to download a soundfont).

On Debian and Ubuntu one line brings the least that is needed (6 MB of samples)::

    apt-get install --no-install-recommends fluidsynth timgm6mb-soundfont

| package | name | licence |
| --- | --- | --- |
| fluid-soundfont-gm | FluidR3_GM | MIT |
| musescore-general-soundfont | MuseScore_General | MIT |
| musescore-general-soundfont-small | MuseScore_General_Lite | MIT |
| timgm6mb-soundfont | TimGM6mb | GPL-2 |
"""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from fusili_mir.errors import InputError, MissingExtraError
from fusili_mir.limits import limit
from fusili_mir.worker_process import ending_with_caller

__all__ = [
    "FLUIDSYNTH_HZ",
    "INSTALL_LINE",
    "Soundfont",
    "debian_package",
    "find_fluidsynth",
    "find_sample_folder",
    "find_soundfonts",
    "run_fluidsynth",
    "soundfont_folders",
]

INSTALL_LINE = "apt-get install --no-install-recommends fluidsynth timgm6mb-soundfont"
FLUIDSYNTH_HZ = 48_000
FOLDERS_VARIABLE = "FUSILI_SOUNDFONTS"
"""Environment variable that names the folders to search in place of the usual ones, separated as in PATH."""

_FOLDERS: tuple[str, ...] = (
    "/usr/share/sounds/sf2",
    "/usr/share/sounds/sf3",
    "/usr/share/soundfonts",
    "/usr/local/share/soundfonts",
)


@dataclass(frozen=True)
class Soundfont:
    """A soundfont file on this machine, or a folder of single-note recordings in its place."""

    name: str
    path: Path
    licence: str  # "unknown" for one that is not in the table of this module

    @property
    def is_sample_folder(self) -> bool:
        """Whether it is a folder: one instrument, whatever the program."""
        return self.path.is_dir()


@dataclass(frozen=True)
class _Known:
    licence: str
    package: str | None = None  # of Debian


_KNOWN = {  # the better ones first
    "FluidR3_GM": _Known("MIT", "fluid-soundfont-gm"),
    "MuseScore_General": _Known("MIT", "musescore-general-soundfont"),
    "MuseScore_General_Lite": _Known("MIT", "musescore-general-soundfont-small"),
    "TimGM6mb": _Known("GPL-2", "timgm6mb-soundfont"),
    "salamander": _Known("CC-BY-3.0"),
}


def debian_package(name: str) -> str | None:
    """Return the package of Debian and Ubuntu that brings a soundfont; None if there is none.

    >>> debian_package("FluidR3_GM")
    'fluid-soundfont-gm'
    """
    return _KNOWN[name].package if name in _KNOWN else None


def soundfont_folders() -> list[str]:
    """Return the folders that are searched: those of ``FUSILI_SOUNDFONTS``, or the usual ones."""
    chosen = [folder for folder in os.environ.get(FOLDERS_VARIABLE, "").split(os.pathsep) if folder]
    return chosen or list(_FOLDERS)


def find_soundfonts() -> list[Soundfont]:
    """List the soundfont files of this machine: those that this module knows first, then the others by name.

    Returns
    -------
    list of Soundfont
        Never empty: without a soundfont the error says how to install one.
    """
    found: dict[str, Soundfont] = {}
    for folder in soundfont_folders():
        for path in sorted(Path(folder).glob("*.sf[23]")):
            # Links such as default-GM.sf2 stand for a file with a name of its own.
            target = path.resolve()
            if target.is_file():
                found.setdefault(target.stem, Soundfont(target.stem, target, _licence(target.stem)))
    if not found:
        raise MissingExtraError(
            f"no soundfont (.sf2, .sf3) found in {', '.join(soundfont_folders())}; install one with "
            f"`{INSTALL_LINE}` or name its folder in {FOLDERS_VARIABLE}"
        )
    return [found[name] for name in sorted(found, key=_rank)]


def find_sample_folder(name: str) -> Soundfont | None:
    """Return the folder of single-note recordings with this name, which stands for a soundfont."""
    for folder in soundfont_folders():
        if (Path(folder) / name).is_dir():
            return Soundfont(name, Path(folder, name).resolve(), _licence(name))
    return None


def find_fluidsynth() -> str:
    """Return the path of the program `fluidsynth`."""
    executable = shutil.which("fluidsynth")
    if executable is None:
        raise MissingExtraError(f"the program `fluidsynth` was not found; install it with `{INSTALL_LINE}`")
    return executable


def run_fluidsynth(soundfont: Soundfont, midi: Path, wav: Path) -> None:
    """Play a MIDI file into a WAV file of floats at `FLUIDSYNTH_HZ`, without reverberation or chorus."""
    executable = find_fluidsynth()
    _check_is_soundfont(soundfont.path)
    # -n no MIDI input, -i no shell, -R/-C reverberation and chorus off
    command = [executable, "-n", "-i", "-q", "-R", "0", "-C", "0", "-g", "0.5", "-r", str(FLUIDSYNTH_HZ)]
    command += ["-o", "synth.default-soundfont=", "-T", "wav", "-O", "float", "-F", str(wav)]
    command += [str(soundfont.path.absolute()), str(midi.absolute())]
    try:
        run = subprocess.run(  # noqa: S603 - no shell, and the executable is found by its absolute path
            ending_with_caller(command),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            timeout=limit("fluidsynth_sec"),
        )
    except subprocess.TimeoutExpired as error:
        raise InputError(f"fluidsynth took over {limit('fluidsynth_sec'):g} s on {soundfont.path}") from error
    complaint = " ".join(run.stderr.split())
    if run.returncode or not wav.exists() or "error" in complaint:
        raise InputError(f"fluidsynth cannot play {soundfont.path}: {complaint or 'it gave no reason'}")


def _licence(name: str) -> str:
    return _KNOWN[name].licence if name in _KNOWN else "unknown"


def _rank(name: str) -> tuple[int, str]:
    return (list(_KNOWN).index(name) if name in _KNOWN else len(_KNOWN)), name


def _check_is_soundfont(path: Path) -> None:
    # fluidsynth would play the machine's default soundfont instead
    try:
        with path.open("rb") as file:
            header = file.read(12)
    except OSError as error:
        raise InputError(f"cannot read the soundfont {path}: {error.strerror}") from error
    if header[:4] != b"RIFF" or header[8:] != b"sfbk":
        raise InputError(f"{path} is not a soundfont; expected a RIFF file of kind sfbk")
