"""What a run that indexes files did with each of them: `report.csv` in the folder of the index."""

from __future__ import annotations

import csv
import io
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Literal, TypeAlias

from fusili_mir.collection.index import Index
from fusili_mir.whole_files import write_text

__all__ = ["CHANGES", "STATUSES", "IndexReport", "IndexedFile", "Status", "write_report"]

Status: TypeAlias = Literal["added", "changed", "moved", "unchanged", "removed", "missing", "failed"]
STATUSES: tuple[Status, ...] = ("added", "changed", "moved", "unchanged", "removed", "missing", "failed")
CHANGES: tuple[Status, ...] = ("added", "changed", "moved", "removed")
"""What makes another index of an index."""


@dataclass(frozen=True)
class IndexedFile:
    """What a run did with a file.

    Attributes
    ----------
    path : str
    status : one of `STATUSES`
        "moved": its content is in the index under a name that is no longer there. "missing": it is in the index,
        and no longer there.
    kind : str
        "score" or "recording"; empty if that is not known.
    windows : int
        Number of vectors.
    seconds : float
        Time that encoding took.
    message : str
        Why it failed, or what to do about it.
    """

    path: str
    status: Status
    kind: str = ""
    windows: int = 0
    seconds: float = 0.0
    message: str = ""


@dataclass(frozen=True)
class IndexReport:
    """What a run did; ``report.csv`` in the folder of the index says the same.

    Attributes
    ----------
    index : Index
    files : list of IndexedFile
    """

    index: Index
    files: list[IndexedFile]

    def count(self, status: Status) -> int:
        """Return the number of files with a status."""
        return sum(file.status == status for file in self.files)


def write_report(path: Path, files: list[IndexedFile]) -> None:
    """Write a row for each file."""
    text = io.StringIO()
    table = csv.DictWriter(text, [field.name for field in fields(IndexedFile)])
    table.writeheader()
    table.writerows({**asdict(file), "seconds": f"{file.seconds:.2f}"} for file in files)
    write_text(path, text.getvalue())
