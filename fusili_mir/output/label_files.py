"""Alignments as labels under a waveform: Audacity and Sonic Visualiser.

With a symbolic score, Audacity shows its measures and Sonic Visualiser its notes; with images alone, both show
the systems.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fusili_mir.alignment.results import Alignment

__all__ = ["save_audacity_labels", "save_sonic_visualiser_csv"]


@dataclass(frozen=True)
class _Label:
    start_sec: float
    end_sec: float
    text: str


def save_audacity_labels(alignment: Alignment, filename: str | Path) -> None:
    """Write a label track (File > Import > Labels): start, end and text, separated by tabs."""
    labels = _systems(alignment) if alignment.played is None else _measures(alignment)
    lines = [f"{label.start_sec:.6f}\t{label.end_sec:.6f}\t{label.text}\n" for label in labels]
    Path(filename).write_text("".join(lines), encoding="utf-8")


def save_sonic_visualiser_csv(alignment: Alignment, filename: str | Path) -> None:
    """Write an annotation layer (File > Import Annotation Layer): a note layer, or time instants for images."""
    if alignment.played is None:
        lines = ["TIME,LABEL\n"]
        lines += [f"{label.start_sec:.6f},{label.text}\n" for label in _systems(alignment)]
    else:
        heard = alignment.notes[np.isfinite(alignment.notes["onset_sec"])]
        lines = ["TIME,VALUE,DURATION,LEVEL,LABEL\n"]
        lines += [
            f"{note['onset_sec']:.6f},{note['pitch']},{note['offset_sec'] - note['onset_sec']:.6f},"
            f"{note['confidence']:.3f},{note['id']}\n"
            for note in heard
        ]
    Path(filename).write_text("".join(lines), encoding="utf-8")


def _measures(alignment: Alignment) -> Iterator[_Label]:
    for measure in alignment.measures[np.isfinite(alignment.measures["start_sec"])]:
        yield _Label(float(measure["start_sec"]), float(measure["end_sec"]), f"measure {measure['number']}")


def _systems(alignment: Alignment) -> Iterator[_Label]:
    """Yield a label for each stretch of frames in one system in which music is heard."""
    frames = alignment.frames[~alignment.path.is_filler]
    names = alignment.axis.system_names()
    starts = np.concatenate(([0], np.flatnonzero(np.diff(frames["system"])) + 1))
    for first, stop in zip(starts, [*starts[1:], len(frames)], strict=True):
        start_sec, end_sec = frames["onset_sec"][first], frames["onset_sec"][stop - 1]
        end_sec = alignment.grid.within(end_sec + alignment.grid.frame_sec)
        yield _Label(float(start_sec), float(end_sec), names[int(frames["system"][first])])
