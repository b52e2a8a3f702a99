"""How a worker process ended, in words for somebody who has never heard of it."""

from __future__ import annotations

import signal
from dataclasses import dataclass

__all__ = ["WorkerEnding"]

_OUT_OF_MEMORY = ("bad_alloc", "MemoryError", "Cannot allocate memory", "out of memory")
_NEARLY = 0.9  # of the memory that a worker may take: its next piece did not fit


@dataclass(frozen=True)
class WorkerEnding:
    """What is known of a worker that died.

    Attributes
    ----------
    exit_code : int or None
        Negative: the signal that ended it.
    said : str
        The end of what it, or a library, wrote to standard error.
    peak_bytes : int
        Memory that it took at most; 0 if that is unknown.
    most_bytes : float, optional
        Memory that it may take.
    expired_sec : float, optional
        Time after which it was stopped.
    """

    exit_code: int | None
    said: str = ""
    peak_bytes: int = 0
    most_bytes: float | None = None
    expired_sec: float | None = None

    @property
    def took_too_much_memory(self) -> bool:
        """Whether the memory that it may take was not enough."""
        if self.expired_sec is not None:
            return False
        is_full = self.most_bytes is not None and self.peak_bytes > _NEARLY * self.most_bytes
        return is_full or any(sign in self.said for sign in _OUT_OF_MEMORY)

    def __str__(self) -> str:
        """Say it in words that follow the name of a program.

        >>> str(WorkerEnding(-9, expired_sec=300)), str(WorkerEnding(-6, "std::bad_alloc", most_bytes=2e9))
        ('took more than 300 s', 'needed more than 2 GB of memory')
        >>> str(WorkerEnding(-11)), str(WorkerEnding(1))
        ('crashed (signal 11, SIGSEGV)', 'ended with exit code 1')
        """
        if self.expired_sec is not None:
            return f"took more than {self.expired_sec:g} s"
        if self.took_too_much_memory:
            return (
                "ran out of memory"
                if self.most_bytes is None
                else f"needed more than {self.most_bytes / 1e9:.2g} GB of memory"
            )
        if self.exit_code is None or self.exit_code >= 0:
            return f"ended with exit code {self.exit_code}"
        number = -self.exit_code
        try:
            name = f"signal {number}, {signal.Signals(number).name}"
        except ValueError:
            name = f"signal {number}"
        return f"was killed ({name}), perhaps for lack of memory" if number == 9 else f"crashed ({name})"
