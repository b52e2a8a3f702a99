"""The errors and warnings that fusili-mir raises on purpose.

Every message is one line: what was found, what was expected, and what to do. The command line prints it and
exits with code 1; any exception that is not a `FusiliError` is a bug.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

__all__ = [
    "FusiliError",
    "FusiliWarning",
    "InputError",
    "MissingExtraError",
    "OutputError",
    "flags_named",
    "option",
]

_flags_named = False


class FusiliError(Exception):
    """Base of all errors raised on purpose."""


class FusiliWarning(UserWarning):
    """Base of all warnings; the command line prints each as one line."""


class InputError(FusiliError, ValueError):
    """A value or a file that cannot be used."""


class MissingExtraError(FusiliError, ImportError):
    """An optional dependency that is needed but not installed."""


class OutputError(FusiliError, OSError):
    """A result that cannot be written to the requested place."""


@contextmanager
def flags_named() -> Iterator[None]:
    """Let messages name options as the command line does; this holds for the whole process."""
    global _flags_named
    before, _flags_named = _flags_named, True
    try:
        yield
    finally:
        _flags_named = before


def option(flag: str, argument: str) -> str:
    """Name an option as whoever reads a message can give it.

    >>> f"add {option('--force', 'force=True')} to replace files"
    'add force=True to replace files'
    """
    return flag if _flags_named else argument
