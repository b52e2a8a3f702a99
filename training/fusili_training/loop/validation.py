"""Validating a model between steps: its loss and its local top-1 on the validation pairs.

The two are combined in one number, ``ln(top-1) - loss``, which decides the best checkpoint and early stopping.
Both parts are log-probabilities of a right answer (a frame finds its patch; a segment finds its partner), so they
can be added without a weight.
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
from fusili_training.loop.distributed import ProcessRanks
from fusili_training.loop.feeding import prepare
from fusili_training.loop.objective import Objective
from fusili_training.loop.precision import autocast
from fusili_training.loop.recipe import Recipe
from fusili_training.model.model import PairOutput
from fusili_training.placed_notes import sounding_patches
from fusili_training.truth import TruthArray

__all__ = ["FrameHits", "Validation", "count_hits", "local_similarities", "validate"]

_LEAST_TOP1 = 1e-6  # keeps the logarithm finite


@dataclass(frozen=True)
class Validation:
    """The result of one validation.

    Attributes
    ----------
    loss : float
        Training loss, averaged over the validation batches.
    local_top1 : float
        Share of the audio frames, up to the last note of each segment, whose most similar patch is a right one.
    """

    loss: float
    local_top1: float

    @property
    def joint(self) -> float:
        """``ln(top-1) - loss``; larger is better."""
        return math.log(max(self.local_top1, _LEAST_TOP1)) - self.loss


@dataclass(frozen=True)
class FrameHits:
    """The number of frames, and how many of them found a right patch."""

    n_right: int
    n_frames: int


def local_similarities(objective: Objective, encoded: PairOutput) -> Tensor:
    """Return the similarity matrix of each pair [shape=(B, N, M)], with -inf for padded patches.

    If the local heads were never trained, the global heads are used instead, as in the paper. All is computed in
    float32, also for tokens that were encoded under autocast.
    """
    if objective.options.trains_local_heads:
        patches, frames = encoded.patches, encoded.recordings.local
    else:
        model = objective.model
        patches, frames = (
            functional.normalize(tower.project_tokens_globally(tokens.local.float()), dim=-1)
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
        Similarity matrix of one pair.
    truth : TruthArray [shape=(notes,)]
        Truth of the pair.
    patches, frames : PatchGrid, FrameGrid
        Grids of the N patches and M frames.
    frame_repeats : int
        How many frames of the paper's protocol each of the M frames stands for; the protocol's frames are
        counted.
    """
    protocol = FrameGrid(len(frames) * frame_repeats, frames.frame_sec / frame_repeats, frames.start_sec)
    right = sounding_patches(truth, patches, protocol)
    chosen = similarity.argmax(axis=0).repeat(frame_repeats)[: right.shape[1]]
    return FrameHits(int(right[chosen, np.arange(right.shape[1])].sum()), right.shape[1])


@torch.no_grad()
def validate(
    objective: Objective,
    batches: Iterable[Batch],
    recipe: Recipe,
    ranks: ProcessRanks,
    local_batches: Iterable[Batch] | None = None,
) -> Validation:
    """Validate a model on the validation batches of all ranks.

    Parameters
    ----------
    objective : Objective
    batches : iterable of Batch
        This rank's part of the batches; every rank must have the same number, at least one.
    recipe : Recipe
    ranks : ProcessRanks
    local_batches : iterable of Batch, optional
        This rank's part of the batches that give the local top-1, any number; by default `batches` give it.
    """
    model = objective.model
    was_training = objective.training
    objective.eval()
    sums = torch.zeros(4, dtype=torch.float64)  # losses, batches, right frames, frames
    for batch in batches:
        inputs = prepare(batch, model, recipe, ranks.device)
        with autocast(recipe.training, ranks.device):
            output = objective(inputs.images, inputs.waveforms, inputs.is_original, inputs.targets)
        hits = FrameHits(0, 0) if local_batches is not None else _hits(objective, batch, output.encoded)
        sums += torch.tensor([output.loss.item(), 1, hits.n_right, hits.n_frames], dtype=torch.float64)
    for batch in local_batches or ():
        inputs = prepare(batch, model, recipe, ranks.device)
        with autocast(recipe.training, ranks.device):
            encoded = model(inputs.images, inputs.waveforms)
        hits = _hits(objective, batch, encoded)
        sums += torch.tensor([0, 0, hits.n_right, hits.n_frames], dtype=torch.float64)
    objective.train(was_training)
    losses, n_batches, n_right, n_frames = ranks.total(sums.to(ranks.device)).tolist()
    return Validation(losses / n_batches, n_right / max(1, n_frames))


def _hits(objective: Objective, batch: Batch, encoded: PairOutput) -> FrameHits:
    """Count the hits of all pairs of a batch."""
    image, audio = objective.model.image.geometry, objective.model.audio.geometry
    similarities = local_similarities(objective, encoded).float().cpu().numpy()
    patches = image.grid(batch.images.shape[3], batch.images.shape[1])
    frames = audio.grid(batch.waveforms.shape[1])
    hits = [
        count_hits(similarity, truth, patches, frames, audio.frame_repeats)
        for similarity, truth in zip(similarities, batch.truths, strict=True)
    ]
    return FrameHits(sum(hit.n_right for hit in hits), sum(hit.n_frames for hit in hits))
