"""Text files that have their final name only when they are whole."""

from __future__ import annotations

from pathlib import Path

from fusili_mir.errors import OutputError

__all__ = ["write_whole"]


def write_whole(filename: Path, text: str) -> None:
    """Write a text file, and replace an older one of its name."""
    draft = filename.with_name(f".{filename.name}-draft")
    try:
        draft.write_text(text, encoding="utf-8")
        draft.replace(filename)
    except OSError as error:
        raise OutputError(f"{filename}: cannot be written ({error.strerror})") from error
