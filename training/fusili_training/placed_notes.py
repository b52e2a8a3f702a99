"""The truth about a segment on the grids of a model: the patch and the frames of each note head.

The truth has one row per note head, see `fusili_training.truth`. A head lies in the patch that contains its
centre. In training it sounds in every frame that overlaps its time; `sounding_patches`, by which models are
judged, follows the paper's rule.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fusili_mir.arrays import Bool, Float64, Int64
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
    rows : np.ndarray [shape=(notes,)]
        Row of each note in the truth.
    """

    patch: Int64
    first_frame: Int64
    end_frame: Int64
    pitch: Int64
    struck: Bool
    rows: Int64


def place_notes(truth: TruthArray, patches: PatchGrid, frames: FrameGrid) -> PlacedNotes:
    """Place notes on the grids, without those outside either grid."""
    patch = patches.index((truth["x0"] + truth["x1"]) / 2, (truth["y0"] + truth["y1"]) / 2)
    first = frames.index(truth["onset_sec"])
    end = np.ceil((truth["offset_sec"] - frames.start_sec) / frames.frame_sec - 1e-6).astype(np.int64)
    end = np.clip(end, first + 1, len(frames))
    inside = (patch >= 0) & (first >= 0)
    notes = truth[inside]
    return PlacedNotes(
        patch[inside],
        first[inside],
        end[inside],
        notes["pitch"].astype(np.int64),
        notes["struck"],
        np.flatnonzero(inside),
    )


def sounding_patches(truth: TruthArray, patches: PatchGrid, frames: FrameGrid) -> Bool:
    """Return which patches are right for which frame, up to the last note [shape=(N, M'), M' <= M].

    The paper's rule: a time t lies in frame floor(t / frame), and a note sounds from the frame of its onset up
    to, but not including, that of its end. A frame in which nothing sounds takes the patch of the note that
    begins or ends nearest to it; of equally near ones, the patch that comes first.
    """
    notes = place_notes(truth, patches, frames)
    ends = _frame_of(truth["offset_sec"], frames)[notes.rows]
    end = np.clip(ends, notes.first_frame, len(frames))
    right = np.zeros((len(patches), int(end.max(initial=0))), dtype=np.bool_)
    for patch, first, last in zip(notes.patch, notes.first_frame, end, strict=True):
        right[patch, first:last] = True
    silent = np.flatnonzero(~right.any(axis=0))
    if silent.size:
        by_patch = np.argsort(notes.patch, kind="stable")
        first, last = notes.first_frame[by_patch], end[by_patch]
        away = np.minimum(np.abs(silent[:, None] - first), np.abs(silent[:, None] - last))  # (silent, notes)
        right[notes.patch[by_patch][away.argmin(axis=1)], silent] = True
    return right


def _frame_of(seconds: Float64, frames: FrameGrid) -> Int64:
    """Return floor(t / frame), also for times outside the grid; forgiving by a millionth of a frame."""
    place = (np.asarray(seconds, np.float64) - frames.start_sec) / frames.frame_sec
    return np.asarray(np.floor(place + 1e-6), dtype=np.int64)
