"""One writer at a time: a folder, or a file, that a process holds until it is done or dead."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fusili_mir.boundary import refuse_address
from fusili_mir.errors import OutputError

__all__ = ["LOCK_FILE", "HeldError", "hold_lock", "lock_file", "locked_folder", "say_held"]

LOCK_FILE = ".lock"
"""Its presence says nothing: the system frees the lock when the process that holds it ends, however it does."""


class HeldError(Exception):
    """Another process, or another part of this one, holds what should be locked."""


def say_held(folder: Path) -> OutputError:
    """Return the error that says that somebody else is writing."""
    return OutputError(
        f"{folder}: another process is writing into it; wait until it is done, or choose another folder"
    )


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
    refuse_address(folder, "give a folder of this machine")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle = lock_file(folder / LOCK_FILE)
    except (OSError, ValueError) as error:  # the latter for NUL in a name
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
        raise OutputError(f"{folder}: cannot be written ({reason})") from error
    except HeldError as error:
        raise say_held(folder) from error
    try:
        yield folder
    finally:
        with contextlib.suppress(OSError):  # Windows removes no file that is open: it stays
            (folder / LOCK_FILE).unlink()
        os.close(handle)


def lock_file(path: Path) -> int:
    """Create a file, if need be, and lock it until the returned descriptor is closed or the process ends.

    Raises
    ------
    HeldError
        If somebody else holds it.
    """
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o666)
        if _try_lock(handle) is False:
            os.close(handle)
            raise HeldError(path)
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(handle), path.stat()):
                return handle
        os.close(handle)  # whoever held it has just removed it


def hold_lock(folder: Path) -> int | None:
    """Lock a folder itself, until the returned descriptor is closed or the process ends.

    Returns
    -------
    int or None
        None if the folder is gone, or if the system cannot lock folders.

    Raises
    ------
    HeldError
        If somebody else holds it.
    """
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:
        return None
    locked = _try_lock(handle)
    if locked:
        return handle
    os.close(handle)
    if locked is False:
        raise HeldError(folder)
    return None


if os.name == "nt":
    import msvcrt

    def _try_lock(handle: int) -> bool | None:
        try:
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined, unused-ignore]
        except OSError:
            return False
        return True

else:
    import fcntl

    def _try_lock(handle: int) -> bool | None:
        """Return whether a file could be locked; None if its disk knows no locks."""
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:
            return None
        return True
