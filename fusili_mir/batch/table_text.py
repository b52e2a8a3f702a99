"""Reading a table as people save them: commas, semicolons or tabs; UTF-8, UTF-16 or what Excel calls ANSI."""

from __future__ import annotations

import codecs
import csv
import io
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from fusili_mir.boundary import read_limited, reason
from fusili_mir.errors import InputError

__all__ = ["TableRows", "read_rows"]

_DELIMITERS = ",;\t"
_WORKBOOK = b"PK\x03\x04"
_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


@dataclass(frozen=True)
class TableRows:
    """A table.

    Attributes
    ----------
    columns : tuple of str
        Names of the columns, in small letters.
    rows : tuple of (int, dict)
        The number of the line that each row ends on, and its cells; there may be fewer cells than columns.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[int, dict[str, str]], ...]


def read_rows(filename: Path, known: Collection[str]) -> TableRows:
    """Read a table with a header.

    Parameters
    ----------
    filename : Path
    known : collection of str
        Names of columns; what separates most of them separates the cells.
    """
    lines = io.StringIO(_read_text(filename), newline="")
    start, n_before, delimiter = lines.readline(), 0, ""
    if start[:4].casefold() == "sep=":  # by which Excel tells itself
        n_before, delimiter = 1, start[4:].strip(" \r\n")[:1]
        start = lines.readline()
    try:
        if not delimiter:
            delimiter = max(_DELIMITERS, key=lambda each: len({*_names(start, each)} & {*known}))
        columns = _names(start, delimiter)
        reader = csv.reader(lines, delimiter=delimiter)
        n_before += 1
        rows = tuple((reader.line_num + n_before, dict(zip(columns, row, strict=False))) for row in reader)
    except csv.Error as error:
        raise InputError(f"{filename}: cannot be read ({reason(error)}); expected a table (CSV)") from error
    twice = [name for name in known if columns.count(name) > 1]
    if twice:
        raise InputError(f"{filename}: two columns `{twice[0]}`, expected one")
    return TableRows(columns, rows)


def _names(header: str, delimiter: str) -> tuple[str, ...]:
    return tuple(name.strip().casefold() for name in next(csv.reader([header], delimiter=delimiter), []))


def _read_text(filename: Path) -> str:
    content = read_limited(filename, "table_bytes", "expected a table (CSV)")
    if content.startswith(_WORKBOOK):
        raise InputError(f"{filename}: a workbook or archive; expected a table, so save it as CSV")
    try:
        return content.decode("utf-16" if content.startswith(_UTF_16) else "utf-8-sig")
    except UnicodeDecodeError:
        text = content.decode("cp1252", "replace")
    if any(letter < " " and letter not in "\t\r\n" for letter in text):
        raise InputError(f"{filename}: cannot be read (not a text); expected a table (CSV)")
    return text
