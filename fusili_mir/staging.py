"""Writing results so that they appear whole or not at all, whatever happens to the process that writes them.

A result is written into a stage: a hidden folder on the same disk. A new folder then gets its name by one rename.
Into a folder that exists, files are moved one by one; before the first, the stage records what will happen.
What a killed process has left is found by the next one that writes to the same place: a stage without a record is
removed, and a move that was under way is undone if it only added files, and otherwise finished.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import shutil
import signal
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fusili_mir.errors import OutputError
from fusili_mir.folder_lock import hold_lock

__all__ = ["check_output_folder", "interrupts_held", "staged_folder"]

_INSIDE = ".fusili-stage-"  # begins the name of a stage inside its folder
_RECORD = ".moving.json"
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def check_output_folder(out: str | Path, force: bool = False) -> None:
    """Raise the error that `staged_folder` would raise; call this before long work.

    What killed processes have left at this place is cleaned first.
    """
    out = Path(out)
    try:
        _clean(out)
        if out.exists() and not out.is_dir():
            raise OutputError(f"{out}: is a file, expected a folder or a new name")
        if not force and out.is_dir() and any(not _is_stage(file, out) for file in out.iterdir()):
            raise OutputError(
                f"{out}: the folder is not empty; choose another one, or add --force to replace files"
            )
        nearest = next(folder for folder in (out, *out.absolute().parents) if folder.exists())
        if not nearest.is_dir() or not os.access(nearest, os.W_OK | os.X_OK):
            reason = errno.EACCES if nearest.is_dir() else errno.ENOTDIR
            raise OutputError(f"{out}: cannot be written ({os.strerror(reason)})")
    except (OSError, ValueError) as error:  # the latter for NUL in a name
        if isinstance(error, OutputError):
            raise
        raise OutputError(f"{out}: cannot be written ({_reason(error)})") from error


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
        place, prefix = (out, _INSIDE) if out.is_dir() else (out.parent, _beside(out))
        stage = Path(tempfile.mkdtemp(prefix=prefix, dir=place))
    except (OSError, ValueError) as error:
        raise OutputError(f"{out}: cannot be written ({_reason(error)})") from error
    lock = hold_lock(stage)  # says that the stage is in use
    try:
        yield stage
        with interrupts_held():
            _put_in_place(stage, out, force)
    except OSError as error:
        if isinstance(error, OutputError):
            raise
        raise OutputError(f"{out}: cannot be written ({_reason(error)})") from error
    finally:
        shutil.rmtree(stage, ignore_errors=True)
        if lock is not None:
            os.close(lock)


@contextmanager
def interrupts_held() -> Iterator[None]:
    """Delay Ctrl-C, and a request to end, for the moment in which files get their final names."""
    if threading.current_thread() is not threading.main_thread():  # only the main thread receives signals
        yield
        return
    received: list[int] = []
    handlers = {number: signal.signal(number, lambda it, _: received.append(it)) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
    if received:
        signal.raise_signal(received[0])


def _put_in_place(stage: Path, out: Path, force: bool) -> None:
    if stage.parent != out:
        stage.chmod(0o777 & ~_umask())
        with contextlib.suppress(OSError):  # it is in use, and not empty: files are moved instead
            stage.rename(out)
            return
        check_output_folder(out, force)  # somebody else has created it meanwhile
        out.mkdir(exist_ok=True)
    files = [file.relative_to(stage) for file in sorted(stage.rglob("*")) if not file.is_dir()]
    for file in files:
        if (out / file).is_dir():
            raise OutputError(f"{out / file}: is a folder, expected a file or nothing")
    _record(stage, out, files)
    _move(stage, out, files)


def _record(stage: Path, out: Path, files: list[Path]) -> None:
    """Write down which files are about to be moved, and whether any of them replaces another."""
    content = {
        "files": [file.as_posix() for file in files],
        "replaces": any((out / file).exists() for file in files),
    }
    draft = stage / f"{_RECORD}-draft"
    draft.write_text(json.dumps(content), encoding="utf-8")
    draft.replace(stage / _RECORD)


def _move(stage: Path, out: Path, files: list[Path]) -> None:
    for file in files:
        (out / file).parent.mkdir(parents=True, exist_ok=True)
        (stage / file).replace(out / file)


def _clean(out: Path) -> None:
    """Undo, finish or remove what processes have left that were killed."""
    places = [(out, out), (out.parent, out)] if out.is_dir() else [(out.parent, out)]
    for place, target in places:
        if not place.is_dir():
            continue
        for stage in [each for each in place.iterdir() if _is_stage(each, out)]:
            lock = hold_lock(stage)
            if lock is None:  # in use
                continue
            try:
                _settle(stage, target)
                shutil.rmtree(stage, ignore_errors=True)
            finally:
                os.close(lock)


def _settle(stage: Path, out: Path) -> None:
    """Finish a move that was under way, or undo it if it only added files."""
    try:
        content = json.loads((stage / _RECORD).read_text(encoding="utf-8"))
        files = [Path(name) for name in content["files"]]
        if any(file.is_absolute() or ".." in file.parts for file in files):  # not what we wrote
            return
    except (OSError, ValueError, KeyError, TypeError):
        return
    if content["replaces"]:
        _move(stage, out, [file for file in files if (stage / file).is_file()])
        return
    for file in files:
        if not (stage / file).exists():
            (out / file).unlink(missing_ok=True)
    for folder in sorted({(out / file).parent for file in files} - {out}, reverse=True):
        with contextlib.suppress(OSError):  # somebody else's files are in it
            folder.rmdir()


def _is_stage(file: Path, out: Path) -> bool:
    inside = file.parent == out and file.name.startswith(_INSIDE)
    beside = file.parent == out.parent and file.name.startswith(_beside(out))
    return (inside or beside) and file.is_dir() and not file.is_symlink()


def _beside(out: Path) -> str:
    return f".{out.name[:100]}-stage-"


def _reason(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def _umask() -> int:
    mask = os.umask(0o022)
    os.umask(mask)
    return mask
