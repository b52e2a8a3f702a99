"""Writing results so that they appear whole or not at all, whatever happens to the process that writes them.

A result is written into a stage: a hidden folder on the same disk. A new folder then gets its name by one rename.
Into a folder that exists, files are moved one by one; before the first, the stage records what will happen.
What a killed process has left is found by the next one that writes to the same place: a stage without a record is
removed, and a move that was under way is undone if it only added files, and otherwise finished.
A stage is locked while it is in use: a second process that wants to write to the same place is refused.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import random
import shutil
import signal
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from fusili_mir.boundary import printable, refuse_address
from fusili_mir.errors import InputError, OutputError, option
from fusili_mir.folder_lock import HeldError, free_lock, hold_lock, say_held

__all__ = ["check_output_folder", "interrupts_held", "settle_folder", "staged_folder"]

_INSIDE = ".fusili-stage-"  # begins the name of a stage inside its folder
_RECORD = ".moving.json"
_RANDOM_LETTERS = 8  # of mkdtemp, at the end of the name of a stage
_MOST_STEPS_BACK = 5
_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_READING_ERRORS = {errno.ENOENT, errno.EACCES, errno.EISDIR, errno.ENOTDIR, errno.ENAMETOOLONG, errno.ELOOP}


def check_output_folder(out: str | Path, force: bool = False, alone: bool = True) -> None:
    """Raise the error that `staged_folder` would raise; call this before long work.

    What killed processes have left at this place is cleaned first.
    """
    out = Path(out)
    refuse_address(out, "give a folder of this machine")
    try:
        if _clean(out) and alone:
            raise say_held(out)
        if out.is_symlink() and not out.exists():
            raise OutputError(f"{printable(out)}: is a link to nothing, expected a folder or a new name")
        if out.exists() and not out.is_dir():
            raise OutputError(f"{out}: is a file, expected a folder or a new name")
        if not force and out.is_dir() and any(not _is_stage(file, out) for file in out.iterdir()):
            raise OutputError(
                f"{out}: the folder is not empty; choose another one, or add "
                f"{option('--force', 'force=True')} to replace files"
            )
        nearest = next(folder for folder in (out, *out.absolute().parents) if folder.exists())
        if not nearest.is_dir() or not os.access(nearest, os.W_OK | os.X_OK):
            raise OutputError(f"{printable(out)}: cannot be written ({os.strerror(_why_not(nearest))})")
    except (OSError, ValueError) as error:  # the latter for NUL in a name
        if isinstance(error, OutputError):
            raise
        raise OutputError(f"{printable(out)}: cannot be written ({_reason(error)})") from error


def settle_folder(out: str | Path) -> None:
    """Finish or undo what a killed process had begun to write into a folder, so that it can be read."""
    with contextlib.suppress(OSError, ValueError):  # it cannot be written, or is not there
        _clean(Path(out))


@contextmanager
def staged_folder(
    out: str | Path, force: bool = False, alone: bool = True, renewed: Sequence[str] = ()
) -> Iterator[Path]:
    """Provide a temporary folder to write into, and move its files to `out` at the end.

    Parameters
    ----------
    out : str or Path
        Final folder of the files; created if it does not exist.
    force : bool
        Whether files may be added to, and replaced in, a folder that is not empty.
    alone : bool
        Whether to refuse if another process is writing to the same place. Otherwise, the first to finish wins.
    renewed : sequence of str
        Folders inside `out` from which files go that are not written anew.

    Yields
    ------
    Path
        An empty folder inside `out`, or beside it if `out` does not exist yet, hence on the same disk. After an
        error it is removed and `out` is unchanged.
    """
    out = Path(out)
    stage, lock = _open_stage(out, force, alone)
    try:
        with _inputs_blamed(stage):
            yield stage
        with interrupts_held():
            _put_in_place(stage, out, force, renewed)
    except OSError as error:
        if not isinstance(error, OutputError):
            raise OutputError(f"{printable(out)}: cannot be written ({_reason(error)})") from error
        if str(stage) not in str(error):
            raise
        raise OutputError(str(error).replace(str(stage), str(out))) from error
    finally:
        shutil.rmtree(stage, ignore_errors=True)
        free_lock(lock)


@contextmanager
def _inputs_blamed(stage: Path) -> Iterator[None]:
    """Turn errors of reading a file outside the stage, into which all results go, into those of an input."""
    try:
        yield
    except OSError as error:
        name = error.filename
        is_file = isinstance(name, str | bytes | os.PathLike) and error.errno in _READING_ERRORS
        if isinstance(error, OutputError) or not is_file or str(stage) in os.fsdecode(name):
            raise
        found = f"{printable(os.fsdecode(name))}: cannot be read ({_reason(error)})"
        raise InputError(f"{found}; expected a file that is there, and that may be read") from error


def _open_stage(out: Path, force: bool, alone: bool) -> tuple[Path, int | None]:
    """Create a stage and lock it; if two processes do so at the same moment, one of them is refused."""
    for step in range(_MOST_STEPS_BACK):
        check_output_folder(out, force, alone)
        try:
            out.parent.mkdir(parents=True, exist_ok=True)
            place, prefix = (out, _INSIDE) if out.is_dir() else (out.parent, _beside(out))
            stage = (
                place / Path(tempfile.mkdtemp(prefix=prefix, dir=place)).name
            )  # since Python 3.12 absolute
        except (OSError, ValueError) as error:
            raise OutputError(f"{printable(out)}: cannot be written ({_reason(error)})") from error
        try:
            lock = hold_lock(stage)
            is_there = stage.exists()  # otherwise it was taken for one that was left
            if is_there and not (alone and _clean(out, own=stage)):
                return stage, lock
        except HeldError:
            continue
        shutil.rmtree(stage, ignore_errors=True)
        free_lock(lock)
        time.sleep(random.uniform(0.0, 0.05 * (step + 1)))  # noqa: S311
    raise say_held(out)


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


def _put_in_place(stage: Path, out: Path, force: bool, renewed: Sequence[str]) -> None:
    if stage.parent != out:
        stage.chmod(0o777 & ~_umask())
        with contextlib.suppress(OSError):  # it is in use, and not empty: files are moved instead
            stage.rename(out)
            return
        check_output_folder(out, force, alone=False)  # somebody else has created it meanwhile
        out.mkdir(exist_ok=True)
    files = [file.relative_to(stage) for file in sorted(stage.rglob("*")) if not file.is_dir()]
    for file in files:
        if (out / file).is_dir():
            raise OutputError(f"{out / file}: is a folder, expected a file or nothing")
        if (out / file).exists() and not os.access((out / file).parent, os.W_OK | os.X_OK):
            raise OutputError(f"{out / file}: cannot be replaced ({os.strerror(errno.EACCES)})")
    here = [file.relative_to(out) for name in renewed for file in (out / name).rglob("*") if file.is_file()]
    outdated = [file for file in here if file not in files]
    _record(stage, out, files, outdated)
    _move(stage, out, files)
    _remove(out, outdated)


def _record(stage: Path, out: Path, files: list[Path], outdated: list[Path]) -> None:
    """Write down which files are about to be moved, and whether others go for them."""
    content = {
        "files": [file.as_posix() for file in files],
        "outdated": [file.as_posix() for file in outdated],
        "replaces": bool(outdated) or any((out / file).exists() for file in files),
    }
    draft = stage / f"{_RECORD}-draft"
    draft.write_text(json.dumps(content), encoding="utf-8")
    draft.replace(stage / _RECORD)


def _move(stage: Path, out: Path, files: list[Path]) -> None:
    """Move files: first the new ones, for which a full disk may have no room, then those that replace others."""
    added: list[Path] = []
    try:
        for file in files:
            if not (out / file).exists():
                (out / file).parent.mkdir(parents=True, exist_ok=True)
                (stage / file).replace(out / file)
                added.append(file)
    except OSError:
        for file in added:
            (out / file).replace(stage / file)
        _remove_folders(out, files)
        raise
    for file in files:
        if file not in added:
            (stage / file).replace(out / file)


def _remove(out: Path, files: list[Path]) -> None:
    for file in files:
        (out / file).unlink(missing_ok=True)
    _remove_folders(out, files)


def _remove_folders(out: Path, files: list[Path]) -> None:
    """Remove the folders of files, as far as nothing else is in them."""
    for folder in sorted({(out / file).parent for file in files} - {out}, reverse=True):
        with contextlib.suppress(OSError):  # other files are in it
            folder.rmdir()


def _clean(out: Path, own: Path | None = None) -> bool:
    """Undo, finish or remove what killed processes have left; return whether another one is at work."""
    is_held = False
    for place in (out, out.parent) if out.is_dir() else (out.parent,):
        if not place.is_dir():
            continue
        for stage in [each for each in place.iterdir() if _is_stage(each, out) and each != own]:
            try:
                lock = hold_lock(stage)
            except HeldError:
                is_held = True
                continue
            if lock is None:
                continue
            try:
                _settle(stage, out)
                shutil.rmtree(stage, ignore_errors=True)
            finally:
                free_lock(lock)
    return is_held


def _settle(stage: Path, out: Path) -> None:
    """Finish a move that was under way, or undo it if it only added files."""
    try:
        content = json.loads((stage / _RECORD).read_text(encoding="utf-8"))
        files = [Path(name) for name in content["files"]]
        outdated = [Path(name) for name in content.get("outdated", ())]
        if any(file.is_absolute() or ".." in file.parts for file in (*files, *outdated)):  # not what we wrote
            return
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return
    if content["replaces"]:
        _move(stage, out, [file for file in files if (stage / file).is_file()])
        _remove(out, outdated)
    else:
        _remove(out, [file for file in files if not (stage / file).exists()])
        _remove_folders(out, files)


def _is_stage(file: Path, out: Path) -> bool:
    prefix = file.name[:-_RANDOM_LETTERS]
    is_named = (file.parent == out and prefix == _INSIDE) or (
        file.parent == out.parent and prefix == _beside(out)
    )
    return is_named and file.is_dir() and not file.is_symlink()


def _beside(out: Path) -> str:
    return f".{out.name[:100]}-stage-"


def _why_not(place: Path) -> int:
    """Return why a place cannot be written, as a number of the system."""
    if not place.is_dir():
        return errno.ENOTDIR
    if hasattr(os, "statvfs") and os.statvfs(place).f_flag & os.ST_RDONLY:
        return errno.EROFS
    return errno.EACCES


def _reason(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def _umask() -> int:
    mask = os.umask(0o022)
    os.umask(mask)
    return mask
