"""One writer at a time: a folder, or a file, that a process holds until it is done or dead.

Processes that it has forked do not hold it: what they inherit is closed in them.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fusili_mir.boundary import refuse_address
from fusili_mir.errors import OutputError

__all__ = ["LOCK_FILE", "HeldError", "free_lock", "hold_lock", "lock_file", "locked_folder", "say_held"]

LOCK_FILE = ".lock"
"""Its presence says nothing: the system frees the lock when the process that holds it ends, however it does."""


_LOOK_EVERY_SEC = 0.1
_held: set[int] = set()


class HeldError(Exception):
    """Another process, or another part of this one, holds what should be locked."""


def say_held(folder: Path) -> OutputError:
    """Return the error that says that somebody else is writing."""
    return OutputError(
        f"{folder}: another process is writing into it; wait until it is done, or choose another folder"
    )


@contextmanager
def locked_folder(folder: str | Path, patience_sec: float = 0.0) -> Iterator[Path]:
    """Hold a folder, which is created if need be.

    Parameters
    ----------
    folder : str or Path
    patience_sec : float
        How long to wait for another process that holds it.

    Yields
    ------
    Path
        The folder. If another process holds it, an `OutputError` says so.
    """
    folder = Path(folder)
    refuse_address(folder, "give a folder of this machine")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle = _lock_patiently(folder / LOCK_FILE, time.monotonic() + patience_sec)
    except (OSError, ValueError) as error:  # the latter for NUL in a name
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
        raise OutputError(f"{folder}: cannot be written ({reason})") from error
    except HeldError as error:
        raise say_held(folder) from error
    try:
        yield folder
    finally:
        if handle in _held:
            with contextlib.suppress(OSError):  # Windows removes no file that is open: it stays
                (folder / LOCK_FILE).unlink()
        free_lock(handle)


def _lock_patiently(path: Path, end_sec: float) -> int:
    while True:
        try:
            return lock_file(path)
        except HeldError:
            if time.monotonic() >= end_sec:
                raise
        time.sleep(_LOOK_EVERY_SEC)


def free_lock(handle: int | None) -> None:
    """Let go of what `lock_file` or `hold_lock` returned; a forked process leaves what its parent holds alone."""
    if handle is not None and handle in _held:
        _held.remove(handle)
        os.close(handle)


def lock_file(path: Path) -> int:
    """Create a file, if need be, and lock it until `free_lock` gets the returned number, or the process ends.

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
                _held.add(handle)
                return handle
        os.close(handle)  # whoever held it has just removed it


def hold_lock(folder: Path) -> int | None:
    """Lock a folder itself, until `free_lock` gets the returned number, or the process ends.

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
        _held.add(handle)
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


def _let_go() -> None:
    """Close what a forked process has inherited: the lock is its parent's, which may die before it."""
    for handle in _held:
        with contextlib.suppress(OSError):
            os.close(handle)
    _held.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_let_go)
