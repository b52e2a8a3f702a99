"""Limits that a worker process sets for itself: memory, and time even if its parent is gone."""

from __future__ import annotations

import signal

from fusili_mir.limits import limit

__all__ = ["limit_memory", "set_alarm"]


def limit_memory() -> None:
    """Let a file that would take the machine's memory end this process instead, where the system can do that."""
    try:
        import resource

        most = int(limit("worker_bytes"))
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    except (ImportError, ValueError, OSError):  # Windows; or less is allowed already
        return


def set_alarm(seconds: float) -> None:
    """End this process after some seconds; 0 cancels the alarm."""
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_REAL, seconds)
