"""Writing results so that no half-written file ever has its final name."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fusili_mir.errors import OutputError

__all__ = ["check_output_folder", "interrupts_held", "staged_folder"]


def check_output_folder(out: str | Path, force: bool = False) -> None:
    """Raise the error that `staged_folder` would raise; call this before long work."""
    out = Path(out)
    try:
        if out.exists() and not out.is_dir():
            raise OutputError(f"{out}: is a file, expected a folder or a new name")
        if not force and out.is_dir() and any(out.iterdir()):
            raise OutputError(
                f"{out}: the folder is not empty; choose another one, or add --force to replace files"
            )
        nearest = next(folder for folder in (out, *out.absolute().parents) if folder.exists())
        if not nearest.is_dir() or not os.access(nearest, os.W_OK | os.X_OK):
            reason = errno.EACCES if nearest.is_dir() else errno.ENOTDIR
            raise OutputError(f"{out}: cannot be written ({os.strerror(reason)})")
    except OSError as error:
        if isinstance(error, OutputError):
            raise
        raise OutputError(f"{out}: cannot be written ({error.strerror})") from error


@contextmanager
def staged_folder(out: str | Path, force: bool = False) -> Iterator[Path]:
    """Provide a temporary folder to write into, and move its files to `out` at the end.

    Parameters
    ----------
    out : str or Path
        Final folder of the files; created if it does not exist.
    force : bool
        Whether files may be added to, and replaced in, a folder that is not empty.

    Yields
    ------
    Path
        An empty folder inside `out`, or beside it if `out` does not exist yet, hence on the same disk. After an
        error it is removed and `out` is unchanged.
    """
    check_output_folder(out, force)
    out = Path(out)
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        stage = Path(tempfile.mkdtemp(prefix=f".{out.name}-", dir=out if out.is_dir() else out.parent))
    except OSError as error:
        raise OutputError(f"{out}: cannot be written ({error.strerror})") from error
    try:
        yield stage
        with interrupts_held():
            _move_files(stage, out)
    except OSError as error:
        if isinstance(error, OutputError):
            raise
        raise OutputError(f"{out}: cannot be written ({error.strerror or error})") from error
    finally:
        shutil.rmtree(stage, ignore_errors=True)


@contextmanager
def interrupts_held() -> Iterator[None]:
    """Delay Ctrl-C for the moment in which files get their final names."""
    if threading.current_thread() is not threading.main_thread():  # only the main thread receives Ctrl-C
        yield
        return
    pressed: list[int] = []
    handler = signal.signal(signal.SIGINT, lambda number, _: pressed.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
    if pressed:
        signal.raise_signal(signal.SIGINT)


def _move_files(stage: Path, out: Path) -> None:
    files = sorted(stage.iterdir())
    for file in files:
        if (out / file.name).is_dir():
            raise OutputError(f"{out / file.name}: is a folder, expected a file or nothing")
    out.mkdir(exist_ok=True)
    for file in files:
        file.replace(out / file.name)
