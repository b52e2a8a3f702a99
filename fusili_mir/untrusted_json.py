"""Reading JSON of strangers: of limited size and nesting, in valid Unicode."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fusili_mir.boundary import printable, read_text_limited, reading
from fusili_mir.errors import InputError
from fusili_mir.limits import check_limit

__all__ = ["parse_json", "read_json"]

_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


def read_json(filename: Path, expected: str, limit_name: str = "json_bytes") -> Any:
    """Read a file.

    Parameters
    ----------
    filename : Path
    expected : str
        What it should be and what to do, for messages.
    limit_name : str
        Limit of its size, see `fusili_mir.limits.LIMITS`.
    """
    return parse_json(read_text_limited(filename, limit_name, expected), filename, expected)


def parse_json(text: str | bytes, name: object, expected: str) -> Any:
    """Parse JSON; nothing of it is nested too deeply, and all its texts can be printed and written."""
    with reading(name, expected):
        if isinstance(text, bytes):
            text = text.decode("utf-8")
        content = json.loads(text)
        may_hold_surrogates = _SURROGATE.search(text) is not None
        level, depth = [content], 0
        while level:  # breadth first, so that nothing recurs
            depth += 1
            check_limit("json_nesting", depth, printable(name), expected)
            if may_hold_surrogates:
                _refuse_surrogates(level, name, expected)
            level = [item for each in level if isinstance(each, dict | list) for item in _items(each)]
        return content


def _items(value: Mapping[str, Any] | list[Any]) -> list[Any]:
    return [*value.keys(), *value.values()] if isinstance(value, Mapping) else value


def _refuse_surrogates(values: list[Any], name: object, expected: str) -> None:
    for value in values:
        if isinstance(value, str) and any("\ud800" <= c <= "\udfff" for c in value):
            raise InputError(f"{printable(name)}: holds half a character ({ascii(value)[:40]}); {expected}")
