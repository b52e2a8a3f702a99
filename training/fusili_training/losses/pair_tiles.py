"""Splitting the B1 x B2 pairs of a batch into tiles, which are compared one after another."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

__all__ = ["PairTiling", "Tile"]

_ROWS_PER_BLOCK = 512  # patches in a block of images: enough for matrix products at full speed
_NUMBERS_PER_TILE_CPU = 1 << 19  # 2 MB of float32: a tile stays in the cache during all iterations
_NUMBERS_PER_TILE_GPU = 1 << 25


@dataclass(frozen=True)
class Tile:
    """The P pairs of some images with some recordings; all pairs of an image are adjacent."""

    images: slice
    recordings: slice

    def pairs(self, cosines: Tensor) -> Tensor:
        """Return a contiguous copy [shape=(P, N, M)] of this tile of the cosines [shape=(B1, N, B2, M)]."""
        n_patches, n_frames = cosines.shape[1], cosines.shape[3]
        tile = cosines[self.images, :, self.recordings].permute(0, 2, 1, 3)
        return tile.reshape(-1, n_patches, n_frames)

    def pair_indices(self, device: torch.device) -> tuple[Tensor, Tensor]:
        """Return the indices of the image and of the recording of each pair [shape=(P,)]."""
        images = torch.arange(self.images.start, self.images.stop, device=device)
        recordings = torch.arange(self.recordings.start, self.recordings.stop, device=device)
        return images.repeat_interleave(len(recordings)), recordings.repeat(len(images))


@dataclass(frozen=True)
class PairTiling:
    """Blocks of images, each split into tiles."""

    n_images: int
    n_recordings: int
    images_per_block: int
    recordings_per_tile: int

    @classmethod
    def choose(cls, patches: Tensor, frames: Tensor, pairs_per_tile: int | None = None) -> PairTiling:
        """Choose a tiling for patches (B1, N, d) and frames (B2, M, d).

        By default a tile is as large as the cache of a CPU allows, or large enough to keep a GPU busy.
        """
        n_images, n_patches = patches.shape[:2]
        n_recordings, n_frames = frames.shape[:2]
        if pairs_per_tile is None:
            numbers = _NUMBERS_PER_TILE_GPU if patches.is_cuda else _NUMBERS_PER_TILE_CPU
            pairs_per_tile = numbers // (n_patches * n_frames)
        images = min(n_images, max(1, pairs_per_tile), max(1, _ROWS_PER_BLOCK // n_patches))
        return cls(n_images, n_recordings, images, max(1, pairs_per_tile // images))

    def blocks(self) -> Iterator[slice]:
        """Yield slices of images that together make up the batch."""
        for first in range(0, self.n_images, self.images_per_block):
            yield slice(first, min(first + self.images_per_block, self.n_images))

    def tiles(self, images: slice) -> Iterator[Tile]:
        """Yield the tiles of one block."""
        for first in range(0, self.n_recordings, self.recordings_per_tile):
            yield Tile(images, slice(first, min(first + self.recordings_per_tile, self.n_recordings)))
