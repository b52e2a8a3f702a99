"""Whole pieces with a recording and known onsets: the pages of MSMD, or scores with match files.

A table of scores is a CSV file with the columns `score_filename` (MusicXML, MXL or MEI), `audio_filename` and
`match_filename` (a match file of partitura's with the onsets of that recording); paths are relative to the table.
Each row is measured twice: with the symbolic score, and from images of its engraved pages alone.
"""

from __future__ import annotations

import csv
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

import numpy as np
import numpy.typing as npt
from PIL import Image

from fusili_mir.alignment.match_onsets import reference_onsets
from fusili_mir.audio.recording import AudioFile, AudioSamples, Recording
from fusili_mir.boundary import reason
from fusili_mir.errors import InputError
from fusili_mir.pages.pages import Pages, load_pages, render_pages
from fusili_training.evaluation.msmd import MsmdTree

__all__ = ["HEAD_ONSET_DTYPE", "MsmdPieces", "PieceSource", "ScoredPieces", "WholePiece", "is_score_table"]

HEAD_ONSET_DTYPE = np.dtype([("id", "U256"), ("page", "i8"), ("x", "f8"), ("y", "f8"), ("onset_sec", "f8")])
"""A note head: its middle in pixels of its (deskewed) page, and the onset of its note."""

Knowledge = Literal["images", "score"]
_COLUMNS = ("score_filename", "audio_filename", "match_filename")


@dataclass(frozen=True, eq=False)
class WholePiece:
    """A piece to be aligned, and the true onsets of its note heads."""

    name: str
    pages: Pages
    recording: Recording
    heads: npt.NDArray[np.void]  # HEAD_ONSET_DTYPE


class PieceSource(Protocol):
    """Whole pieces of a dataset; `knowledge` lists what the model may be given of them."""

    name: str
    pieces: Sequence[str]
    knowledge: tuple[Knowledge, ...]

    def open(self, piece: str, knowledge: Knowledge) -> AbstractContextManager[WholePiece]:
        """Open a piece; its files may be gone when the context ends."""
        ...


class MsmdPieces:
    """The pieces of MSMD: page images, and where their note heads lie."""

    knowledge: tuple[Knowledge, ...] = ("images",)

    def __init__(self, tree: MsmdTree) -> None:
        self.name, self.pieces, self._tree = tree.name, tree.pieces, tree

    @contextmanager
    def open(self, piece: str, knowledge: Knowledge) -> Iterator[WholePiece]:
        """Open a piece; its systems are found on the page images."""
        pages = self._tree.read_pages(piece)
        rows = [
            (
                str(head["id"]),
                number,
                (head["x0"] + head["x1"]) / 2,
                (head["y0"] + head["y1"]) / 2,
                head["onset_sec"],
            )
            for number, page in enumerate(pages)
            for heads in page.heads
            for head in heads
        ]
        sound = self._tree.read_sound(piece)
        yield WholePiece(
            piece,
            load_pages([page.image_file for page in pages], deskew=False),
            AudioSamples(sound.samples, sound.sample_rate_hz, piece),
            np.array(rows, dtype=HEAD_ONSET_DTYPE),
        )


class ScoredPieces:
    """The pieces of a table of scores, recordings and match files."""

    knowledge: tuple[Knowledge, ...] = ("score", "images")

    def __init__(self, table: Path) -> None:
        self.name, self._rows = table.stem, _read_rows(table)
        self.pieces: Sequence[str] = list(self._rows)

    @contextmanager
    def open(self, piece: str, knowledge: Knowledge) -> Iterator[WholePiece]:
        """Open a piece, with its symbolic score or as images of its pages."""
        score_file, audio_file, match_file = self._rows[piece]
        pages = render_pages(score_file)
        heads = _heads(pages, reference_onsets(match_file))
        if not len(heads):
            raise InputError(
                f"{match_file}: none of its notes is in {score_file}; expected the ids of that score"
            )
        if knowledge == "score":
            yield WholePiece(piece, pages, AudioFile(audio_file), heads)
            return
        with tempfile.TemporaryDirectory() as folder:
            files = [Path(folder, f"{number:04d}.png") for number in range(len(pages.images))]
            for file, image in zip(files, pages.images, strict=True):
                Image.fromarray(image).save(file)
            yield WholePiece(piece, load_pages(files, deskew=False), AudioFile(audio_file), heads)


def is_score_table(table: Path) -> bool:
    """Say whether a file is a CSV table with scores and match files."""
    if table.suffix.lower() != ".csv" or not table.is_file():
        return False
    with table.open(newline="", encoding="utf-8-sig", errors="replace") as file:
        return "match_filename" in (csv.DictReader(file).fieldnames or ())


def _read_rows(table: Path) -> dict[str, tuple[Path, Path, Path]]:
    try:
        with table.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.DictReader(file)
            missing = [column for column in _COLUMNS if column not in (reader.fieldnames or ())]
            if missing:
                raise InputError(f"{table}: has no column {' and '.join(missing)}")
            listed = list(reader)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{table}: cannot be read as a table ({reason(error)})") from error
    rows: dict[str, tuple[Path, Path, Path]] = {}
    for number, row in enumerate(listed, start=1):
        score, audio, match = (table.parent / (row[column] or "") for column in _COLUMNS)
        for named in (score, audio, match):
            if not named.is_file():
                raise InputError(f"{table}: row {number} names {named}, which does not exist")
        rows[f"{number}-{score.stem}"] = (score, audio, match)
    if not rows:
        raise InputError(f"{table}: no rows; expected one per recording")
    return rows


def _heads(pages: Pages, onsets: dict[str, float]) -> npt.NDArray[np.void]:
    """Return the first head of each note that is played once; a repeat has no place of its own on the page."""
    rows: dict[str, tuple[str, int, float, float, float]] = {}
    for note in pages.notes:
        name = str(note["id"])
        if name in rows:
            continue
        onset_sec = onsets.get(name, onsets.get(f"{name}-1"))
        if onset_sec is not None and f"{name}-2" not in onsets:
            x, y = float(note["x0"] + note["x1"]) / 2, float(note["y0"] + note["y1"]) / 2
            rows[name] = (name, int(note["page"]), x, y, onset_sec)
    return np.array(list(rows.values()), dtype=HEAD_ONSET_DTYPE)
