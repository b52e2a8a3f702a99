"""The truth about a segment on the grids of a model: the patch and the frames of each note head.

The truth has one row per note head, see `fusili_training.truth`. A head lies in the patch that contains its
centre, and sounds in every frame that overlaps its time.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fusili_mir.arrays import Bool, Int64
from fusili_mir.geometry import FrameGrid, PatchGrid
from fusili_training.truth import TruthArray

__all__ = ["PlacedNotes", "place_notes", "sounding_patches"]


@dataclass(frozen=True)
class PlacedNotes:
    """The notes of a segment that lie on both grids.

    Attributes
    ----------
    patch : np.ndarray [shape=(notes,)]
        Patch of the note head.
    first_frame, end_frame : np.ndarray [shape=(notes,)]
        The note sounds in ``first_frame <= m < end_frame``.
    pitch : np.ndarray [shape=(notes,)]
        MIDI pitch.
    struck : np.ndarray of bool [shape=(notes,)]
        False for a head that only continues a tied note.
    """

    patch: Int64
    first_frame: Int64
    end_frame: Int64
    pitch: Int64
    struck: Bool


def place_notes(truth: TruthArray, patches: PatchGrid, frames: FrameGrid) -> PlacedNotes:
    """Place notes on the grids, without those outside either grid."""
    patch = patches.index((truth["x0"] + truth["x1"]) / 2, (truth["y0"] + truth["y1"]) / 2)
    first = frames.index(truth["onset_sec"])
    end = np.ceil((truth["offset_sec"] - frames.start_sec) / frames.frame_sec - 1e-6).astype(np.int64)
    end = np.clip(end, first + 1, len(frames))
    inside = (patch >= 0) & (first >= 0)
    notes = truth[inside]
    return PlacedNotes(
        patch[inside], first[inside], end[inside], notes["pitch"].astype(np.int64), notes["struck"]
    )


def sounding_patches(truth: TruthArray, patches: PatchGrid, frames: FrameGrid) -> Bool:
    """Return which patches are right for which frame, up to the last note [shape=(N, M'), M' <= M].

    A silent frame takes the patches of the nearest frame that is not silent, and of the earlier one of two that
    are equally near.
    """
    notes = place_notes(truth, patches, frames)
    right = np.zeros((len(patches), int(notes.end_frame.max(initial=0))), dtype=np.bool_)
    for patch, first, end in zip(notes.patch, notes.first_frame, notes.end_frame, strict=True):
        right[patch, first:end] = True
    if not right.size:
        return right
    sounding = np.flatnonzero(right.any(axis=0))
    every = np.arange(right.shape[1])
    after = np.searchsorted(sounding, every).clip(max=len(sounding) - 1)
    before = (after - 1).clip(min=0)
    nearer_before = np.abs(every - sounding[before]) <= np.abs(sounding[after] - every)
    return right[:, np.where(nearer_before, sounding[before], sounding[after])]
