"""From the truth about a segment, its notes' boxes and times, to what is right on the grids of a model.

A truth has a row for each note head, see `fusili_training.truth`. A head lies in the patch that holds its centre,
and sounds in every frame that overlaps its time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from fusili_mir.arrays import Bool, Int64
from fusili_mir.geometry import FrameGrid, PatchGrid
from fusili_training.model.supervision import LOWEST_PITCH, N_PITCHES, NoteTargets
from fusili_training.truth import TruthArray

__all__ = ["DenseTargets", "PlacedNotes", "dense_targets", "place_notes", "sounding_patches"]


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
        False for a head that only goes on with a tied note.
    """

    patch: Int64
    first_frame: Int64
    end_frame: Int64
    pitch: Int64
    struck: Bool


def place_notes(truth: TruthArray, patches: PatchGrid, frames: FrameGrid) -> PlacedNotes:
    """Place notes on the grids; notes outside either grid are left out."""
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
    """Say which patches are right for which frame, up to the last note [shape=(N, M'), M' <= M].

    A frame in which nothing sounds takes the patches of the nearest frame in which something does, of the
    earlier one when both are as near.
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


@dataclass(frozen=True)
class DenseTargets:
    """What local supervision asks of a batch.

    Attributes
    ----------
    alignment : Tensor [shape=(B, N, M)]
        How much a patch belongs to a frame: 1 where a note begins, half of it every `recency_sec` that the note
        is held on. Padding, frames of silence and patches without a note head are 0 throughout.
    notes : NoteTargets
        Which pitches lie in a patch, sound in a frame, and begin in a frame.
    """

    alignment: Tensor
    notes: NoteTargets

    def to(self, device: torch.device) -> DenseTargets:
        """Return the targets on a device."""
        notes = NoteTargets(
            self.notes.patch_pitches.to(device, non_blocking=True),
            self.notes.frame_pitches.to(device, non_blocking=True),
            self.notes.frame_onsets.to(device, non_blocking=True),
        )
        return DenseTargets(self.alignment.to(device, non_blocking=True), notes)


def _heard_in_the_middle(truth: TruthArray, frame_sec: float) -> TruthArray:
    """Shorten notes at both ends, so that they overlap the frames in whose middle they sound."""
    shortened = truth.copy()
    shortened["onset_sec"] += frame_sec / 2
    shortened["offset_sec"] -= frame_sec / 2
    return shortened


def dense_targets(
    truths: Sequence[TruthArray], patches: PatchGrid, frames: FrameGrid, recency_sec: float
) -> DenseTargets:
    """Return the targets of a batch, all of whose segments have been padded to the same grids.

    What sounds in a frame is what sounds in its middle: a model that learns this turns to a note when it begins,
    neither earlier nor later.

    Parameters
    ----------
    truths : sequence of TruthArray [shape=(notes,)]
        One an item.
    patches, frames : PatchGrid, FrameGrid
        Of the padded images and waveforms.
    recency_sec : float
        Half-life of a held note's weight.
    """
    batch, n_patches, n_frames = len(truths), len(patches), len(frames)
    alignment = np.zeros((batch, n_patches, n_frames), dtype=np.float32)
    patch_pitches = np.zeros((batch, n_patches, N_PITCHES), dtype=np.bool_)
    frame_pitches = np.zeros((batch, n_frames, N_PITCHES), dtype=np.bool_)
    frame_onsets = np.zeros((batch, n_frames, N_PITCHES), dtype=np.bool_)
    fading = 0.5 ** (np.arange(n_frames, dtype=np.float32) * frames.frame_sec / recency_sec)
    for item, truth in enumerate(truths):
        notes = place_notes(_heard_in_the_middle(truth, frames.frame_sec), patches, frames)
        keys = notes.pitch - LOWEST_PITCH
        for patch, first, end, key, struck in zip(
            notes.patch, notes.first_frame, notes.end_frame, keys, notes.struck, strict=True
        ):
            held = alignment[item, patch, first:end]
            np.maximum(held, fading[: end - first], out=held)
            if 0 <= key < N_PITCHES:
                patch_pitches[item, patch, key] = True
                frame_pitches[item, first:end, key] = True
                frame_onsets[item, first, key] |= struck
    notes_targets = NoteTargets(*map(torch.from_numpy, (patch_pitches, frame_pitches, frame_onsets)))
    return DenseTargets(torch.from_numpy(alignment), notes_targets)
