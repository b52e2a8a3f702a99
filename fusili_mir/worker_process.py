"""A process of our own that answers requests, line by line: what crashes or hangs in it harms nobody else.

The process is ``python -m MODULE``. It reads requests from standard input and writes answers to standard output,
one line of JSON each, and ends with its input. It is started when it is first asked, and again after a crash, a
time limit or a fork.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import IO, cast

__all__ = ["WorkerProcess"]


class WorkerProcess:
    """A process that answers requests.

    Parameters
    ----------
    module : str
        Module to run.
    environment : mapping of str to str, optional
        Variables that it gets in addition to those of this process.

    Attributes
    ----------
    lock : threading.Lock
        To hold while asking, if several threads do.
    exit_code : int or None
        How the process that was asked last ended; negative: the signal that ended it.
    """

    def __init__(self, module: str, environment: Mapping[str, str] | None = None) -> None:
        self.lock = threading.Lock()
        self.exit_code: int | None = None
        self._module, self._environment = module, dict(environment or {})
        self._process: subprocess.Popen[str] | None = None
        self._owner = -1

    def ask(self, request: str, time_limit_sec: float | None = None) -> str | None:
        """Return the answer, or None if the process died or was stopped at the time limit."""
        process = self._running()
        questions, answers = cast(IO[str], process.stdin), cast(IO[str], process.stdout)
        alarm = threading.Timer(time_limit_sec or threading.TIMEOUT_MAX, process.kill)
        alarm.daemon = True
        if time_limit_sec is not None:
            alarm.start()
        try:
            questions.write(request + "\n")
            questions.flush()
            answer = answers.readline()
        except BrokenPipeError:
            answer = ""
        except BaseException:  # interrupted: the answer still to come must not meet the next request
            self.stop()
            raise
        finally:
            alarm.cancel()
        if not answer.endswith("\n"):
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout=1.0)  # it is ending: let its own exit code be known
            self.stop()
            return None
        return answer

    def kill(self) -> None:
        """End the process from another thread: the one that asks gets None."""
        process = self._process
        if process is not None and self._owner == os.getpid():
            process.kill()

    def stop(self) -> None:
        """Stop the process, if this process started it."""
        process, self._process = self._process, None
        if process is not None and self._owner == os.getpid():
            process.kill()
            process.communicate()
            self.exit_code = process.returncode

    def _running(self) -> subprocess.Popen[str]:
        if self._process is None or self._owner != os.getpid() or self._process.poll() is not None:
            self.stop()
            package_root = str(Path(__file__).resolve().parents[1])
            path = os.pathsep.join(filter(None, [package_root, os.environ.get("PYTHONPATH")]))
            self._process = subprocess.Popen(  # noqa: S603
                [sys.executable, "-m", self._module],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                encoding="utf-8",
                env={**os.environ, **self._environment, "PYTHONPATH": path},
                start_new_session=True,  # Ctrl-C reaches only the caller, which then stops it
            )
            self._owner = os.getpid()
        return self._process
