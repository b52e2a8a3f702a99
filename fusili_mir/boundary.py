"""The boundary to files of strangers: whatever a library raises while it reads one becomes one line.

Parsers raise errors of every kind for damaged files, and no list of them is ever complete. Every reader of a
stranger's file works inside `reading`, the one place where such errors are turned into an `InputError`, and
`reason` says in plain words what each means; ``--verbose`` tells what was raised.
"""

from __future__ import annotations

import binascii
import json
import logging
import os
import re
import stat
import struct
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fusili_mir.errors import FusiliError, InputError
from fusili_mir.limits import check_limit, limit

__all__ = [
    "check_regular",
    "described",
    "file_name",
    "printable",
    "printable_lines",
    "read_limited",
    "read_text_limited",
    "reading",
    "reason",
    "refuse_address",
    "unexpected",
]

_LONGEST_REASON = 200
_LONGEST_NAME = 300
_ADDRESS = re.compile(
    r"(?:.*/)?(?P<scheme>https?|ftps?|sftp|s3|gs|smb|file):/{1,3}(?P<rest>[^/].*)", re.DOTALL | re.IGNORECASE
)
_NOT_A_NUMBER = re.compile(
    r"(?:invalid literal for int\(\) with base \d+|could not convert string to float): (.*)"
)
_ONNXRUNTIMES = re.compile(r"\[ONNXRuntimeError\] : \d+ : ")
_ABOUT_VALUES = (
    *(TypeError, AttributeError, NameError, LookupError, ArithmeticError, AssertionError, StopIteration),
    *(UnicodeError, struct.error, binascii.Error),
)
_CONTRADICTION = "it is incomplete or contradicts itself"

_log = logging.getLogger("fusili_mir")


@contextmanager
def reading(name: object, expected: str, found: str = "cannot be read") -> Iterator[None]:
    """Turn whatever is raised inside into an `InputError` of one line.

    Parameters
    ----------
    name : object
        Name of the file, for the message.
    expected : str
        What the file should be and what to do, for the end of the message.
    found : str
        What the file is instead.

    Examples
    --------
    >>> with reading("pairs.csv", "expected a table"):
    ...     int("one")
    Traceback (most recent call last):
    fusili_mir.errors.InputError: pairs.csv: cannot be read ('one' where a number is expected); expected a table
    """
    try:
        yield
    except (FusiliError, Warning):  # said already; and warnings that a user wants as errors
        raise
    except Exception as error:  # libraries have no base in common for what damaged files do to them
        if isinstance(error, FileNotFoundError) and str(error.filename) == str(name):
            raise InputError(f"{printable(name)}: not found; {expected}") from error
        raise InputError(f"{printable(name)}: {found} ({reason(error)}); {expected}") from error


def reason(error: Exception) -> str:
    """Say in plain words what went wrong: what a library says, without names of exceptions.

    What Python itself says of a key, an index or a type is about a program and not about a file, so it is left
    out; ``--verbose`` prints it.

    >>> import zipfile
    >>> reason(zipfile.BadZipFile("File is not a zip file"))
    'File is not a zip file'
    >>> reason(KeyError("n1177"))
    'it is incomplete or contradicts itself'
    """
    if isinstance(error, FusiliError):
        return str(error)
    _log.info("%s: %s", type(error).__qualname__, printable(error))
    if isinstance(error, MemoryError):
        return "it takes too much memory"
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    if isinstance(error, EOFError):
        return "it ends too early"
    if isinstance(error, UnicodeDecodeError):
        return f"not a text in {error.encoding.upper()}, byte {error.start}"
    if isinstance(error, json.JSONDecodeError):
        return f"not JSON at line {error.lineno}, column {error.colno}: {error.msg}"
    if isinstance(error, zlib.error):
        return "its compressed data are damaged"
    if getattr(error, "strerror", None):  # the system's, and that of ffmpeg's libraries
        return str(error.strerror)  # type: ignore[attr-defined]
    said = printable(" ".join(str(error).strip().partition("\n")[0].split())[:_LONGEST_REASON])
    said = _ONNXRUNTIMES.sub("", said).removeprefix("Error : ")  # soundfile's
    number = _NOT_A_NUMBER.fullmatch(said)
    if number is not None:
        return f"{number[1]} where a number is expected"
    if "embedded null" in said:
        return "its name contains a null character"
    return said if said and _is_for_users(error) else _CONTRADICTION


def unexpected(error: Exception) -> str:
    """Say that a program of ours has failed, where that must not end a run over many files."""
    return f"an unexpected {type(error).__name__} ({error}); please report it with its files"


def _is_for_users(error: Exception) -> bool:
    """Return whether a library wrote the text of an error about a file, rather than Python about a value."""
    return not isinstance(error, _ABOUT_VALUES) and type(error) not in (ValueError, SyntaxError)


def refuse_address(name: object, advice: str = "download the file and give its name") -> None:
    """Raise an `InputError` if the name of a file is an address; `Path` removes the second of its slashes.

    >>> refuse_address(Path("https://a.org/scan.pdf"))
    Traceback (most recent call last):
    fusili_mir.errors.InputError: https://a.org/scan.pdf: an address, not a file; download the file and give its \
name
    """
    found = _ADDRESS.fullmatch(str(name))
    if found is None or os.path.lexists(str(name)):
        return
    if found["scheme"].lower() == "file":
        advice = f"give its name without {found['scheme']}:"
    shown = printable(f"{found['scheme']}://{found['rest']}")
    raise InputError(f"{shown}: an address, not a file; {advice}")


def described(value: object) -> str:
    """Name a value that cannot be used, in a few words.

    >>> described(None), described(3), described([1, 2])
    ('None', '3', 'a list')
    """
    if value is None:
        return "None"
    if isinstance(value, int | float | str | bool):
        return printable(repr(value)[:40])
    if isinstance(value, bytes):
        return "bytes"
    if hasattr(value, "__array__") and hasattr(value, "shape"):
        return f"an array of shape {tuple(value.shape)}"
    kind = type(value).__name__
    return f"{'an' if kind[0].lower() in 'aeiou' else 'a'} {kind}"


def check_regular(filename: str | os.PathLike[str], expected: str) -> None:
    """Refuse a pipe, a socket or a device: nobody may ever write there, or it has no end.

    What is missing passes: whoever opens it says so. An address is refused.
    """
    try:
        mode = Path(filename).stat().st_mode
    except (OSError, ValueError):
        refuse_address(filename)
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
