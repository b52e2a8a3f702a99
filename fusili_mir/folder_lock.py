"""One writer at a time: a folder that a process holds until it is done or dead."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fusili_mir.errors import OutputError

__all__ = ["LOCK_FILE", "locked_folder"]

LOCK_FILE = ".lock"
"""Its presence says nothing: the system frees the lock when the process that holds it ends, however it does."""


@contextmanager
def locked_folder(folder: str | Path) -> Iterator[Path]:
    """Hold a folder, which is created if need be.

    Parameters
    ----------
    folder : str or Path

    Yields
    ------
    Path
        The folder. If another process holds it, an `OutputError` says so.
    """
    folder = Path(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle = os.open(folder / LOCK_FILE, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise OutputError(f"{folder}: cannot be written ({error.strerror})") from error
    try:
        if not _locks(handle):
            raise OutputError(
                f"{folder}: another process is writing into it; wait until it is done, or choose another folder"
            )
        yield folder
    finally:
        os.close(handle)


if os.name == "nt":
    import msvcrt

    def _locks(handle: int) -> bool:
        try:
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined, unused-ignore]
        except OSError:
            return False
        return True

else:
    import fcntl

    def _locks(handle: int) -> bool:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True
