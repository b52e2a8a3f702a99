"""The pitches that sound: those of transposing instruments are not the written ones."""

from __future__ import annotations

import numpy as np

from fusili_mir.alignment.results import Alignment
from fusili_mir.arrays import Int64, Table

__all__ = ["sounding_pitch"]


def sounding_pitch(alignment: Alignment, notes: Table) -> Int64:
    """Return the MIDI numbers at which rows of `Alignment.notes`, whose pitch is the written one, sound."""
    semitones = [alignment.pages.transpositions.get(head, 0) for head in notes["notated_id"].tolist()]
    return np.clip(notes["pitch"].astype(np.int64) + np.array(semitones, np.int64), 0, 127)
