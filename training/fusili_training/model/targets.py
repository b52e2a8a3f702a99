"""What local supervision asks of a batch: the truth about its segments as tensors on the grids of a model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from fusili_mir.geometry import FrameGrid, PatchGrid
from fusili_training.model.supervision import NoteTargets
from fusili_training.pitches import LOWEST_PITCH, N_PITCHES
from fusili_training.placed_notes import place_notes
from fusili_training.truth import TruthArray

__all__ = ["DenseTargets", "dense_targets"]


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
