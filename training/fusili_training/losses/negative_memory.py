"""A memory of global embeddings: the pairs of the latest steps as further candidates for the global loss.

Batches that a CPU can afford hold few candidates. The embeddings of earlier batches are there already, and they
are nearly those that the current model would give (the cross-batch memory of Wang et al., 2020).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from fusili_training.backbones.precision import full_precision

__all__ = ["NegativeMemory", "RememberedSimilarities", "pair_numbers"]


@dataclass(frozen=True)
class RememberedSimilarities:
    """Scaled similarities of B pairs to the Q pairs of a memory.

    Attributes
    ----------
    image_to_audio : Tensor [shape=(B, Q)]
        Similarities of the images to the remembered recordings.
    audio_to_image : Tensor [shape=(B, Q)]
        Similarities of the recordings to the remembered images.
    """

    image_to_audio: Tensor
    audio_to_image: Tensor


class NegativeMemory(nn.Module):
    """The global embeddings of the latest pairs, without gradients.

    All ranks of a run remember the same pairs.

    Attributes
    ----------
    images, recordings : Tensor [shape=(size, d)]
        Global embeddings; only the first ``n_filled`` rows are in use.
    numbers : Tensor of int64 [shape=(size,)]
        Numbers of the pairs, see `pair_numbers`.
    n_seen : Tensor of int64 [shape=()]
        Number of pairs ever remembered, including those forgotten since.
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
        """Number of pairs in the memory."""
        return min(int(self.n_seen), len(self.numbers))

    def compare(
        self, images: Tensor, recordings: Tensor, numbers: Tensor, scale: Tensor
    ) -> RememberedSimilarities | None:
        """Compare pairs [shape=(B, d), (B, d)] with the memory; return None while the memory is empty.

        A pair is no candidate for itself: a remembered pair with the same number has a similarity of -inf.
        """
        n_filled = self.n_filled
        if n_filled == 0:
            return None
        is_same = numbers[:, None] == self.numbers[None, :n_filled]
        # Copies: the backward pass needs the embeddings compared here, and by then the memory has changed.
        held_images, held_recordings = self.images[:n_filled].clone(), self.recordings[:n_filled].clone()
        with full_precision(images.device):
            to_audio = scale * images.float() @ held_recordings.T
            to_image = scale * recordings.float() @ held_images.T
        return RememberedSimilarities(
            to_audio.masked_fill(is_same, -torch.inf), to_image.masked_fill(is_same, -torch.inf)
        )

    @torch.no_grad()
    def remember(self, images: Tensor, recordings: Tensor, numbers: Tensor) -> None:
        """Replace the oldest pairs by the pairs of all ranks [shape=(B, d), (B, d), (B,)]."""
        size = len(self.numbers)
        places = (self.n_seen + torch.arange(len(numbers), device=numbers.device))[-size:] % size
        self.images[places] = images[-size:].to(self.images.dtype)
        self.recordings[places] = recordings[-size:].to(self.recordings.dtype)
        self.numbers[places] = numbers[-size:]
        self.n_seen += len(numbers)


def pair_numbers(keys: Iterable[str]) -> Tensor:
    """Return a number for each key [shape=(B,)]; the same key has the same number in every process and run."""
    digests = [hashlib.blake2b(key.encode(), digest_size=8).digest() for key in keys]
    return torch.tensor([int.from_bytes(digest, "big", signed=True) for digest in digests])
