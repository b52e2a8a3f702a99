"""Which format a score has, told by its content."""

from __future__ import annotations

import codecs
import lzma
import os
import re
import struct
import zipfile
import zlib
from pathlib import Path
from typing import Literal, TypeAlias

__all__ = ["DAMAGED_ARCHIVE", "SCORE_FORMATS", "ScoreFormat", "is_score_file", "score_format"]

ScoreFormat: TypeAlias = Literal["xml", "musescore", "humdrum", "abc", "midi", "match"]
"""A kind of symbolic score; "xml" is MusicXML, MXL or MEI."""

SCORE_FORMATS = "MusicXML, MXL, MEI, Humdrum kern, ABC, MIDI, a match file or a MuseScore file"
"""What can be read, for messages."""

DAMAGED_ARCHIVE = (
    *(zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error),
    *(NotImplementedError, RuntimeError, EOFError, OSError, ValueError),
)
"""What Python raises for damaged or encrypted zip archives."""

_HEAD_BYTES = 65_536
_FOR_MUSESCORE = (  # read by MuseScore, and not recognised by content
    *(".mscx", ".mscz", ".cap", ".capx", ".bww", ".mgu", ".sgu", ".ove", ".scw", ".ptb"),
    *(".gtp", ".gp3", ".gp4", ".gp5", ".gpx", ".gp"),
)
_ABC_TUNE = re.compile(r"X:\s*\d+\s*(%.*)?")


def score_format(filename: str | os.PathLike[str]) -> ScoreFormat | None:
    """Return the format of a symbolic score; None for images, PDFs, folders and whatever is no score.

    The content decides, whatever the name; only formats that MuseScore alone reads are recognised by their name.
    """
    path = Path(filename)
    try:
        if not path.is_file():  # a folder, or a pipe, which would be waited for
            return None
        with path.open("rb") as file:
            start = file.read(_HEAD_BYTES)
    except (OSError, ValueError):  # the latter for NUL in a name
        return None
    if start.startswith(b"MThd"):
        return "midi"
    if start.startswith(b"PK") and _holds_musescore(path):
        return "musescore"
    if start and path.suffix.lower() in _FOR_MUSESCORE:
        return "musescore"
    text = start.removeprefix(codecs.BOM_UTF8).lstrip()
    if text.startswith((b"PK", b"<", codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "musescore" if b"<museScore" in text[:1024] else "xml"
    return _format_of_text(text)


def is_score_file(filename: str | os.PathLike[str]) -> bool:
    """Return whether a file is a symbolic score rather than an image."""
    return score_format(filename) is not None


def _format_of_text(start: bytes) -> ScoreFormat | None:
    if b"\0" in start:
        return None
    lines = start.decode("utf-8", "replace").splitlines()
    if lines and lines[0].startswith("info("):
        return "match"
    if next((line for line in lines if line.strip() and line[0] != "!"), "").startswith("**"):
        return "humdrum"
    if any(line.startswith("%abc") or _ABC_TUNE.fullmatch(line) for line in lines):
        return "abc"
    return None


def _holds_musescore(path: Path) -> bool:
    try:
        with zipfile.ZipFile(path) as archive:
            return any(name.endswith(".mscx") for name in archive.namelist())
    except DAMAGED_ARCHIVE:
        return False
