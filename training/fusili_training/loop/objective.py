"""What a recipe minimises: the contrastive loss, and the terms of local supervision added to it.

The model and its losses form one module, so everything that a step computes is inside the forward pass that
DistributedDataParallel wraps.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from fusili_training.backbones.precision import full_precision
from fusili_training.loop.recipe import LossOptions
from fusili_training.losses.gather import gather, gather_embeddings
from fusili_training.losses.local_similarity import choose_local_similarity
from fusili_training.losses.losses import ContrastiveLoss, info_nce
from fusili_training.losses.negative_memory import NegativeMemory
from fusili_training.model.embeddings import Embeddings
from fusili_training.model.model import FusiliModel, PairOutput
from fusili_training.model.prototype_pooling import PrototypePooling
from fusili_training.model.supervision import alignment_loss
from fusili_training.model.targets import DenseTargets

__all__ = ["TERMS", "Objective", "StepOutput"]

TERMS = ("local", "global", "alignment", "notes")


@dataclass(frozen=True)
class StepOutput:
    """The loss of a batch.

    Attributes
    ----------
    loss : Tensor [shape=()]
        The loss to minimise.
    terms : dict
        Its terms by name, before weighting; see `TERMS`.
    encoded : PairOutput
        The encoded batch.
    """

    loss: Tensor
    terms: dict[str, Tensor]
    encoded: PairOutput


class Objective(nn.Module):
    """A model and the loss it is trained with.

    Parameters
    ----------
    model : FusiliModel
    options : LossOptions
    global_only : bool
        Whether to compute the global loss only, whatever the options say. With pooling by prototypes, the memory
        then holds features instead of embeddings: they stay valid while the pooling is trained, and every step
        learns from all pairs in the memory.
    """

    def __init__(self, model: FusiliModel, options: LossOptions, global_only: bool = False) -> None:
        super().__init__()
        self.model = model
        self.options = options
        self.global_only = global_only
        self.contrastive = ContrastiveLoss(
            0.0 if global_only else options.alpha,
            choose_local_similarity(
                options.local_similarity, options.sinkhorn_iterations, model.audio.geometry.frame_repeats
            ),
        )
        self.memory = None
        if options.memory:
            n_values = model.image.embedding_dim
            if global_only and model.pooling is not None:
                n_values = model.pooling.n_features
            self.memory = NegativeMemory(options.memory, n_values).to(model.logit_scale_global.device)
        if options.alpha > 0 or not options.trains_local_heads:
            model.freeze_unused(options.alpha)

    def forward(
        self,
        images: Tensor,
        waveforms: Tensor,
        is_original: Tensor | None = None,
        targets: DenseTargets | None = None,
        numbers: Tensor | None = None,
        own_frames: Tensor | None = None,
    ) -> StepOutput:
        """Return the loss of a batch.

        Parameters
        ----------
        images : Tensor [shape=(B, S, height, width)]
            0 is ink, 1 is paper.
        waveforms : Tensor [shape=(B, n_samples)]
            Padded with zeros.
        is_original : Tensor of bool [shape=(B,)], optional
            False for pairs that serve as negatives only.
        targets : DenseTargets, optional
            Targets of local supervision; required there, unused otherwise.
        numbers : Tensor of int64 [shape=(B,)], optional
            Numbers of the pairs, see `fusili_training.losses.negative_memory.pair_numbers`. With them, the step
            uses the memory, adds to it, and updates the statistics of pooling. None in validation.
        own_frames : Tensor of bool [shape=(B, M)], optional
            False where other segments are heard: the local similarity and the losses of notes leave such frames
            out. They are wrong answers where a patch looks for its frame.
        """
        encoded = self.model(images, waveforms)
        pooling = self.model.pooling
        if numbers is not None and pooling is not None:
            is_first = int(pooling.n_followed) == 0
            features = self._describe(pooling, encoded)
            if self.global_only and self.memory is not None:
                self.memory.remember(*features, gather(numbers))
                term = self._memory_loss(pooling, self.memory, encoded.global_scale)
                return StepOutput(term, {"global": term}, encoded)
            if is_first:  # the batch was pooled before there were any statistics
                encoded = self.model(images, waveforms)
        own = _only_own(encoded.recordings, own_frames)
        contrast = self.contrastive(
            encoded.images,
            own,
            encoded.local_scale,
            encoded.global_scale,
            is_original,
            self.memory,
            numbers,
        )
        loss = contrast.total
        terms = {"local": contrast.local_term, "global": contrast.global_term}
        if targets is not None and not self.global_only:
            for name, weight, term in self._supervise(encoded, own.mask, targets):
                terms[name] = term
                loss = loss + weight * term
        return StepOutput(loss, {name: term for name, term in terms.items() if term is not None}, encoded)

    @torch.no_grad()
    def _describe(self, pooling: PrototypePooling, encoded: PairOutput) -> tuple[Tensor, Tensor]:
        """Return the features [shape=(B, n_features)] of the images and recordings of all ranks.

        They also update the statistics of pooling. On top of a trained model, the first batch provides the
        prototypes.
        """
        patches, mask = encoded.patches, encoded.image_tokens.mask
        if self.global_only and int(pooling.n_followed) == 0:
            everyone = gather_embeddings(Embeddings(patches, mask, encoded.images.pooled))
            pooling.begin_with(everyone.local, everyone.mask)
        images = gather(pooling.describe(patches, mask))
        recordings = gather(pooling.describe(encoded.recordings.local, encoded.recordings.mask))
        pooling.follow(images, recordings)
        return images, recordings

    @staticmethod
    def _memory_loss(pooling: PrototypePooling, memory: NegativeMemory, scale: Tensor) -> Tensor:
        """Return the global loss of all remembered pairs, the same on every rank."""
        n_filled = memory.n_filled
        with full_precision(memory.images.device):
            images = pooling.project(memory.images[:n_filled].clone(), "image")
            recordings = pooling.project(memory.recordings[:n_filled].clone(), "audio")
            similarities = scale * images @ recordings.T
        numbers = memory.numbers[:n_filled]
        comes_back = (numbers[:, None] == numbers).fill_diagonal_(False)
        return info_nce(similarities.masked_fill(comes_back, -torch.inf))

    def _supervise(
        self, encoded: PairOutput, own_frames: Tensor | None, targets: DenseTargets
    ) -> Iterator[tuple[str, float, Tensor]]:
        """Yield the name, weight and value of each term of local supervision."""
        masks = encoded.image_tokens.mask, encoded.audio_tokens.mask
        if self.options.alignment_weight > 0:
            frames = encoded.recordings.local
            term = alignment_loss(encoded.patches, frames, encoded.local_scale, targets.alignment, *masks)
            yield "alignment", self.options.alignment_weight, term
        if self.model.note_heads is not None:
            tokens = encoded.image_tokens.local, encoded.audio_tokens.local
            term = self.model.note_heads(*tokens, targets.notes, masks[0], own_frames)
            yield "notes", self.options.note_weight, term


def _only_own(recordings: Embeddings, own_frames: Tensor | None) -> Embeddings:
    """Mask the frames in which other segments are heard, but never all frames of a recording."""
    if own_frames is None:
        return recordings
    heard = torch.ones_like(own_frames) if recordings.mask is None else recordings.mask
    own = heard & own_frames
    return replace(recordings, mask=torch.where(own.any(dim=1, keepdim=True), own, heard))
