"""The targets of local supervision: the truth about segments as tensors on the grids of a model."""

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
    """The targets of a batch.

    Attributes
    ----------
    alignment : Tensor [shape=(B, N, M)]
        Weight with which a patch belongs to a frame: 1 where a note begins, halved every `recency_sec` while it
        is held. 0 for padding, silent frames and patches without a note head.
    notes : NoteTargets
        Pitches that lie in a patch, sound in a frame, and begin in a frame.
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
    """Shorten notes by half a frame at both ends: they then overlap the frames in whose middle they sound."""
    shortened = truth.copy()
    shortened["onset_sec"] += frame_sec / 2
    shortened["offset_sec"] -= frame_sec / 2
    return shortened


def dense_targets(
    truths: Sequence[TruthArray], patches: PatchGrid, frames: FrameGrid, recency_sec: float
) -> DenseTargets:
    """Return the targets of a batch whose segments are padded to the same grids.

    A note sounds in a frame if it sounds in the middle of the frame, so a model learns to turn to a note exactly
    when it begins.

    Parameters
    ----------
    truths : sequence of TruthArray [shape=(notes,)]
        Truth of each item.
    patches, frames : PatchGrid, FrameGrid
        Grids of the padded images and waveforms.
    recency_sec : float
        Half-life of the weight of a held note.
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
