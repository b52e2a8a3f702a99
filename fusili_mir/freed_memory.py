"""Giving memory that is free back to the system.

Engraving makes and drops millions of small objects. glibc keeps what they leave for others of their kind, while
large arrays get memory of their own beside it; asked to, it gives back what nobody uses.
"""

from __future__ import annotations

import contextlib
import ctypes
import sys

__all__ = ["give_back_memory"]


def give_back_memory() -> None:
    """Give back what is free; does nothing where the C library is not glibc."""
    if sys.platform.startswith("linux"):
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL("libc.so.6").malloc_trim(0)
