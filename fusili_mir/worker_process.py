"""A process of our own that answers requests, line by line: what crashes or hangs in it harms nobody else.

The process is ``python -m MODULE``. It reads requests from standard input and writes answers to standard output,
one line of JSON each, and ends with its input. Bytes may follow an answer that says how many: ``"n_bytes"``. It
is started when it is first asked, and again after a crash, a time limit or a fork.

What it writes to standard error is kept from the user, but may tell how it ended, and where: see `say_place`.
"""

from __future__ import annotations

import contextlib
import functools
import json
import multiprocessing.connection
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TypeVar, cast

from fusili_mir.worker_ending import WorkerEnding

__all__ = [
    "WorkerProcess",
    "begin_worker",
    "end_with_parent",
    "ending_with_caller",
    "say_place",
    "withheld_from_workers",
]

_LOOK_EVERY_SEC = 0.5
_PLACE = "place: "
_LAST_WORDS = 10_000  # bytes of standard error that are looked at
_OWN_GROUP = getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0)
_END_WITH_CALLER = """
import ctypes, os, signal, sys
ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
if os.getppid() == int(sys.argv[1]):
    os.execvp(sys.argv[2], sys.argv[2:])
"""


def begin_worker(parent: int) -> None:
    """Begin a process that the one with the number `parent` has started, and which leaves Ctrl-C to that one.

    If that process is dead already, this one ends at once.
    """
    if os.name == "posix" and os.getppid() != parent:
        os._exit(1)
    end_with_parent(parent)
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def end_with_parent(parent: int) -> None:
    """End this process when the one with the number `parent` ends, even if that is killed.

    Nothing happens if that process has not started this one: it may be a worker of somebody else's.
    """
    if os.getppid() == parent:
        _watch(parent, os.getpid())


@functools.cache
def _watch(parent: int, _own: int) -> None:
    """Watch a parent once in each process: a forked one inherits what is cached, but no thread."""

    def watch() -> None:
        if sys.platform == "win32":  # an orphan keeps the number of its parent
            family = multiprocessing.parent_process()
            if family is None:
                return
            multiprocessing.connection.wait([family.sentinel])
        else:
            while os.getppid() == parent:
                time.sleep(_LOOK_EVERY_SEC)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


@contextmanager
def withheld_from_workers(*signals: int) -> Iterator[None]:
    """Keep signals from the processes that are started within the context, as long as they live.

    Ctrl-C reaches all processes of a terminal. Workers must neither die of it before their work is done, nor say
    so; the process that started them ends them.
    """
    if sys.platform == "win32":
        yield
        return
    earlier = signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, earlier)


def ending_with_caller(command: Sequence[str]) -> list[str]:
    """Return a command of another program that ends with the thread that waits for it, even if that is killed.

    Only Linux can do that; elsewhere the program ends when its work is done.
    """
    if not sys.platform.startswith("linux"):
        return list(command)
    return [sys.executable, "-ISc", _END_WITH_CALLER, str(os.getpid()), *command]


def say_place(place: str = "") -> None:
    """Say in a worker where it is, such as "page 3", in case that it dies there; "" when a request begins."""
    with contextlib.suppress(OSError):  # somebody else has started it, and its standard error is no file
        if not place:
            os.ftruncate(2, 0)
            os.lseek(2, 0, os.SEEK_SET)
        os.write(2, f"{_PLACE}{place}\n".encode())


_Answer = TypeVar("_Answer")


class WorkerProcess:
    """A process that answers requests.

    Parameters
    ----------
    module : str
        Module to run.
    environment : mapping of str to str, optional
        Variables that it gets in addition to those of this process.
    most_bytes : callable, optional
        Returns the memory that the process allows itself, for `ending`.

    Attributes
    ----------
    lock : threading.Lock
        To hold while asking, if several threads do.
    exit_code : int or None
        How the process that was asked last ended; negative: the signal that ended it.
    ending : WorkerEnding
        The same, in words.
    place : str
        Where it was; see `say_place`.
    """

    def __init__(
        self,
        module: str,
        environment: Mapping[str, str] | None = None,
        most_bytes: Callable[[], float] | None = None,
    ) -> None:
        self.lock = threading.Lock()
        self.exit_code: int | None = None
        self.ending, self.place = WorkerEnding(None), ""
        self._module, self._environment = module, dict(environment or {})
        self._most_bytes = most_bytes
        self._process: subprocess.Popen[bytes] | None = None
        self._said: IO[bytes] | None = None
        self._last_words = ""
        self._peak_bytes = 0
        self._owner = -1

    def ask(self, request: str, time_limit_sec: float | None = None) -> str | None:
        """Return the answer, or None if the process died or was stopped at the time limit."""
        return self._exchange(request, time_limit_sec, _read_line)

    def ask_for_bytes(self, request: str, time_limit_sec: float | None = None) -> tuple[str, bytes] | None:
        """Return the answer and the bytes that follow it, or None as `ask` does."""
        return self._exchange(request, time_limit_sec, _read_bytes)

    def _exchange(
        self, request: str, time_limit_sec: float | None, read: Callable[[IO[bytes]], _Answer | None]
    ) -> _Answer | None:
        process = self._running()
        questions, answers = cast(IO[bytes], process.stdin), cast(IO[bytes], process.stdout)
        expired = threading.Event()

        def expire() -> None:
            expired.set()
            process.kill()

        alarm = threading.Timer(time_limit_sec or threading.TIMEOUT_MAX, expire)
        alarm.daemon = True
        if time_limit_sec is not None:
            alarm.start()
        try:
            questions.write(request.encode() + b"\n")
            questions.flush()
            answer = read(answers)
        except BrokenPipeError:
            answer = None
        except BaseException:  # interrupted: the answer still to come must not meet the next request
            self.stop()
            raise
        finally:
            alarm.cancel()
        if answer is None:
            self._wait(process, patience_sec=1.0)  # it is ending: let its own exit code be known
            self.stop()
            self._explain(time_limit_sec if expired.is_set() else None)
        return answer

    def _wait(self, process: subprocess.Popen[bytes], patience_sec: float) -> None:
        """Wait for the end of a process, and learn how much memory it took."""
        self._peak_bytes, end_sec = 0, time.monotonic() + patience_sec
        if sys.platform == "win32":
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(patience_sec)
            return
        import resource

        while process.returncode is None and time.monotonic() < end_sec:
            try:
                pid, status, used = os.wait4(process.pid, os.WNOHANG)
            except ChildProcessError:  # somebody else waits for all children
                return
            if pid:
                process.returncode = os.waitstatus_to_exitcode(status)
                # A process begins with the peak of the one that has started it.
                own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
                if used.ru_maxrss > own:
                    self._peak_bytes = used.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
            else:
                time.sleep(0.005)

    def _explain(self, expired_sec: float | None) -> None:
        """Keep how the last process ended, and where it was."""
        said = self._last_words
        most_bytes = None if self._most_bytes is None else self._most_bytes()
        self.ending = WorkerEnding(self.exit_code, said, self._peak_bytes, most_bytes, expired_sec)
        places = [line.removeprefix(_PLACE) for line in said.splitlines() if line.startswith(_PLACE)]
        self.place = places[-1] if places else ""

    def kill(self) -> None:
        """End the process from another thread: the one that asks gets None."""
        process = self._process
        if process is not None and self._owner == os.getpid():
            process.kill()

    def stop(self) -> None:
        """Stop the process, if this process started it."""
        process, self._process = self._process, None
        said, self._said = self._said, None
        if process is None or said is None:
            return
        with said:
            if self._owner != os.getpid():
                return
            process.kill()
            process.communicate()
            self.exit_code = process.returncode
            said.seek(max(0, said.seek(0, os.SEEK_END) - _LAST_WORDS))
            self._last_words = said.read().decode(errors="replace")

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._owner != os.getpid() or self._process.poll() is not None:
            self.stop()
            package_root = str(Path(__file__).resolve().parents[1])
            path = os.pathsep.join(filter(None, [package_root, os.environ.get("PYTHONPATH")]))
            self._said = tempfile.TemporaryFile()  # noqa: SIM115  # as long as the process
            self._process = subprocess.Popen(  # noqa: S603
                [sys.executable, "-P", "-m", self._module],  # nothing is imported from the current folder
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._said,
                env={**os.environ, **self._environment, "PYTHONPATH": path},
                start_new_session=True,  # Ctrl-C reaches only the caller, which then stops it
                creationflags=_OWN_GROUP,  # the same on Windows
            )
            self._owner = os.getpid()
        return self._process


def _read_line(answers: IO[bytes]) -> str | None:
    """Read an answer; None if the process ended before it was complete."""
    line = answers.readline()
    return line.decode() if line.endswith(b"\n") else None


def _read_bytes(answers: IO[bytes]) -> tuple[str, bytes] | None:
    """Read an answer and the bytes that it announces."""
    line = _read_line(answers)
    if line is None:
        return None
    n_bytes = int(json.loads(line).get("n_bytes", 0))
    content = answers.read(n_bytes)
    return (line, content) if len(content) == n_bytes else None
