"""Reading TOML of strangers: recipes."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from fusili_mir.boundary import read_text_limited, reading
from fusili_mir.errors import InputError

__all__ = ["read_toml"]


def read_toml(filename: Path) -> dict[str, Any]:
    """Read a recipe as a table."""
    expected = "expected a recipe in TOML"
    text = read_text_limited(filename, "json_bytes", expected)
    with reading(filename, expected):
        try:
            return tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise InputError(f"{filename} is not a TOML file: {error}") from error
