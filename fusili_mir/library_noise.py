"""Keeping what libraries in C print from the user.

libmpg123 and libtiff write to the standard error of C whatever they find odd in a file: a hundred lines for one
damaged MP3, in the middle of a progress bar. What is wrong with a file is ours to say, in one line.

Only the stream of C is diverted, not the descriptor below it: what Python prints, in any thread, goes where it
always went. Where C has no variable for that stream (Windows, musl), the lines stay.
"""

from __future__ import annotations

import ctypes
import functools
import os
import platform
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["libraries_silenced"]

_lock = threading.Lock()
_depth = 0
_original: int | None = None


@contextmanager
def libraries_silenced() -> Iterator[None]:
    """Let libraries print nothing; several threads may do so at once."""
    global _depth, _original
    stream, nowhere = _streams()
    if stream is None:
        yield
        return
    with _lock:
        if _depth == 0:
            _original, stream.value = stream.value, nowhere
        _depth += 1
    try:
        yield
    finally:
        with _lock:
            _depth -= 1
            if _depth == 0:
                stream.value = _original


@functools.cache
def _streams() -> tuple[ctypes.c_void_p | None, int | None]:
    """Return the variable of C that holds its standard error, and a stream that leads nowhere."""
    name = "__stderrp" if sys.platform == "darwin" else "stderr"
    if sys.platform != "darwin" and platform.libc_ver()[0] != "glibc":  # elsewhere it may be a constant
        return None, None
    try:
        library = ctypes.CDLL(None)
        stream = ctypes.c_void_p.in_dll(library, name)
        library.fopen.restype, library.fopen.argtypes = ctypes.c_void_p, (ctypes.c_char_p, ctypes.c_char_p)
        nowhere = library.fopen(os.fsencode(os.devnull), b"w")
    except (OSError, ValueError, AttributeError):
        return None, None
    return (stream, nowhere) if nowhere else (None, None)
