"""The image tower of the small backbone for squares: patches of 32 px, as in the paper, by convolutions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional

from fusili_training.backbones.interface import ImageGeometry, ImageTower, Tokens
from fusili_training.backbones.sequence_layers import ConvolutionBlock, GlobalHead

__all__ = ["PATCH_PX", "SquareTower"]

PATCH_PX = 32
_UNIT_PX = 4


class SquareTower(ImageTower):
    """Squares [shape=(B, 1, side, side)] -> one token per patch of 32 px, in row-major order.

    Parameters
    ----------
    side_px : int
        A multiple of 32.
    width, embedding_dim : int
        Number of features of a token, and dimension d of the global embeddings.
    stem_channels : sequence of int
        Channels of three convolutions: on units of 4, 8 and 16 px.
    dilations : sequence of int
        Dilations of the blocks that mix patches in reading order.
    """

    def __init__(
        self,
        side_px: int,
        width: int,
        embedding_dim: int,
        stem_channels: Sequence[int],
        dilations: Sequence[int],
    ) -> None:
        super().__init__()
        self.width, self.embedding_dim = width, embedding_dim
        self.geometry = ImageGeometry(side_px, side_px, PATCH_PX, PATCH_PX)
        channels = (_UNIT_PX**2, *stem_channels, width)
        self.stem = nn.ModuleList(
            nn.Sequential(
                nn.Conv2d(n_in, n_out, 3, stride=1 if number == 0 else 2, padding=1, bias=False),
                nn.BatchNorm2d(n_out),
                nn.ReLU(),
            )
            for number, (n_in, n_out) in enumerate(pairwise(channels))
        )
        self.place = nn.Parameter(0.02 * torch.randn((side_px // PATCH_PX) ** 2, width))
        self.blocks = nn.ModuleList(ConvolutionBlock(width, dilation=dilation) for dilation in dilations)
        self.norm = nn.LayerNorm(width)
        self.global_head = GlobalHead(width, embedding_dim)

    def forward(self, inputs: Tensor) -> Tokens:
        """Encode squares; every patch counts, also where there is no ink."""
        self.geometry.check(inputs)
        features = functional.pixel_unshuffle(1 - inputs, _UNIT_PX)
        for layer in self.stem:
            features = layer(features)
        patches = features.flatten(2).transpose(1, 2) + self.place  # (B, N, width)
        everywhere = torch.ones_like(patches[:, :, :1])
        for block in self.blocks:
            patches = block(patches, everywhere)
        tokens = self.norm(patches)
        return Tokens(tokens, tokens.mean(dim=1, keepdim=True))

    def project_global(self, features: Tensor) -> Tensor:
        """Apply the global head."""
        projected: Tensor = self.global_head(features)
        return projected

    def global_head_parameters(self) -> Iterator[nn.Parameter]:
        """Yield the global head."""
        return self.global_head.parameters()
