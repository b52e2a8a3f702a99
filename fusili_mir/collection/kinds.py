"""Which files belong into an index, and whether each is a score or a recording."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Literal, TypeAlias

from fusili_mir.errors import InputError
from fusili_mir.pages.page_ranges import split_page_range
from fusili_mir.pages.page_sources import IMAGE_SUFFIXES
from fusili_mir.scores.score_formats import is_score_file

__all__ = ["KINDS", "Kind", "kind_of", "list_files"]

Kind: TypeAlias = Literal["score", "recording"]
KINDS: tuple[Kind, ...] = ("score", "recording")

_SCORE_SUFFIXES = {
    *(".musicxml", ".mxl", ".xml", ".mei", ".krn", ".kern", ".abc", ".mid", ".midi", ".match"),
    *(".mscz", ".mscx", ".pdf"),
    *IMAGE_SUFFIXES,
}
_RECORDING_SUFFIXES = {
    *(".wav", ".flac", ".ogg", ".oga", ".opus", ".mp3", ".aif", ".aiff", ".aifc", ".au", ".caf", ".w64"),
    *(".m4a", ".aac", ".wma", ".mka", ".mp4", ".webm", ".mkv", ".mov", ".avi"),
}


def kind_of(filename: str | os.PathLike[str]) -> Kind:
    """Return whether a file is a score or a recording; MIDI files are scores.

    >>> kind_of("scan.pdf#2-4"), kind_of("concert.flac")
    ('score', 'recording')
    """
    path = split_page_range(os.fspath(filename))[0]
    if path.is_dir() or path.suffix.lower() in _SCORE_SUFFIXES:
        return "score"
    if path.suffix.lower() in _RECORDING_SUFFIXES:
        return "recording"
    try:
        with path.open("rb") as file:
            start = file.read(1024)
    except OSError:
        return "recording"
    return "score" if b"%PDF-" in start or is_score_file(path) else "recording"


def list_files(paths: Iterable[str | os.PathLike[str]]) -> list[Path]:
    """List files, and in folders all files that look like scores or recordings by their names.

    Returns
    -------
    list of Path
        Absolute paths, each once, in the order in which they were found.
    """
    return list(dict.fromkeys(Path(file).absolute() for path in paths for file in _files(Path(path))))


def _files(path: Path) -> Iterator[Path]:
    if not path.is_dir():
        if not path.exists():
            raise InputError(f"{path}: not found; expected a score, a recording, or a folder of them")
        yield path
        return
    for folder, subfolders, names in os.walk(path):
        subfolders[:] = sorted(name for name in subfolders if not name.startswith("."))
        for name in sorted(names):
            suffix = Path(name).suffix.lower()
            if not name.startswith(".") and suffix in _SCORE_SUFFIXES | _RECORDING_SUFFIXES:
                yield Path(folder) / name
