"""A reader of strangers' files, with a whole file of its kind to damage."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

__all__ = ["FuzzedReader"]


@dataclass(frozen=True)
class FuzzedReader:
    """A reader, and a whole file for it.

    Attributes
    ----------
    name : str
    seed : Path
    kind : "bytes", "text", "xml" or "zip"
        How its files are damaged.
    read : callable
        Reads a file as the program does.
    weight : int
        How often it is tried, compared with others.
    """

    name: str
    seed: Path
    kind: str
    read: Callable[[Path], object]
    weight: int = 1
