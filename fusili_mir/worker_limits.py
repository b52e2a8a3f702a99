"""Limits that a worker process sets for itself: memory, time, and the life of the process that asks."""

from __future__ import annotations

import os
import select
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from fusili_mir.limits import limit

__all__ = ["limit_memory", "while_asked"]

_REQUESTS = 0  # standard input


def limit_memory() -> None:
    """Let a file that would take the machine's memory end this process instead, where the system can do that."""
    try:
        import resource

        most = int(limit("worker_bytes"))
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    except (ImportError, ValueError, OSError):  # Windows; or less is allowed already
        return


@contextmanager
def while_asked(seconds: float) -> Iterator[None]:
    """End this process if the work within takes longer, or when the one that asked closes its pipe or dies.

    The system does it, for a library at work may let no line of Python run. That the pipe is closed is noticed
    on Linux; elsewhere such a worker ends with its work.
    """
    _set_alarm(seconds)
    _watch_requests(True)
    try:
        yield
    finally:
        _watch_requests(False)
        _set_alarm(0)


def _set_alarm(seconds: float) -> None:
    """Let the system end this process after some seconds; 0 cancels that."""
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_REAL, seconds)


def _watch_requests(watched: bool) -> None:
    """Let the system send SIGIO, which ends this process, when the pipe of requests is closed."""
    if not sys.platform.startswith("linux"):
        return
    import fcntl

    flags = fcntl.fcntl(_REQUESTS, fcntl.F_GETFL) & ~os.O_ASYNC
    if watched:  # nobody writes before the answer: what there is to read is the end
        fcntl.fcntl(_REQUESTS, fcntl.F_SETOWN, os.getpid())
        flags |= os.O_ASYNC
    fcntl.fcntl(_REQUESTS, fcntl.F_SETFL, flags)
    if watched and select.select([_REQUESTS], [], [], 0)[0]:
        os._exit(1)
