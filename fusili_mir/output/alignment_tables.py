"""Alignments as tables: notes, measures, frames. Unknown times are left empty."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fusili_mir.alignment.measure_tempo import measure_tempo
from fusili_mir.alignment.results import Alignment

__all__ = ["save_frames_csv", "save_measures_csv", "save_notes_csv"]

_BOX = ("page", "x0", "y0", "x1", "y1")
_SURE = ("confidence", "earliest_sec", "latest_sec")


def save_notes_csv(alignment: Alignment, filename: str | Path) -> None:
    """Write one row per sounding note: its times, the box of its head, and how sure its onset is."""
    notes = alignment.notes
    numbers = dict(zip(alignment.measures["measure"], alignment.measures["number"], strict=True))
    header = ("id", "measure", "onset_beat", "pitch", "onset_sec", "offset_sec", *_BOX, *_SURE)
    _write(
        filename,
        header,
        (
            [
                note["id"],
                numbers.get(note["measure"], ""),
                *(note[name] for name in header[2:]),
            ]
            for note in notes
        ),
    )


def save_measures_csv(alignment: Alignment, filename: str | Path) -> None:
    """Write one row per measure each time it is played: its times, its box, how sure they are, and its tempo.

    Beats a minute are left empty where only images are known, and measures a minute where the recording begins or
    ends in the middle of a measure on them.
    """
    copied = ("start_sec", "end_sec", *_BOX, *_SURE)
    header = ("measure", *copied, "beats_per_minute", "measures_per_minute")
    measures = alignment.measures
    tempo = measure_tempo(alignment)
    both = zip(tempo.beats_per_minute, tempo.measures_per_minute, strict=True)
    rows = (
        [measure["number"], *(measure[name] for name in copied), *tempi]
        for measure, tempi in zip(measures, both, strict=True)
    )
    _write(filename, header, rows)


def save_frames_csv(alignment: Alignment, filename: str | Path) -> None:
    """Write one row per audio frame: the place on the page that sounds in it."""
    header = ("onset_sec", "page", "x", "y", *_SURE)
    _write(filename, header, ([frame[name] for name in header] for frame in alignment.frames))


def _write(filename: str | Path, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    with Path(filename).open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        for row in rows:
            writer.writerow([_text(value) for value in row])


def _text(value: Any) -> str:
    """Format floats with four decimals, and NaN as nothing."""
    if isinstance(value, float | np.floating):
        return f"{float(value):.4f}" if np.isfinite(value) else ""
    return str(value)
