"""The contrastive losses: symmetric InfoNCE on global and local scores, and their mixture."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from fusili_mir.errors import InputError
from fusili_training.losses.gather import gather, gather_embeddings
from fusili_training.losses.negative_memory import NegativeMemory, RememberedScores
from fusili_training.losses.scores import LocalScore
from fusili_training.model.embeddings import Embeddings

__all__ = ["ContrastiveLoss", "LossTerms", "info_nce"]


@dataclass(frozen=True)
class LossTerms:
    """The loss of a batch and the two terms it mixes; a term of weight 0 is not computed."""

    total: Tensor
    local_term: Tensor | None
    global_term: Tensor | None


def info_nce(
    scores: Tensor, is_original: Tensor | None = None, remembered: RememberedScores | None = None
) -> Tensor:
    """Return the symmetric InfoNCE loss of a score matrix.

    Parameters
    ----------
    scores : Tensor [shape=(B, B)]
        Image i against recording j, the scale already in them; the pairs are on the diagonal.
    is_original : Tensor of bool [shape=(B,)], optional
        False for mutants that serve as negatives only: they stay candidates for the originals, but their own
        rows (and, in the other direction, columns) are not scored.
    remembered : RememberedScores, optional
        The same B pairs against further candidates, none of which is a right one.

    Returns
    -------
    Tensor [shape=()]
        Mean of the image-to-audio and the audio-to-image cross-entropies.
    """
    if scores.ndim != 2 or scores.shape[0] != scores.shape[1]:
        raise InputError(f"scores of shape {tuple(scores.shape)} have no diagonal; expected (B, B)")
    targets = torch.arange(len(scores), device=scores.device)
    if is_original is not None:
        targets = targets[is_original]
        if not len(targets):
            raise InputError("all items of the batch are mutants; expected at least one original to score")
    rows, columns = scores, scores.T
    if remembered is not None:
        rows = torch.cat([rows, remembered.image_to_audio], dim=1)
        columns = torch.cat([columns, remembered.audio_to_image], dim=1)
    image_to_audio = functional.cross_entropy(rows[targets], targets)
    audio_to_image = functional.cross_entropy(columns[targets], targets)
    return (image_to_audio + audio_to_image) / 2


@dataclass(frozen=True)
class ContrastiveLoss:
    """``alpha * L_local + (1 - alpha) * L_global`` on the global batch of all ranks.

    A rank scores its own images against the recordings of all ranks and gathers the rows of scores, so that
    no pair is scored twice. With a memory the global loss has its pairs as candidates, too, and it remembers the
    batch afterwards.

    Attributes
    ----------
    alpha : float
        Weight of the local loss, within [0, 1].
    local_score : LocalScore
        See `fusili_training.losses.scores.choose_local_score`.
    """

    alpha: float
    local_score: LocalScore

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
        """Return the loss of a batch of pairs.

        Parameters
        ----------
        images, recordings : Embeddings
            This rank's part of the batch; item i of the one belongs to item i of the other.
        local_scale, global_scale : Tensor [shape=()]
            ``exp(logit_scale)`` of the two scores.
        is_original : Tensor of bool [shape=(B,)], optional
            See `info_nce`; this rank's part.
        memory : NegativeMemory, optional
            Of earlier batches.
        numbers : Tensor of int64 [shape=(B,)], optional
            Of this rank's pairs, see `fusili_training.losses.negative_memory.pair_numbers`; without them the
            memory takes no part.
        """
        everyone = gather_embeddings(recordings)
        if is_original is not None:
            is_original = gather(is_original)
        local_term = global_term = None
        if self.alpha > 0:
            rows = self.local_score(images.local, everyone.local, local_scale, images.mask, everyone.mask)
            local_term = info_nce(gather(rows), is_original)
        if self.alpha < 1:
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
) -> RememberedScores | None:
    """Return the scores of the pairs of all ranks; each rank compares its own."""
    own = memory.compare(images, recordings, numbers, scale)
    return None if own is None else RememberedScores(gather(own.image_to_audio), gather(own.audio_to_image))
