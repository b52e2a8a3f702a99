"""A command in a copy of this process, which gets a signal at a chosen moment (Linux).

Everything was imported before, so that a run costs no more than its work. A moment is a time since the beginning,
a time since the first file was written, or the n-th operation on files: just before a file is opened to be
written, renamed or removed.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import http.client
import os
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from fusili_mir.cli.main import main

__all__ = ["Ended", "Moment", "adopt_orphans", "list_children", "run_command", "wait_for_orphans"]

_WRITING = os.O_WRONLY | os.O_RDWR
_OPERATIONS = frozenset({"os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.link", "os.truncate"})
_SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER
_POLL_SEC = 0.001


@dataclass(frozen=True)
class Moment:
    """When a process gets a signal.

    Attributes
    ----------
    kind : "time", "writing" or "operation"
    at : float
        Seconds since the beginning, seconds since the first file, or the number of the operation.
    signal : int
    """

    kind: Literal["time", "writing", "operation"]
    at: float
    signal: int


@dataclass(frozen=True)
class Ended:
    """How a run ended.

    Attributes
    ----------
    exit_code : int
        Negative: the signal that ended it.
    said : str
        What it wrote to standard error.
    duration_sec, writing_sec : float
        From the beginning, and from the first file, to the end.
    n_operations : int
        Operations on files below the watched folder; known if it was not killed.
    """

    exit_code: int
    said: str
    duration_sec: float
    writing_sec: float
    n_operations: int


def adopt_orphans() -> None:
    """Let processes whose parent was killed become children of this one, so that they can be waited for."""
    ctypes.CDLL(None, use_errno=True).prctl(_SUBREAPER, 1, 0, 0, 0)


def list_children() -> set[int]:
    """Return the children of this process, adopted ones among them."""
    lists = Path("/proc/self/task").glob("*/children")
    return {int(pid) for each in lists for pid in each.read_text().split()}


def wait_for_orphans(own: set[int], limit_sec: float = 5.0) -> int:
    """Wait for all children but one's own; kill those that stay, and return how many they were."""
    end = time.monotonic() + limit_sec
    while time.monotonic() < end:
        left = list_children() - own
        if not left:
            return 0
        for pid in left:
            os.waitpid(pid, os.WNOHANG)
        time.sleep(0.005)
    for pid in left:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    return len(left)


def run_command(
    arguments: list[str],
    watched: Path,
    logs: Path,
    moment: Moment | None = None,
    drive: Callable[[Path, threading.Event], None] | None = None,
    limits: Callable[[], None] | None = None,
    limit_sec: float = 300.0,
) -> Ended:
    """Run a command of `fusili-mir` in a forked process.

    Parameters
    ----------
    arguments : list of str
        Its arguments.
    watched : Path
        Folder whose files count.
    logs : Path
        Folder for what the command says; its temporary files come there, too.
    moment : Moment, optional
        When it gets a signal.
    drive : callable, optional
        Uses a command that serves: called in a thread with the file of the command's output and an event to set
        when time begins to count. When it returns, the command is asked to end.
    limits : callable, optional
        Called in the new process before the command.
    limit_sec : float
        After which it has hung.
    """
    logs.mkdir(parents=True, exist_ok=True)
    for name in ("out", "err"):
        (logs / name).write_bytes(b"")
    before = _files(watched)
    child = os.fork()
    if child == 0:
        _become(arguments, watched, logs, moment, limits)
    begun, done = threading.Event(), threading.Event()
    if drive is None:
        begun.set()
    else:
        threading.Thread(target=_drive, args=(drive, logs / "out", begun, done), daemon=True).start()
    is_sent = moment is None or moment.kind == "operation"
    is_watching = moment is None or moment.kind == "writing"
    started = begin = time.monotonic()
    first: float | None = None
    is_begun = False
    while not (status := os.waitpid(child, os.WNOHANG))[0]:
        now = time.monotonic()
        if not is_begun and begun.is_set():
            begin, is_begun = now, True
        if is_watching and first is None and is_begun and _files(watched) != before:
            first = now
        if not is_sent and moment is not None and is_begun:
            since = begin if moment.kind == "time" else first
            if since is not None and now - since >= moment.at:
                os.kill(child, moment.signal)
                is_sent = True
        if done.is_set():
            os.kill(child, signal.SIGTERM)
            done.clear()
        if now - started > limit_sec:
            os.kill(child, signal.SIGKILL)
        time.sleep(_POLL_SEC)
    end = time.monotonic()
    exit_code = os.waitstatus_to_exitcode(status[1])
    lines = (logs / "err").read_text(encoding="utf-8", errors="replace").splitlines()
    said = "\n".join(line for line in lines if not line.startswith("Fontconfig"))  # of this machine
    counted = logs / "operations"
    # Empty if the process was killed while it counted.
    n_operations = int(counted.read_text() or 0) if counted.exists() else 0
    counted.unlink(missing_ok=True)
    return Ended(exit_code, said, end - begin, end - (first or end), n_operations)


def _drive(
    drive: Callable[[Path, threading.Event], None],
    output: Path,
    begun: threading.Event,
    done: threading.Event,
) -> None:
    with contextlib.suppress(OSError, http.client.HTTPException):  # the server was killed
        drive(output, begun)
    done.set()


def _files(folder: Path) -> tuple[tuple[str, int], ...]:
    """Return all files below a folder, with their sizes, as far as they stay for so long."""
    found = []
    waiting = [str(folder)]
    while waiting:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
                    else:
                        found.append((entry.path, entry.stat().st_mtime_ns))
        except OSError:
            continue
    return tuple(sorted(found))


def _become(
    arguments: list[str],
    watched: Path,
    logs: Path,
    moment: Moment | None,
    limits: Callable[[], None] | None,
) -> None:
    """Run the command as its own process would, and end."""
    code: Any = 70
    try:
        os.setsid()
        signal.signal(signal.SIGINT, signal.default_int_handler)
        for number, name in ((1, "out"), (2, "err")):
            handle = os.open(logs / name, os.O_WRONLY | os.O_APPEND)
            os.dup2(handle, number)
        (logs / "tmp").mkdir(exist_ok=True)
        os.environ["TMPDIR"] = tempfile.tempdir = str(logs / "tmp")
        sys.argv = ["fusili-mir", *arguments]
        counter = _Counter(watched, moment)
        sys.addaudithook(counter.hear)
        if limits is not None:
            limits()
        try:
            main(arguments)
        except SystemExit as ended:
            code = ended.code
        threading._shutdown()  # type: ignore[attr-defined]  # as the interpreter does: wait for threads
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        counter.moment = None
        (logs / "operations").write_text(str(counter.number))
    except BaseException:  # noqa: BLE001  # this process must not go on as its parent
        sys.excepthook(*sys.exc_info())
        sys.stderr.flush()
    os._exit(code if isinstance(code, int) else 0 if code is None else 1)


class _Counter:
    """Counts operations on files below a folder, and sends the signal at one of them."""

    def __init__(self, watched: Path, moment: Moment | None) -> None:
        self.number, self.moment = 0, moment
        self._watched, self._pid = str(watched), os.getpid()

    def hear(self, event: str, details: tuple[Any, ...]) -> None:
        """Hear of an operation before it is done."""
        if event != "open" and event not in _OPERATIONS:
            return
        if os.getpid() != self._pid:
            return
        if event == "open" and not (isinstance(details[2], int) and details[2] & _WRITING):
            return
        named = [str(os.fsdecode(each)) for each in details if isinstance(each, str | bytes | os.PathLike)]
        in_folder = event == "os.remove" and details[-1] != -1  # a bare name, as rmtree gives it
        if not in_folder and not any(name.startswith(self._watched) for name in named):
            return
        self.number += 1
        if self.moment is not None and self.moment.kind == "operation" and self.number == self.moment.at:
            os.kill(self._pid, self.moment.signal)
