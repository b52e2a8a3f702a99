"""Commands that run in processes of their own, are sent signals, and leave nobody behind (Linux)."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

__all__ = ["FusiliCommand", "descendants", "messages", "still_there"]

_CODE = (  # a shell that runs the tests in the background disables Ctrl-C
    "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
    "from fusili_mir.cli.main import main; main()"
)
_OWN_TERMINAL = "import fcntl, termios; fcntl.ioctl(2, termios.TIOCSCTTY, 0)"
_PATIENCE_SEC = 120.0


class FusiliCommand:
    """A command of `fusili-mir`, in a process group of its own, as a shell starts it.

    Parameters
    ----------
    arguments : objects
    in_terminal : bool
        Whether standard error is a terminal, whose Ctrl-C reaches the command.
    prelude : str
        Code that runs before.
    """

    def __init__(self, *arguments: object, in_terminal: bool = False, prelude: str = "pass") -> None:
        self._is_terminal = in_terminal
        self._heard, error = os.openpty() if in_terminal else os.pipe()
        code = f"{_OWN_TERMINAL if in_terminal else 'pass'}\n{prelude}\n{_CODE}"
        self.process = subprocess.Popen(
            [sys.executable, "-c", code, *map(str, arguments)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=error,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            start_new_session=True,
            encoding="utf-8",
        )
        os.close(error)

    def wait_until(self, condition: Callable[[], object]) -> None:
        """Wait until something is true, while the command runs."""
        end = time.monotonic() + _PATIENCE_SEC
        while not condition():
            assert self.process.poll() is None, self.end()[1]
            assert time.monotonic() < end
            time.sleep(0.005)

    def wait_for_children(self, number: int) -> list[int]:
        """Wait until so many processes have been started below it, and return them."""
        found: set[int] = set()

        def are_there() -> bool:
            found.update(descendants(self.process.pid))
            return len(found) >= number

        self.wait_until(are_there)
        return sorted(found)

    def press_ctrl_c(self) -> None:
        """Press Ctrl-C in its terminal, or send the signal to all processes of its group."""
        if self._is_terminal:
            os.write(self._heard, b"\x03")
        else:
            os.killpg(self.process.pid, signal.SIGINT)

    def end(self) -> tuple[str, str]:
        """Wait for its end, and return what it wrote to standard output and standard error."""
        said = bytearray()
        while True:
            try:
                part = os.read(self._heard, 65536)
            except OSError:  # of a terminal whose last process has ended
                break
            if not part:
                break
            said += part
        os.close(self._heard)
        output, _ = self.process.communicate(timeout=_PATIENCE_SEC)
        return output, said.decode()


def messages(said: str) -> list[str]:
    """Return lines without those that say how far a run is, which has some if the machine is busy otherwise."""
    return [line for line in said.splitlines() if " so far" not in line and ": done in " not in line]


def descendants(pid: int) -> list[int]:
    """Return the processes that a process started, and those that they started."""
    found = []
    for tasks in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in map(int, tasks.read_text().split()):
            found += [child, *descendants(child)]
    return found


def still_there(pids: list[int], within_sec: float = 10.0) -> list[int]:
    """Wait until processes have ended, some of which may have just begun, and return those that have not."""
    end = time.monotonic() + within_sec
    while (left := [pid for pid in pids if _is_alive(pid)]) and time.monotonic() < end:
        time.sleep(0.01)
    return left


def _is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except (OSError, IndexError):
        return False
