"""Files that appear under their name only when they are complete and on the disk.

A file is written under a hidden name beside its own. What a killed process has left there is removed by the next
one that writes the same file.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from fusili_mir.boundary import refuse_address
from fusili_mir.errors import OutputError
from fusili_mir.folder_lock import HeldError, hold_lock, lock_file

__all__ = ["is_part", "whole_file", "write_bytes", "write_text", "write_whole"]

_ENDING = ".part"


def write_text(path: Path, text: str) -> None:
    """Write a text; names of files in it need not be valid Unicode."""
    write_bytes(path, text.encode("utf-8", "replace"))


def write_bytes(path: Path, content: bytes) -> None:
    """Write bytes."""
    write_whole(path, lambda file: file.write(content))


def write_whole(path: Path, write: Callable[[IO[bytes]], Any]) -> None:
    """Let a function write a file; an older one of that name is replaced when the new one is complete."""
    with whole_file(path) as file:
        write(file)


@contextmanager
def whole_file(path: Path) -> Iterator[IO[bytes]]:
    """Open a file to write that gets its name when the context ends without an error."""
    refuse_address(path, "give a file of this machine")
    if not path.name:
        raise OutputError(f"{str(path)!r} is not the name of a file")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _remove_parts(path)
        part = path.with_name(f".{path.name}.{os.getpid()}{_ENDING}")
        lock = lock_file(part)
        try:
            with os.fdopen(lock, "wb") as file:
                file.truncate()  # of a process with the same number
                yield file
                file.flush()
                os.fsync(file.fileno())
                if os.name != "nt":  # while it is locked, so that nobody removes it
                    part.replace(path)
            if os.name == "nt":
                part.replace(path)
        finally:
            part.unlink(missing_ok=True)
    except HeldError as error:
        raise OutputError(f"{path}: something else is writing it; try again when it has ended") from error
    except OSError as error:
        if isinstance(error, OutputError):
            raise
        raise OutputError(f"{path}: cannot be written ({error.strerror or error})") from error


def is_part(file: Path) -> bool:
    """Return whether a file is one that is being written, or that a killed process has left.

    >>> is_part(Path("index/.manifest.json.4711.part")), is_part(Path("index/manifest.json"))
    (True, False)
    """
    name, _, number = file.name.removesuffix(_ENDING).rpartition(".")
    return file.name.endswith(_ENDING) and name.startswith(".") and number.isdigit()


def _remove_parts(path: Path) -> None:
    """Remove what killed processes have left of a file."""
    for part in path.parent.iterdir():
        if not (is_part(part) and part.stem.rpartition(".")[0] == f".{path.name}"):
            continue
        with contextlib.suppress(HeldError, OSError):
            lock = hold_lock(part)
            if lock is not None:
                try:
                    part.unlink(missing_ok=True)
                finally:
                    os.close(lock)
