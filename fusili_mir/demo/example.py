"""The example that comes with the package: a song as a score, as an image of its page and as a recording.

`fusili_mir/demo/files/README.md` states where the files come from and how they are licensed.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fusili_mir.arrays import Table
from fusili_mir.errors import InputError

__all__ = ["EXAMPLE_NOTE_DTYPE", "Example", "load_example"]

EXAMPLE_NOTE_DTYPE = np.dtype([("id", "U256"), ("onset_sec", "f8"), ("page", "i4"), ("x", "f8"), ("y", "f8")])
"""One note: when it is struck in the recording, and where the centre of its (first) head lies on the page image.
`id` is its id in the score."""

_FOLDER = Path(__file__).parent / "files"


@dataclass(frozen=True)
class Example:
    """A piece with all files and the true onsets.

    Attributes
    ----------
    title : str
    score, page, recording : Path
        MXL, PNG and OGG files.
    truth : np.ndarray of `EXAMPLE_NOTE_DTYPE` [shape=(n,)]
        All notes, sorted by onset.
    """

    title: str
    score: Path
    page: Path
    recording: Path
    truth: Table


def load_example() -> Example:
    """Locate the files of the example, and read its truth."""
    stem = _FOLDER / "hensel_bitte"
    files = [stem.with_suffix(suffix) for suffix in (".mxl", ".png", ".ogg", ".csv")]
    missing = [file for file in files if not file.is_file()]
    if missing:
        raise InputError(f"{missing[0]}: a file of the example is missing; reinstall fusili-mir")
    score, page, recording, truth = files
    return Example("Fanny Hensel, Bitte, op. 7 no. 5", score, page, recording, _read_truth(truth))


def _read_truth(filename: Path) -> Table:
    with filename.open(newline="", encoding="utf-8") as file:
        rows = [tuple(row[name] for name in EXAMPLE_NOTE_DTYPE.names or ()) for row in csv.DictReader(file)]
    return np.array(rows, dtype=EXAMPLE_NOTE_DTYPE)
