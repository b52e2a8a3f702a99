"""Which files belong into an index, and whether each is a score or a recording."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Literal, TypeAlias

from fusili_mir.boundary import described, refuse_address
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
    if _is_folder(path) or path.suffix.lower() in _SCORE_SUFFIXES:
        return "score"
    if path.suffix.lower() in _RECORDING_SUFFIXES:
        return "recording"
    try:
        if path.exists() and not path.is_file():  # a pipe, which would be waited for
            return "recording"
        with path.open("rb") as file:
            start = file.read(1024)
    except (OSError, ValueError):  # the latter for NUL in a name
        return "recording"
    return "score" if b"%PDF-" in start or is_score_file(path) else "recording"


def list_files(paths: Iterable[str | os.PathLike[str]]) -> list[Path]:
    """List files, and in folders all files that look like scores or recordings by their names.

    Links to folders are followed. Folders that cannot be looked into are listed themselves, so that whoever
    reads the files says so.

    Returns
    -------
    list of Path
        Absolute paths without "..", in the order in which they were found. A file that has several names is
        listed once, by the one that is no link if that was found.
    """
    found: dict[str, Path] = {}
    for path in paths:
        if not isinstance(path, str | os.PathLike):
            raise InputError(f"paths hold {described(path)}; expected names of files or folders")
        refuse_address(path)
        for file in _files(_absolute(Path(path))):
            real = os.path.realpath(file)
            if real not in found or real == str(file):
                found[real] = file
    return list(found.values())


def _is_folder(path: Path) -> bool:
    """Return whether a path is a folder; below a locked folder nothing is known to be one."""
    try:
        return path.is_dir()
    except OSError:
        return False


def _absolute(path: Path) -> Path:
    """Return an absolute path without ".."; links are resolved only where they stand before one."""
    absolute = path.absolute()
    while ".." in absolute.parts:
        last = len(absolute.parts) - absolute.parts[::-1].index("..")
        absolute = Path(*absolute.parts[:last]).resolve().joinpath(*absolute.parts[last:])
    return absolute


def _files(path: Path) -> Iterator[Path]:
    if not _is_folder(path):
        try:
            path.lstat()
        except (FileNotFoundError, NotADirectoryError) as error:
            raise InputError(
                f"{path}: not found; expected a score, a recording, or a folder of them"
            ) from error
        except OSError:  # locked: whoever reads it says so
            pass
        yield path
        return
    locked: list[Path] = []
    seen: set[str] = set()
    for folder, subfolders, names in os.walk(
        path, onerror=lambda error: locked.append(Path(error.filename)), followlinks=True
    ):
        real = os.path.realpath(folder)
        if real in seen:  # a link to a folder above
            subfolders.clear()
            continue
        seen.add(real)
        subfolders[:] = sorted(name for name in subfolders if not name.startswith("."))
        for name in sorted(names):
            suffix = Path(name).suffix.lower()
            if not name.startswith(".") and suffix in _SCORE_SUFFIXES | _RECORDING_SUFFIXES:
                yield Path(folder) / name
    yield from locked
