"""What glibc does with memory that is free: keeps it for the next array, or gives it back to the system.

Arrays of some megabytes come and go by the thousand. By default glibc asks the system for each of them, and the
system clears its pages one by one; memory that is kept is at hand.

Engraving makes and drops millions of small objects. glibc keeps what they leave for others of their kind, while
large arrays get memory of their own beside it; asked to, it gives back what nobody uses.
"""

from __future__ import annotations

import contextlib
import ctypes
import sys

__all__ = ["give_back_memory", "keep_freed_memory"]

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # numbers of parameters in malloc.h
_LARGEST_KEPT = 2**25  # bytes of an array: glibc accepts no more
_MOST_KEPT = 2**28  # bytes that are free at the end of the heap


def keep_freed_memory() -> None:
    """Keep what arrays leave for those that follow, in this process; only glibc is asked to."""
    _ask_glibc("mallopt", _MMAP_THRESHOLD, _LARGEST_KEPT)
    _ask_glibc("mallopt", _TRIM_THRESHOLD, _MOST_KEPT)


def give_back_memory() -> None:
    """Give back what is free; does nothing where the C library is not glibc."""
    _ask_glibc("malloc_trim", 0)


def _ask_glibc(function: str, *arguments: int) -> None:
    if sys.platform.startswith("linux"):
        with contextlib.suppress(OSError, AttributeError):
            getattr(ctypes.CDLL("libc.so.6"), function)(*arguments)
