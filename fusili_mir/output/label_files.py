"""Alignments as labels under a waveform: Audacity and Sonic Visualiser.

With a symbolic score, Audacity shows its measures and Sonic Visualiser its notes; with images alone, both show
the measures if they are known, and the systems otherwise.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from fusili_mir.alignment.results import Alignment
from fusili_mir.output.recording_labels import recording_labels
from fusili_mir.output.sonic_visualiser import save_instants_svl, save_notes_svl
from fusili_mir.output.sounding_pitch import sounding_pitch

__all__ = ["save_audacity_labels", "save_sonic_visualiser", "save_sonic_visualiser_csv"]


def save_audacity_labels(alignment: Alignment, filename: str | Path) -> None:
    """Write a label track (File > Import > Labels): start, end and text, separated by tabs."""
    labels = recording_labels(alignment)
    lines = [f"{label.start_sec:.6f}\t{label.end_sec:.6f}\t{label.text}\n" for label in labels]
    Path(filename).write_text("".join(lines), encoding="utf-8")


def save_sonic_visualiser(alignment: Alignment, folder: str | Path) -> None:
    """Write all that Sonic Visualiser opens: a table to import, and layers as it exports them itself."""
    folder = Path(folder)
    save_sonic_visualiser_csv(alignment, folder / "sonic-visualiser.csv")
    name = "measures" if len(alignment.measures) else "systems"
    save_instants_svl(alignment, recording_labels(alignment), name, folder / f"{name}.svl")
    if len(alignment.notes):
        save_notes_svl(alignment, folder / "notes.svl")


def save_sonic_visualiser_csv(alignment: Alignment, filename: str | Path) -> None:
    """Write an annotation layer (File > Import Annotation Layer): a note layer, or time instants for images."""
    if alignment.played is None:
        lines = ["TIME,LABEL\n"]
        lines += [f"{label.start_sec:.6f},{label.text}\n" for label in recording_labels(alignment)]
    else:
        heard = alignment.notes[np.isfinite(alignment.notes["onset_sec"])]
        lines = ["TIME,VALUE,DURATION,LEVEL,LABEL\n"]
        lines += [
            f"{note['onset_sec']:.6f},{pitch},{note['offset_sec'] - note['onset_sec']:.6f},"
            f"{note['confidence']:.3f},{note['id']}\n"
            for note, pitch in zip(heard, sounding_pitch(alignment, heard), strict=True)
        ]
    Path(filename).write_text("".join(lines), encoding="utf-8")
