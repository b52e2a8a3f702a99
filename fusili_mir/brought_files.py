"""What somebody brings in place of a score or of a recording: told by its first bytes, or by its name.

Nothing is decided by this but which advice a message gives.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from fusili_mir.boundary import printable
from fusili_mir.errors import InputError

__all__ = ["NOTATION_PROGRAMS", "is_picture", "is_sound", "refuse_project"]

_SOUND = re.compile(
    rb"RIFF....WAVE|RF64....WAVE|fLaC|OggS|ID3|\xff[\xe2-\xe7\xf1-\xf7\xf9-\xfd]|FORM....AIF[FC]|\.snd|caff|riff"
    rb"|....ftyp(?!hei|hev|mif1|msf1|avi)|\x1aE\xdf\xa3|0&\xb2u\x8ef\xcf\x11|RIFF....AVI |wvpk|MAC |#!AMR|MThd",
    re.DOTALL,
)
_PICTURE = re.compile(
    rb"\x89PNG|\xff\xd8\xff|GIF8|BM....\0\0\0\0|II\*\0|MM\0\*|RIFF....WEBP|....ftyp(?:hei|hev|mif1|msf1|avi)|P[1-6]\s"
    rb"|\0\0\0\x0cjP  |.{0,1020}%PDF-",
    re.DOTALL,
)
NOTATION_PROGRAMS = {
    ".mscz": "MuseScore",
    ".mscx": "MuseScore",
    ".cap": "Capella",
    ".capx": "Capella",
    ".gp": "Guitar Pro",
    ".gp3": "Guitar Pro",
    ".gp4": "Guitar Pro",
    ".gp5": "Guitar Pro",
    ".gpx": "Guitar Pro",
    ".gtp": "Guitar Pro",
    ".ptb": "Power Tab Editor",
    ".ove": "Overture",
    ".scw": "Score Writer",
    ".bww": "Bagpipe Player",
    ".mgu": "Band-in-a-Box",
    ".sgu": "Band-in-a-Box",
    ".sib": "Sibelius",
    ".dorico": "Dorico",
    ".mus": "Finale",
    ".musx": "Finale",
    ".ftm": "Forte",
    ".fnf": "Forte",
    ".enc": "Encore",
    ".encx": "Encore",
    ".nwc": "NoteWorthy Composer",
    ".nwctxt": "NoteWorthy Composer",
    ".notion": "Notion",
    ".myr": "Melody Assistant or Harmony Assistant",
    ".tg": "TuxGuitar",
    ".omr": "Audiveris",
    ".opt": "PhotoScore",
    ".enf": "SmartScore",
}
"""Which program writes scores of a suffix; the first ones can be read through MuseScore."""

_SOUND_PROGRAMS = {
    ".aup": "Audacity",
    ".aup3": "Audacity",
    ".als": "Ableton Live",
    ".band": "GarageBand",
    ".logicx": "Logic Pro",
    ".cpr": "Cubase",
    ".ptx": "Pro Tools",
    ".rpp": "REAPER",
    ".flp": "FL Studio",
    ".sesx": "Adobe Audition",
}


def is_sound(filename: Any) -> bool:
    """Return whether something is a file that sounds: audio, a video or MIDI."""
    return _SOUND.match(_start(filename)) is not None


def is_picture(filename: Any) -> bool:
    """Return whether something is a file that shows pages: an image or a PDF."""
    return _PICTURE.match(_start(filename)) is not None


def refuse_project(filename: str | os.PathLike[str]) -> None:
    """Refuse a file that only the program that wrote it can read, and say what that program is to export.

    >>> refuse_project("quartet.sib")
    Traceback (most recent call last):
    fusili_mir.errors.InputError: quartet.sib: a file that only Sibelius reads; export MusicXML from Sibelius
    """
    suffix = Path(filename).suffix.lower()
    for programs, wanted in ((NOTATION_PROGRAMS, "MusicXML"), (_SOUND_PROGRAMS, "WAV or FLAC")):
        if suffix in programs:
            found = f"{printable(filename)}: a file that only {programs[suffix]} reads"
            raise InputError(f"{found}; export {wanted} from {programs[suffix]}")
    if suffix == ".ly":
        found = f"{printable(filename)}: a LilyPond file, which is not read"
        raise InputError(f"{found}; give the PDF that LilyPond makes of it, or MusicXML")


def _start(filename: Any) -> bytes:
    try:
        if not isinstance(filename, str | os.PathLike) or not Path(filename).is_file():
            return b""
        with Path(filename).open("rb") as file:
            return file.read(1024)
    except (OSError, ValueError, TypeError):
        return b""
