"""A memory of global embeddings: the pairs of the latest steps, as further candidates of the global loss.

Batches that a CPU can afford hold few candidates. The embeddings of earlier batches cost nothing more and are
nearly what the model of this step would give (the cross-batch memory of Wang et al., 2020).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

__all__ = ["NegativeMemory", "RememberedScores", "pair_numbers"]


@dataclass(frozen=True)
class RememberedScores:
    """B pairs against the Q pairs of a memory, the scale already in the scores.

    Attributes
    ----------
    image_to_audio : Tensor [shape=(B, Q)]
        The images against remembered recordings.
    audio_to_image : Tensor [shape=(B, Q)]
        The recordings against remembered images.
    """

    image_to_audio: Tensor
    audio_to_image: Tensor


class NegativeMemory(nn.Module):
    """The global embeddings of the latest pairs, without their gradients.

    All ranks of a run remember the same pairs.

    Attributes
    ----------
    images, recordings : Tensor [shape=(size, d)]
        Global embeddings; the first ``n_filled`` are there.
    numbers : Tensor of int64 [shape=(size,)]
        Of their pairs, see `pair_numbers`.
    n_seen : Tensor of int64 [shape=()]
        Pairs remembered so far, those forgotten since among them.
    """

    images: Tensor
    recordings: Tensor
    numbers: Tensor
    n_seen: Tensor

    def __init__(self, size: int, embedding_dim: int) -> None:
        super().__init__()
        self.register_buffer("images", torch.zeros(size, embedding_dim))
        self.register_buffer("recordings", torch.zeros(size, embedding_dim))
        self.register_buffer("numbers", torch.zeros(size, dtype=torch.int64))
        self.register_buffer("n_seen", torch.zeros((), dtype=torch.int64))

    @property
    def n_filled(self) -> int:
        """How many pairs it holds."""
        return min(int(self.n_seen), len(self.numbers))

    def compare(
        self, images: Tensor, recordings: Tensor, numbers: Tensor, scale: Tensor
    ) -> RememberedScores | None:
        """Compare pairs [shape=(B, d), (B, d)] with those it holds; None as long as it holds none.

        A pair is no candidate for itself: what it holds of the same `numbers` [shape=(B,)] scores -inf.
        """
        n_filled = self.n_filled
        if n_filled == 0:
            return None
        is_same = numbers[:, None] == self.numbers[None, :n_filled]
        # Copies: the backward pass needs what was compared, and by then the memory has gone on.
        held_images, held_recordings = self.images[:n_filled].clone(), self.recordings[:n_filled].clone()
        return RememberedScores(
            (scale * images.float() @ held_recordings.T).masked_fill(is_same, -torch.inf),
            (scale * recordings.float() @ held_images.T).masked_fill(is_same, -torch.inf),
        )

    @torch.no_grad()
    def remember(self, images: Tensor, recordings: Tensor, numbers: Tensor) -> None:
        """Put the pairs of all ranks [shape=(B, d), (B, d), (B,)] in the place of the oldest."""
        size = len(self.numbers)
        places = (self.n_seen + torch.arange(len(numbers), device=numbers.device))[-size:] % size
        self.images[places] = images[-size:].to(self.images.dtype)
        self.recordings[places] = recordings[-size:].to(self.recordings.dtype)
        self.numbers[places] = numbers[-size:]
        self.n_seen += len(numbers)


def pair_numbers(keys: Iterable[str]) -> Tensor:
    """Return a number for each key [shape=(B,)], the same in every process and every run."""
    digests = [hashlib.blake2b(key.encode(), digest_size=8).digest() for key in keys]
    return torch.tensor([int.from_bytes(digest, "big", signed=True) for digest in digests])
