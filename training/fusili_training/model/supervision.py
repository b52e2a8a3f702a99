"""Local supervision: loss terms from the renderer's truth, added to the contrastive loss.

The renderer knows where each note head lies and when its note sounds. This gives a dense target, which patch
belongs to which frame, and targets for the pitches in a patch and in a frame. The heads that predict pitches are
used in training only.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from fusili_mir.errors import InputError
from fusili_training.backbones.precision import full_precision
from fusili_training.pitches import N_PITCHES

__all__ = ["NoteHeads", "NoteTargets", "alignment_loss"]


def alignment_loss(
    patches: Tensor,
    frames: Tensor,
    scale: Tensor,
    targets: Tensor,
    patch_mask: Tensor | None = None,
    frame_mask: Tensor | None = None,
) -> Tensor:
    """Return the cross-entropy between each pair's similarity matrix and its true alignment, in both directions.

    Parameters
    ----------
    patches : Tensor [shape=(B, N, d)]
        L2-normalised patch embeddings.
    frames : Tensor [shape=(B, M, d)]
        L2-normalised frame embeddings of the same pairs.
    scale : Tensor [shape=()]
        Inverse temperature.
    targets : Tensor [shape=(B, N, M)]
        Weight with which a patch belongs to a frame, at least 0. Rows and columns without any weight do not
        count.
    patch_mask, frame_mask : Tensor of bool [shape=(B, N), (B, M)], optional
        False for padding.

    Returns
    -------
    Tensor [shape=()]
        Mean of the frame-to-patch and the patch-to-frame cross-entropies; 0 when nothing has a target.
    """
    expected = (*patches.shape[:2], frames.shape[1])
    if targets.shape != expected:
        raise InputError(f"the targets have shape {tuple(targets.shape)}; expected (B, N, M) = {expected}")
    with full_precision(patches.device):
        logits = scale * patches.float() @ frames.float().transpose(1, 2)
    targets = targets.to(logits.dtype)
    if patch_mask is not None:
        targets = targets * patch_mask[:, :, None]
        logits = logits.masked_fill(~patch_mask[:, :, None], _NEVER)
    if frame_mask is not None:
        targets = targets * frame_mask[:, None]
        logits = logits.masked_fill(~frame_mask[:, None], _NEVER)
    to_patch = _cross_entropy(logits, targets, dim=1)
    to_frame = _cross_entropy(logits, targets, dim=2)
    return (to_patch + to_frame) / 2


_NEVER = -1e4  # finite, as a softmax over padding alone must not give NaN, in value or gradient


def _cross_entropy(logits: Tensor, targets: Tensor, dim: int) -> Tensor:
    """Return the mean cross-entropy of the slices along `dim` that have a target."""
    weight = targets.sum(dim=dim)
    counted = weight > 0
    entropy = -(targets * logits.log_softmax(dim=dim)).sum(dim=dim) / weight.clamp_min(1e-12)
    return (entropy * counted).sum() / counted.sum().clamp_min(1)


@dataclass(frozen=True)
class NoteTargets:
    """Presence of each pitch, 0 or 1; index 0 is `fusili_training.pitches.LOWEST_PITCH`.

    Attributes
    ----------
    patch_pitches : Tensor [shape=(B, N, 88)]
        Pitches with a note head in the patch.
    frame_pitches : Tensor [shape=(B, M, 88)]
        Pitches that sound in the frame.
    frame_onsets : Tensor [shape=(B, M, 88)]
        Pitches that begin in the frame.
    """

    patch_pitches: Tensor
    frame_pitches: Tensor
    frame_onsets: Tensor


class NoteHeads(nn.Module):
    """Predicts pitches from patch and frame features.

    Parameters
    ----------
    image_width, audio_width : int
        Number of features of a patch token and of a frame token.
    positive_weight : float
        Weight of a present pitch relative to an absent one; few of the 88 are present.
    """

    def __init__(self, image_width: int, audio_width: int, positive_weight: float = 4.0) -> None:
        super().__init__()
        self.positive_weight = positive_weight
        self.patch_pitches = nn.Linear(image_width, N_PITCHES)
        self.frame_pitches = nn.Linear(audio_width, N_PITCHES)
        self.frame_onsets = nn.Linear(audio_width, N_PITCHES)
        for head in (self.patch_pitches, self.frame_pitches, self.frame_onsets):
            nn.init.constant_(head.bias, -3.0)  # most pitches are absent

    def forward(
        self,
        patch_features: Tensor,
        frame_features: Tensor,
        targets: NoteTargets,
        patch_mask: Tensor | None = None,
        frame_mask: Tensor | None = None,
    ) -> Tensor:
        """Return the sum of the three binary cross-entropies, each averaged over all pitches, without padding.

        Parameters
        ----------
        patch_features : Tensor [shape=(B, N, image_width)]
            Patch tokens of the image encoder.
        frame_features : Tensor [shape=(B, M, audio_width)]
            Frame tokens of the audio encoder.
        targets : NoteTargets
            The true pitches.
        patch_mask, frame_mask : Tensor of bool [shape=(B, N), (B, M)], optional
            False for padding.
        """
        return (
            self._loss(self.patch_pitches(patch_features), targets.patch_pitches, patch_mask)
            + self._loss(self.frame_pitches(frame_features), targets.frame_pitches, frame_mask)
            + self._loss(self.frame_onsets(frame_features), targets.frame_onsets, frame_mask)
        )

    def _loss(self, logits: Tensor, targets: Tensor, mask: Tensor | None) -> Tensor:
        if targets.shape != logits.shape:
            raise InputError(
                f"note targets have shape {tuple(targets.shape)}; expected {tuple(logits.shape)}"
            )
        logits = logits.float()
        entropy = functional.binary_cross_entropy_with_logits(
            logits,
            targets.to(logits.dtype),
            pos_weight=torch.full((), self.positive_weight, device=logits.device),
            reduction="none",
        ).mean(dim=2)
        if mask is None:
            return entropy.mean()
        return (entropy * mask).sum() / mask.sum().clamp_min(1)
