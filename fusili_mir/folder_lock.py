"""One writer at a time: a folder that a process holds until it is done or dead."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fusili_mir.errors import OutputError

__all__ = ["LOCK_FILE", "hold_lock", "locked_folder"]

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
        if _try_lock(handle) is False:
            raise OutputError(
                f"{folder}: another process is writing into it; wait until it is done, or choose another folder"
            )
        yield folder
    finally:
        os.close(handle)


def hold_lock(folder: Path) -> int | None:
    """Lock a folder itself, until the returned descriptor is closed or the process ends.

    Returns
    -------
    int or None
        None if another process holds it, or if the system cannot lock folders.
    """
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:
        return None
    if _try_lock(handle):
        return handle
    os.close(handle)
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
