"""The contrastive losses: symmetric InfoNCE on global and local similarities, and their mixture."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from fusili_mir.errors import InputError
from fusili_training.backbones.precision import full_precision
from fusili_training.losses.gather import gather, gather_embeddings
from fusili_training.losses.local_similarity import LocalSimilarity
from fusili_training.losses.negative_memory import NegativeMemory, RememberedSimilarities
from fusili_training.model.embeddings import Embeddings

__all__ = ["ContrastiveLoss", "LossTerms", "info_nce"]


@dataclass(frozen=True)
class LossTerms:
    """The loss of a batch and the two terms it mixes; a term of weight 0 is None."""

    total: Tensor
    local_term: Tensor | None
    global_term: Tensor | None


def info_nce(
    similarities: Tensor, is_original: Tensor | None = None, remembered: RememberedSimilarities | None = None
) -> Tensor:
    """Return the symmetric InfoNCE loss of a matrix of pair similarities.

    Parameters
    ----------
    similarities : Tensor [shape=(B, B)]
        Similarity of image i to recording j, already scaled; the true pairs are on the diagonal.
    is_original : Tensor of bool [shape=(B,)], optional
        False for mutants that serve as negatives only: they are candidates for the originals, but their own
        rows (and, in the other direction, columns) do not count.
    remembered : RememberedSimilarities, optional
        The same B pairs against further candidates, all of them wrong.

    Returns
    -------
    Tensor [shape=()]
        Mean of the image-to-audio and the audio-to-image cross-entropies.
    """
    if similarities.ndim != 2 or similarities.shape[0] != similarities.shape[1]:
        raise InputError(f"the similarities have shape {tuple(similarities.shape)}; expected (B, B)")
    targets = torch.arange(len(similarities), device=similarities.device)
    if is_original is not None:
        targets = targets[is_original]
        if not len(targets):
            raise InputError("all items of the batch are mutants; expected at least one original")
    rows, columns = similarities, similarities.T
    if remembered is not None:
        rows = torch.cat([rows, remembered.image_to_audio], dim=1)
        columns = torch.cat([columns, remembered.audio_to_image], dim=1)
    image_to_audio = functional.cross_entropy(rows[targets], targets)
    audio_to_image = functional.cross_entropy(columns[targets], targets)
    return (image_to_audio + audio_to_image) / 2


@dataclass(frozen=True)
class ContrastiveLoss:
    """``alpha * L_local + (1 - alpha) * L_global`` on the global batch of all ranks.

    Each rank compares its own images with the recordings of all ranks and gathers the rows of similarities, so no
    pair is compared twice. With a memory, the global loss also has the remembered pairs as candidates, and the
    memory then takes in the batch.

    Attributes
    ----------
    alpha : float
        Weight of the local loss, within [0, 1].
    local_similarity : LocalSimilarity
        How images and recordings are compared; see
        `fusili_training.losses.local_similarity.choose_local_similarity`.
    """

    alpha: float
    local_similarity: LocalSimilarity

    def __post_init__(self) -> None:
        if not 0 <= self.alpha <= 1:
            raise InputError(
                f"alpha is {self.alpha}; expected a weight within [0, 1]"
                " (0: global loss only, 1: local loss only)"
            )

    def __call__(
        self,
        images: Embeddings,
        recordings: Embeddings,
        local_scale: Tensor,
        global_scale: Tensor,
        is_original: Tensor | None = None,
        memory: NegativeMemory | None = None,
        numbers: Tensor | None = None,
    ) -> LossTerms:
        """Return the loss of a batch of pairs, computed in float32 also under autocast.

        Parameters
        ----------
        images, recordings : Embeddings
            This rank's part of the batch; image i and recording i are a pair.
        local_scale, global_scale : Tensor [shape=()]
            ``exp(logit_scale)`` of the two similarities.
        is_original : Tensor of bool [shape=(B,)], optional
            This rank's part; see `info_nce`.
        memory : NegativeMemory, optional
            Pairs of earlier batches.
        numbers : Tensor of int64 [shape=(B,)], optional
            Numbers of this rank's pairs, see `fusili_training.losses.negative_memory.pair_numbers`; without them
            the memory is not used.
        """
        everyone = gather_embeddings(recordings)
        if is_original is not None:
            is_original = gather(is_original)
        local_term = global_term = None
        if self.alpha > 0:
            rows = self.local_similarity(
                images.local, everyone.local, local_scale, images.mask, everyone.mask
            )
            local_term = info_nce(gather(rows), is_original)
        if self.alpha < 1:
            with full_precision(images.pooled.device):
                rows = global_scale * images.pooled.float() @ everyone.pooled.float().T
            remembered = None
            if memory is not None and numbers is not None:
                remembered = _recall(memory, images.pooled, recordings.pooled, numbers, global_scale)
                memory.remember(gather(images.pooled.detach()), everyone.pooled.detach(), gather(numbers))
            global_term = info_nce(gather(rows), is_original, remembered)
        if local_term is None or global_term is None:
            total = global_term if local_term is None else local_term
            assert total is not None  # noqa: S101 (alpha is within [0, 1])
            return LossTerms(total, local_term, global_term)
        return LossTerms(self.alpha * local_term + (1 - self.alpha) * global_term, local_term, global_term)


def _recall(
    memory: NegativeMemory, images: Tensor, recordings: Tensor, numbers: Tensor, scale: Tensor
) -> RememberedSimilarities | None:
    """Return the similarities to the memory of the pairs of all ranks; each rank compares its own pairs."""
    own = memory.compare(images, recordings, numbers, scale)
    return (
        None
        if own is None
        else RememberedSimilarities(gather(own.image_to_audio), gather(own.audio_to_image))
    )
