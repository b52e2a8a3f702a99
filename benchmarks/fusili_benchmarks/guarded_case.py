"""Running a reader on a file in a process of its own, with limits, and saying how it ended (Linux, macOS)."""

from __future__ import annotations

import contextlib
import faulthandler
import io
import os
import pickle
import resource
import signal
import sys
import time
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from fusili_mir.errors import FusiliError

__all__ = ["Outcome", "run_guarded"]

Ending = Literal["read", "refused", "traceback", "crash", "memory", "hang"]


@dataclass(frozen=True)
class Outcome:
    """How a case ended.

    Attributes
    ----------
    ending : str
        "read" and "refused" (one line) are good; "traceback", "crash", "memory" and "hang" are not.
    text : str
        The line, or where the trouble came from.
    cpu_sec, resident_mb : float
    """

    ending: Ending
    text: str
    cpu_sec: float
    resident_mb: float

    @property
    def is_good(self) -> bool:
        """Whether a user would be content."""
        return self.ending in ("read", "refused")


def run_guarded(
    reader: Callable[[Path], object],
    file: Path,
    cpu_limit_sec: float = 10.0,
    memory_limit_mb: float = 2000.0,
    wall_limit_sec: float = 120.0,
) -> Outcome:
    """Run a reader on a file in a forked process.

    Parameters
    ----------
    reader : callable
    file : Path
    cpu_limit_sec, memory_limit_mb : float
        What ends the process, its children apart, and is a failure.
    wall_limit_sec : float
        What ends it, whatever it waits for.
    """
    receiving, sending = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(receiving)
        os.setsid()
        _run(reader, file, sending, cpu_limit_sec, memory_limit_mb)
    os.close(sending)
    killed = _wait_for(pid, wall_limit_sec)
    with os.fdopen(receiving, "rb") as stream:
        said = stream.read()
    _, status, used = killed
    cpu_sec = used.ru_utime + used.ru_stime
    resident_mb = used.ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)  # what the reader has started
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        ending: Ending = "hang" if number in (signal.SIGXCPU, signal.SIGKILL) else "crash"
        return Outcome(ending, signal.Signals(number).name, cpu_sec, resident_mb)
    ending, text = pickle.loads(said) if said else ("crash", f"exit code {os.WEXITSTATUS(status)}")  # our own
    if ending in ("read", "refused") and resident_mb > memory_limit_mb:
        return Outcome("memory", f"{resident_mb:.0f} MB; {text}", cpu_sec, resident_mb)
    return Outcome(ending, text, cpu_sec, resident_mb)


def _wait_for(pid: int, wall_limit_sec: float) -> tuple[int, int, resource.struct_rusage]:
    end = time.monotonic() + wall_limit_sec
    pause = 0.001
    while True:
        done = os.wait4(pid, os.WNOHANG)
        if done[0]:
            return done
        if time.monotonic() > end:
            os.kill(pid, signal.SIGKILL)
            return os.wait4(pid, 0)
        time.sleep(pause)
        pause = min(0.05, 2 * pause)


def _run(
    reader: Callable[[Path], object], file: Path, sending: int, cpu_limit_sec: float, memory_limit_mb: float
) -> None:
    """Read, tell how it ended, and end: this is the forked process."""
    used_sec = sum(os.times()[:2])
    limit_sec = int(used_sec + cpu_limit_sec) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (limit_sec, limit_sec + 5))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform != "darwin":
        held = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        most = held + int(4 * memory_limit_mb * 2**20)  # addresses, not memory: libraries reserve many
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
    faulthandler.disable()
    nothing = os.open(os.devnull, os.O_WRONLY)
    for stream_number in (1, 2):
        os.dup2(nothing, stream_number)  # libraries in C write there directly
    ending: Ending
    try:
        with (
            warnings.catch_warnings(),
            contextlib.redirect_stdout(io.StringIO()),
            contextlib.redirect_stderr(io.StringIO()),
        ):
            warnings.simplefilter("ignore")
            reader(file)
        ending, text = "read", ""
    except FusiliError as error:
        text = str(error)
        ending = "traceback" if "\n" in text.strip() else "refused"
    except MemoryError:
        ending, text = "memory", _last_line()
    except BaseException as error:  # noqa: BLE001  # whatever it is, it is a failure
        ending, text = "traceback", f"{type(error).__name__} at {_last_line()}: {str(error)[:200]}"
    with os.fdopen(sending, "wb") as stream:
        stream.write(pickle.dumps((ending, text)))
    os._exit(0)


def _last_line() -> str:
    """Return where in our own code the current exception was raised."""
    frames = traceback.extract_tb(sys.exc_info()[2])
    ours = [frame for frame in frames if "fusili_" in frame.filename and "benchmarks" not in frame.filename]
    return f"{Path(ours[-1].filename).name}:{ours[-1].lineno}" if ours else "elsewhere"
