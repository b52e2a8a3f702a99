"""Tables that are kept, so that those of a later program can be compared with them.

Numbers are rounded to a small part of what may differ. A checksum of what they were is kept, too, by which equal
results are known to be equal.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from fusili_mir.arrays import Float64, Table

__all__ = [
    "Difference",
    "Tables",
    "checksum",
    "compare_tables",
    "load_tables",
    "save_tables",
    "tolerance_of",
]

Tables: TypeAlias = Mapping[str, Table]
"""Name -> structured array [shape=(n,)]."""

_TOLERANCES = {
    **dict.fromkeys(("x", "y", "x0", "y0", "x1", "y1"), 0.05),
    **dict.fromkeys(("confidence", "probability", "reliability", "similarity"), 1e-3),
    "sec": 1e-3,
    "cents": 0.1,
}  # by the last word of a column's name
_OTHERWISE = 1e-6
_STEPS = 16  # that numbers are rounded to, in a tolerance
_KINDS = {"U": "texts", "b": "whole", "i": "whole", "u": "whole", "f": "fractions"}


@dataclass(frozen=True)
class Difference:
    """What differs in a column.

    Attributes
    ----------
    table, column : str
        In parentheses what differs as a whole: a table, a column, or the number of rows.
    n_rows : int
        Number of rows that differ.
    largest : float, optional
        Largest difference, infinite where only one of two numbers is known; None for text.
    """

    table: str
    column: str
    n_rows: int
    largest: float | None = None

    @property
    def row(self) -> str:
        """What a table says of it.

        >>> Difference("notes", "onset_sec", 3, 0.0125).row
        'notes | onset_sec | 3 | 0.0125'
        """
        largest = "" if self.largest is None else f"{self.largest:.3g}"
        return f"{self.table} | {self.column} | {self.n_rows} | {largest}"


def tolerance_of(column: str) -> float:
    """Return how far the numbers of a column may differ, if they have a fraction.

    >>> tolerance_of("earliest_sec"), tolerance_of("x0"), tolerance_of("onset_beat")
    (0.001, 0.05, 1e-06)
    """
    return _TOLERANCES.get(column.rpartition("_")[2], _OTHERWISE)


def checksum(tables: Tables) -> str:
    """Return the SHA-256 of all names and values."""
    digest = hashlib.sha256()
    for name, table in sorted(tables.items()):
        for column in table.dtype.names or ():
            values = _as_wide_as_needed(table[column])
            digest.update(f"{name} {column} {values.dtype} {len(values)}\n".encode())
            digest.update(values.tobytes())
    return digest.hexdigest()


def save_tables(tables: Tables, filename: Path) -> None:
    """Write tables as compressed arrays: of each its texts, its whole numbers and those with a fraction."""
    columns = {
        name: {column: _KINDS[table[column].dtype.kind] for column in table.dtype.names or ()}
        for name, table in tables.items()
    }
    about = json.dumps({"sha256": checksum(tables), "columns": columns})
    arrays: dict[str, npt.NDArray[Any]] = {"about": np.array(about)}
    for name, table in tables.items():
        for kind, dtype in (("texts", "U"), ("whole", "i8"), ("fractions", "f8")):
            chosen = [column for column, its_kind in columns[name].items() if its_kind == kind]
            rows = [table[column].tolist() for column in chosen]
            stacked = np.array(rows, dtype).reshape(len(rows), len(table))
            if kind == "fractions":
                stacked = _bytes_apart(_rounded(chosen, stacked))
            arrays[f"{name} {kind}"] = stacked
    beside = filename.with_suffix(".part")
    with beside.open("wb") as file:
        np.savez_compressed(file, **arrays)
    beside.replace(filename)


def load_tables(filename: Path) -> tuple[Tables, str]:
    """Read tables, and the checksum of what they were before they were rounded."""
    with np.load(filename, allow_pickle=False) as stored:
        about = json.loads(str(stored["about"]))
        tables = {}
        for name, kinds in about["columns"].items():
            stacked = {kind: stored[f"{name} {kind}"] for kind in ("texts", "whole", "fractions")}
            n_rows = stacked["texts"].shape[1]
            shape = (list(kinds.values()).count("fractions"), n_rows)
            stacked["fractions"] = _bytes_together(stacked["fractions"], shape)
            table = np.empty(n_rows, [(column, stacked[kind].dtype) for column, kind in kinds.items()])
            following = {kind: iter(rows) for kind, rows in stacked.items()}
            for column, kind in kinds.items():
                table[column] = next(following[kind])
            tables[name] = table
    return tables, about["sha256"]


def compare_tables(kept: Tables, found: Tables) -> list[Difference]:
    """List what differs by more than it may.

    Parameters
    ----------
    kept, found : Tables
        Rows are compared with rows at the same place; if one table is longer, only that is told.

    Returns
    -------
    list of Difference
    """
    differences = []
    for name in sorted({*kept, *found}):
        if name in kept and name in found:
            differences += _compare(name, kept[name], found[name])
        else:
            only, table = ("missing", kept[name]) if name in kept else ("new", found[name])
            differences.append(Difference(name, f"({only})", len(table)))
    return differences


def _compare(name: str, kept: Table, found: Table) -> list[Difference]:
    before, now = kept.dtype.names or (), found.dtype.names or ()
    differences = [
        Difference(name, f"{column} (missing)", len(kept)) for column in before if column not in now
    ]
    differences += [Difference(name, f"{column} (new)", len(found)) for column in now if column not in before]
    if len(kept) != len(found):
        return [*differences, Difference(name, "(rows)", abs(len(kept) - len(found)))]
    for column in before:
        if column in now:
            away = _away(kept[column], found[column])
            n_rows = int((away > _allowed(column, kept[column])).sum())
            is_text = kept[column].dtype.kind == "U"
            if n_rows:
                differences.append(Difference(name, column, n_rows, None if is_text else float(away.max())))
    return differences


def _away(kept: npt.NDArray[Any], found: npt.NDArray[Any]) -> Float64:
    """Return how far values are apart: 0 if both are unknown, infinite if one is, or if texts differ."""
    if "U" in (kept.dtype.kind, found.dtype.kind):
        is_same = np.array(
            [one == other for one, other in zip(kept.tolist(), found.tolist(), strict=True)], bool
        )
        return np.where(is_same, 0.0, np.inf)
    one, other = kept.astype(np.float64), found.astype(np.float64)
    with np.errstate(invalid="ignore"):  # infinite in both
        away = np.abs(one - other)
    is_same = (one == other) | (np.isnan(one) & np.isnan(other))
    return np.where(is_same, 0.0, np.where(np.isnan(away), np.inf, away))


def _allowed(column: str, kept: npt.NDArray[Any]) -> float:
    return tolerance_of(column) * (1 + 1 / _STEPS) if kept.dtype.kind == "f" else 0.0


def _as_wide_as_needed(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return texts in fields as wide as the longest of them, and numbers as they are."""
    return np.array(values.tolist(), "U") if values.dtype.kind == "U" else values


def _rounded(columns: list[str], stacked: Float64) -> Float64:
    """Round columns [shape=(k, n)] to powers of two, which leaves few bits to store."""
    tolerances = np.array([tolerance_of(column) for column in columns])
    step = 2.0 ** np.floor(np.log2(tolerances / _STEPS))[:, None]
    return np.asarray(np.rint(stacked / step) * step)


def _bytes_apart(stacked: Float64) -> npt.NDArray[np.uint8]:
    """Put the first bytes of all numbers first, then the second ones, ...: they are alike, and pack well."""
    return np.ascontiguousarray(np.frombuffer(stacked.tobytes(), np.uint8).reshape(-1, stacked.itemsize).T)


def _bytes_together(apart: npt.NDArray[np.uint8], shape: tuple[int, int]) -> Float64:
    """Return the numbers of `_bytes_apart`."""
    return np.frombuffer(apart.T.tobytes(), np.float64).reshape(shape)
