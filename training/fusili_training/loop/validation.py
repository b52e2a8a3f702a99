"""Judging a model between steps: its loss and its local top-1 on the validation pairs.

The two are joined in one number, by which the best checkpoint is chosen and a run is stopped early:
``ln(top-1) - loss``. Both halves are logarithms of how probable a right answer is, that of a frame for its patch
and that of a segment for its partner, so that neither has a unit.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from fusili_mir.arrays import Float32
from fusili_mir.geometry import FrameGrid, PatchGrid
from fusili_training.data.batch import Batch
from fusili_training.loop.distributed import Ranks
from fusili_training.loop.feeding import prepare
from fusili_training.loop.objective import Objective, patches_only
from fusili_training.loop.precision import autocast
from fusili_training.loop.recipe import Recipe
from fusili_training.model.model import PairOutput
from fusili_training.placed_notes import sounding_patches
from fusili_training.truth import TruthArray

__all__ = ["FrameHits", "Validation", "count_hits", "local_similarities", "validate"]

_LEAST_TOP1 = 1e-6  # a model that never hits is as bad as one that hits once in a million


@dataclass(frozen=True)
class Validation:
    """How good a model is.

    Attributes
    ----------
    loss : float
        Mean over the batches of what is minimised in training.
    local_top1 : float
        Share of audio frames, up to each segment's last note, whose most similar patch is a right one.
    """

    loss: float
    local_top1: float

    @property
    def joint(self) -> float:
        """The larger, the better."""
        return math.log(max(self.local_top1, _LEAST_TOP1)) - self.loss


@dataclass(frozen=True)
class FrameHits:
    """How many of so many frames were right."""

    n_right: int
    n_frames: int


def local_similarities(objective: Objective, encoded: PairOutput) -> Tensor:
    """Return each pair's similarity matrix [shape=(B, N, M)], padded patches at -inf.

    A model whose local heads were never trained is judged through its global ones, as in the paper.
    """
    if objective.options.trains_local_heads:
        patches, frames = patches_only(encoded), encoded.recordings.local
    else:
        model = objective.model
        patches, frames = (
            functional.normalize(tower.project_global(tokens.local).float(), dim=-1)
            for tower, tokens in ((model.image, encoded.image_tokens), (model.audio, encoded.audio_tokens))
        )
    similarities = patches @ frames.transpose(1, 2)
    if encoded.image_tokens.mask is not None:
        similarities = similarities.masked_fill(~encoded.image_tokens.mask[:, :, None], -torch.inf)
    return similarities


def count_hits(
    similarity: Float32,
    truth: TruthArray,
    patches: PatchGrid,
    frames: FrameGrid,
    frame_repeats: int = 1,
) -> FrameHits:
    """Count the frames whose most similar patch is a right one.

    Parameters
    ----------
    similarity : np.ndarray [shape=(N, M)]
        Of one pair.
    truth : TruthArray [shape=(notes,)]
        Of the pair.
    patches, frames : PatchGrid, FrameGrid
        Of the N patches and M frames.
    frame_repeats : int
        How many frames of the protocol, which are counted, one of the M stands for.
    """
    protocol = FrameGrid(len(frames) * frame_repeats, frames.frame_sec / frame_repeats, frames.start_sec)
    right = sounding_patches(truth, patches, protocol)
    chosen = similarity.argmax(axis=0).repeat(frame_repeats)[: right.shape[1]]
    return FrameHits(int(right[chosen, np.arange(right.shape[1])].sum()), right.shape[1])


@torch.no_grad()
def validate(objective: Objective, batches: Iterable[Batch], recipe: Recipe, ranks: Ranks) -> Validation:
    """Judge a model on this rank's validation batches and those of all others.

    Every rank must have the same number of them, at least one, and their truths.
    """
    model = objective.model
    was_training = objective.training
    objective.eval()
    sums = torch.zeros(4, dtype=torch.float64)  # losses, batches, right frames, frames
    for batch in batches:
        inputs = prepare(batch, model, recipe, ranks.device)
        with autocast(recipe.training, ranks.device):
            output = objective(inputs.images, inputs.waveforms, inputs.is_original, inputs.targets)
        similarities = local_similarities(objective, output.encoded).float().cpu().numpy()
        patches = model.image.geometry.grid(batch.images.shape[3], batch.images.shape[1])
        frames = model.audio.geometry.grid(batch.waveforms.shape[1])
        hits = [
            count_hits(similarity, truth, patches, frames, model.audio.geometry.frame_repeats)
            for similarity, truth in zip(similarities, batch.truths, strict=True)
        ]
        n_right, n_frames = sum(hit.n_right for hit in hits), sum(hit.n_frames for hit in hits)
        sums += torch.tensor([output.loss.item(), 1, n_right, n_frames], dtype=torch.float64)
    objective.train(was_training)
    losses, n_batches, n_right, n_frames = ranks.total(sums.to(ranks.device)).tolist()
    return Validation(losses / n_batches, n_right / max(1, n_frames))
