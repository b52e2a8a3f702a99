"""Structured arrays as values that JSON can represent."""

from __future__ import annotations

from typing import Any

import numpy as np

from fusili_mir.arrays import Table

__all__ = ["json_columns", "json_rows"]

_DECIMALS = 4


def json_columns(table: Table) -> dict[str, list[Any]]:
    """Return a table as a dict of columns; NaN becomes None.

    >>> json_columns(np.array([("a", 0.25), ("b", np.nan)], [("id", "U4"), ("onset_sec", "f8")]))
    {'id': ['a', 'b'], 'onset_sec': [0.25, None]}
    """
    return {name: _values(table[name]) for name in table.dtype.names or ()}


def json_rows(table: Table) -> list[dict[str, Any]]:
    """Return a table as a list of dicts, one per row."""
    columns = json_columns(table)
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _values(column: Any) -> list[Any]:
    if column.dtype.kind != "f":
        return list(column.tolist())
    rounded = column.astype(np.float64).round(_DECIMALS).tolist()
    return [value if np.isfinite(value) else None for value in rounded]
