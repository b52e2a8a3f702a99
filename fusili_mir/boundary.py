"""The boundary to files of strangers: whatever a library raises while it reads one becomes one line.

Parsers raise errors of every kind for damaged files, and no list of them is ever complete. Every reader of a
stranger's file works inside `reading`, the one place where such errors are turned into an `InputError`.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fusili_mir.errors import FusiliError, InputError
from fusili_mir.limits import check_limit, limit

__all__ = [
    "check_regular",
    "file_name",
    "printable",
    "printable_lines",
    "read_limited",
    "read_text_limited",
    "reading",
]

_LONGEST_REASON = 200
_LONGEST_NAME = 300


@contextmanager
def reading(name: object, expected: str) -> Iterator[None]:
    """Turn whatever is raised inside into an `InputError` of one line.

    Parameters
    ----------
    name : object
        Name of the file, for the message.
    expected : str
        What the file should be and what to do, for the end of the message.

    Examples
    --------
    >>> with reading("table.csv", "expected a table of pairs"):
    ...     int("one")
    Traceback (most recent call last):
    fusili_mir.errors.InputError: table.csv: cannot be read (ValueError: invalid literal for int() with base 10: \
'one'); expected a table of pairs
    """
    try:
        yield
    except (FusiliError, Warning):  # said already; and warnings that a user wants as errors
        raise
    except Exception as error:  # libraries have no base in common for what damaged files do to them
        raise InputError(f"{printable(name)}: cannot be read ({_reason(error)}); {expected}") from error


def check_regular(filename: str | os.PathLike[str], expected: str) -> None:
    """Refuse a pipe, a socket or a device: nobody may ever write there, or it has no end.

    What is missing passes: whoever opens it says so.
    """
    try:
        mode = Path(filename).stat().st_mode
    except (OSError, ValueError):
        return
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise InputError(f"{printable(filename)}: not a regular file; {expected}")


def read_limited(filename: Path, limit_name: str, expected: str) -> bytes:
    """Return the content of a file, which is not larger than the limit of this name."""
    with reading(filename, expected):
        check_regular(filename, expected)
        check_limit(limit_name, filename.stat().st_size, printable(filename))
        with filename.open("rb") as file:
            data = file.read(int(limit(limit_name)) + 1)  # files of the system, such as /proc, tell no size
        check_limit(limit_name, len(data), printable(filename))
        return data


def read_text_limited(filename: Path, limit_name: str, expected: str) -> str:
    """Return the content of a text file in UTF-8, which is not larger than the limit of this name."""
    data = read_limited(filename, limit_name, expected)
    with reading(filename, expected):
        try:
            return data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise InputError(
                f"{printable(filename)}: cannot be read (not a text in UTF-8, byte {error.start}); {expected}"
            ) from error


def printable(name: object) -> str:
    r"""Return a name that any terminal and any log can show: on one line, not too long, in valid Unicode.

    >>> printable("a\nb\udcff")
    'a?b?'
    """
    text = "".join(c if c.isprintable() else "?" for c in str(name))
    half = _LONGEST_NAME // 2
    return text if len(text) <= _LONGEST_NAME else f"{text[:half]}...{text[-half:]}"


def printable_lines(text: str) -> str:
    r"""Return a text, of one line or more, without codes that command a terminal, in valid Unicode.

    >>> printable_lines("a\x1b[31m\tb\nc\udcff")
    'a?[31m\tb\nc?'
    """
    return "".join(c if c.isprintable() or c in "\n\t" else "?" for c in text)


def file_name(filename: str | os.PathLike[str]) -> str:
    r"""Return the name of a file, without folders, as a text that can be written into any other file.

    >>> file_name("scores/a\udcff.mxl")
    'a?.mxl'
    """
    name = os.fspath(filename)
    return (Path(name).name or name).encode("utf-8", "replace").decode()


def _reason(error: Exception) -> str:
    """Say what went wrong in a few words."""
    if isinstance(error, MemoryError):
        return "it takes too much memory"
    if isinstance(error, RecursionError):
        return "nested too deeply"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    said = printable(" ".join(str(error).split())[:_LONGEST_REASON])
    return f"{type(error).__name__}: {said}" if said else type(error).__name__
