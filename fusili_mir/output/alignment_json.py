"""Everything about an alignment in one JSON file, for viewers and other programming languages."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from fusili_mir import __version__
from fusili_mir.alignment.results import Alignment
from fusili_mir.arrays import Table

__all__ = ["ALIGNMENT_FORMAT", "alignment_to_json", "save_alignment_json"]

ALIGNMENT_FORMAT = 1
"""Version of `alignment.json`; raised whenever a reader of the old format would go wrong."""


def save_alignment_json(alignment: Alignment, filename: str | Path) -> None:
    """Write an alignment as JSON; see `alignment_to_json`."""
    content = json.dumps(alignment_to_json(alignment), ensure_ascii=False, separators=(",", ":"))
    Path(filename).write_text(content, encoding="utf-8")


def alignment_to_json(alignment: Alignment) -> dict[str, Any]:
    """Return an alignment as values that JSON can represent.

    Parameters
    ----------
    alignment : Alignment

    Returns
    -------
    dict
        Tables (`systems`, `notes`, `measures`, `frames`) are dicts of columns, all of the same length. Unknown
        values, such as the times of notes that were not heard, are null.
    """
    return {
        "format": ALIGNMENT_FORMAT,
        "made_by": f"fusili-mir {__version__}",
        "score": Path(alignment.pages.filename).name,
        "n_pages": len(alignment.pages.images),
        "unfold": None if alignment.played is None else alignment.played.unfold,
        "reliability": round(alignment.reliability, 4),
        "is_reliable": alignment.is_reliable,
        "start_sec": alignment.grid.start_sec,
        "frame_sec": alignment.grid.frame_sec,
        "systems": _columns(alignment.pages.systems),
        "measures": _columns(alignment.measures),
        "notes": _columns(alignment.notes),
        "frames": _columns(alignment.frames),
    }


def _columns(table: Table) -> dict[str, list[Any]]:
    return {name: _values(table[name]) for name in table.dtype.names or ()}


def _values(column: Any) -> list[Any]:
    if column.dtype.kind != "f":
        return list(column.tolist())
    rounded = column.astype(np.float64).round(4).tolist()
    return [value if np.isfinite(value) else None for value in rounded]
