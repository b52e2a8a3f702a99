"""The small backbone, trained from scratch, for staff strips and laptop CPUs.

An image shows the staves of one system, each as a strip in which the five lines lie at fixed rows, so height is
pitch. Each staff is encoded separately, column by column; the columns of all staves are fused into one row of
patches. A recording is a log-frequency spectrum whose bands are channels. Both towers are convolutional along
their axis and take any width, any number of staves and any length. Padding is blank paper on the right, blank
staves below, and zeros at the end; the tokens of an item do not depend on the amount of padding. For the paper's
experiments at a small scale, the image tower may take squares instead (`square_px`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from fusili_mir.errors import InputError
from fusili_mir.geometry import strip_height_px
from fusili_training.backbones.filter_bank import LogFrequencyFilterBank
from fusili_training.backbones.interface import (
    AudioGeometry,
    AudioTower,
    Backbone,
    ImageGeometry,
    ImageTower,
    Tokens,
)
from fusili_training.backbones.sequence_layers import (
    ConvolutionBlock,
    GlobalHead,
    LeftContext,
    NeighbourBlock,
    trailing_mask,
)
from fusili_training.backbones.sizes import check_number, check_sizes
from fusili_training.backbones.square_tower import PATCH_PX, SquareTower

__all__ = ["FrameTower", "SmallOptions", "StaffTower", "build_small"]

_COLUMN_PX = 4
_VERTICAL_STRIDE = 16
_MOST_REACH = 512  # places: 20 s of sound
_LAYERS = ("image_dilations", "system_dilations", "audio_dilations", "system_reaches", "audio_reaches")


@dataclass(frozen=True)
class SmallOptions:
    """Sizes of the small backbone.

    Attributes
    ----------
    width : int
        Number of features of a token, in both towers.
    embedding_dim : int
        Dimension d of the global embeddings.
    stem_channels : tuple of int
        Channels of the three convolutions that reduce a strip to columns.
    staff_space_px : int
        Distance of the staff lines in a strip.
    margin_spaces : float
        Margin above and below the staff, for ledger lines, in staff spaces.
    square_px : int
        Side of squares, which then take the place of staff strips, with patches of 32 px; 0: staff strips.
    sample_rate_hz : int
        Sample rate of the waveform.
    hop_ms : int
        Time from one frame to the next.
    image_dilations, system_dilations, audio_dilations : tuple of int
        Dilations of the convolution blocks, one block each: on the columns of a staff, on the fused columns, on
        the frames.
    system_reaches, audio_reaches : tuple of int
        How far the columns of a system and the frames see in the attention blocks that follow, one block each.
    """

    width: int = 160
    embedding_dim: int = 128
    stem_channels: tuple[int, int, int] = (24, 32, 48)
    staff_space_px: int = 8
    margin_spaces: float = 6.0
    square_px: int = 0
    sample_rate_hz: int = 16_000
    hop_ms: int = 40
    image_dilations: tuple[int, ...] = (1,)
    system_dilations: tuple[int, ...] = (1, 2, 1)
    audio_dilations: tuple[int, ...] = (1, 2, 1, 2)
    system_reaches: tuple[int, ...] = ()
    audio_reaches: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        for name in ("width", "embedding_dim", "stem_channels"):
            check_sizes(name, getattr(self, name))
        for name in ("system_reaches", "audio_reaches"):
            for reach in getattr(self, name):
                check_number(name, reach, 1, _MOST_REACH)
        for name in _LAYERS:
            check_sizes(name, getattr(self, name))
        check_number("staff_space_px", self.staff_space_px, 2, 64)
        check_number("margin_spaces", self.margin_spaces, 0, 100)
        check_number("square_px", self.square_px, 0, 32 * PATCH_PX)
        if self.square_px % PATCH_PX:
            raise InputError(
                f"square_px is {self.square_px}; expected a multiple of {PATCH_PX}, or 0 for strips"
            )
        if self.square_px and self.system_reaches:
            raise InputError(
                f"system_reaches is {self.system_reaches} with squares; expected none: () for them"
            )
        check_number("sample_rate_hz", self.sample_rate_hz, 2_000, 192_000)
        check_number("hop_ms", self.hop_ms, 1, 1000)

    @property
    def strip_px(self) -> int:
        """Height of a strip."""
        return strip_height_px(self.staff_space_px, self.margin_spaces)


def build_small(options: SmallOptions) -> Backbone:
    """Build both towers with random weights."""
    return Backbone("small", _image_tower(options), FrameTower(options))


def _image_tower(options: SmallOptions) -> ImageTower:
    if not options.square_px:
        return StaffTower(options)
    return SquareTower(
        options.square_px,
        options.width,
        options.embedding_dim,
        options.stem_channels,
        options.system_dilations,
    )


def _masked_mean(features: Tensor, mask: Tensor) -> Tensor:
    """Return the mean [shape=(B, 1, width)] of the features [shape=(B, L, width)] where `mask` is 1."""
    return (features * mask).sum(dim=1, keepdim=True) / mask.sum(dim=1, keepdim=True)


class StaffTower(ImageTower):
    """Staff strips [shape=(B, S, height, width)] -> one token per 4 pixels of width."""

    def __init__(self, options: SmallOptions) -> None:
        super().__init__()
        if options.strip_px % _VERTICAL_STRIDE:
            raise InputError(
                f"strips of {options.strip_px} px (staff spaces of {options.staff_space_px} px, margins of"
                f" {options.margin_spaces:g} spaces); expected a multiple of {_VERTICAL_STRIDE} px"
            )
        self.width, self.embedding_dim = options.width, options.embedding_dim
        self.geometry = ImageGeometry(
            height_px=options.strip_px,
            width_px=None,
            patch_width_px=_COLUMN_PX,
            patch_height_px=options.strip_px,
            max_strips=None,
            staff_space_px=options.staff_space_px,
            margin_spaces=options.margin_spaces,
        )
        first, second, third = options.stem_channels
        self.stem = nn.ModuleList(
            [
                _StemLayer(_COLUMN_PX**2, first, kernel_size=2, padding=0),
                _StemLayer(first, second, kernel_size=3, stride=(2, 1), padding=1),
                _StemLayer(second, third, kernel_size=3, stride=(2, 1), padding=1),
            ]
        )
        rows = options.strip_px // _VERTICAL_STRIDE
        self.height = nn.Linear(rows * third, options.width)  # never pooled: the row is the pitch
        self.context = LeftContext(options.width)
        self.staff_blocks = nn.ModuleList(
            ConvolutionBlock(options.width, dilation=d) for d in options.image_dilations
        )
        self.fuse = nn.Linear(2 * options.width, options.width)
        self.system_blocks = nn.ModuleList(
            ConvolutionBlock(options.width, dilation=d) for d in options.system_dilations
        )
        self.system_blocks.extend(NeighbourBlock(options.width, reach) for reach in options.system_reaches)
        self.norm = nn.LayerNorm(options.width)
        self.global_head = GlobalHead(options.width, options.embedding_dim)

    def forward(self, inputs: Tensor) -> Tokens:
        """Encode staff strips; the mask is False after the last column with ink."""
        self.geometry.check(inputs)
        batch, n_staves = inputs.shape[:2]
        n_columns = inputs.shape[3] // _COLUMN_PX
        ink = 1 - inputs[..., : n_columns * _COLUMN_PX]
        inked = (
            (ink > 0).any(dim=2).reshape(batch, n_staves, n_columns, _COLUMN_PX).any(dim=3)
        )  # (B, S, columns)
        mask = trailing_mask(inked.any(dim=1))  # (B, columns)
        is_staff = torch.cat([torch.ones_like(inked[:, :1, 0]), inked[:, 1:].any(dim=2)], dim=1)  # (B, S)

        valid = mask.to(ink.dtype)[:, :, None]  # (B, columns, 1)
        staff_valid = valid[:, None].expand(-1, n_staves, -1, -1).flatten(0, 1)  # (B * S, columns, 1)
        ink = ink.flatten(0, 1)[:, None]
        if self.training:  # blank staves would cost time and distort the batch statistics
            present = is_staff.flatten()
            encoded = self._encode_staves(ink[present], staff_valid[present])
            columns = encoded.new_zeros(len(present), *encoded.shape[1:]).index_put((present,), encoded)
        else:
            columns = self._encode_staves(ink, staff_valid)
        staves = columns.reshape(batch, n_staves, n_columns, -1)  # (B, S, columns, width)
        fused = self._fuse_staves(staves, is_staff[:, :, None, None])
        for block in self.system_blocks:
            fused = block(fused, valid)
        tokens = self.norm(fused)
        return Tokens(tokens, _masked_mean(tokens, valid), mask=mask)

    def _encode_staves(self, ink: Tensor, valid: Tensor) -> Tensor:
        """Return columns [shape=(n, columns, width)] of staves given as ink [shape=(n, 1, height, width_px)]."""
        # Squares of 4 px become channels, so 2 x 2 of them are 8 x 8 px around the middle of a column. This
        # equals a convolution with an 8 x 8 kernel, whose gradient takes six times as long on a CPU.
        features = functional.pixel_unshuffle(functional.pad(ink, [_COLUMN_PX // 2] * 4), _COLUMN_PX)
        for layer in self.stem:
            features = layer(features, valid[:, None, None, :, 0])
        columns: Tensor = self.context(self.height(features.permute(0, 3, 2, 1).flatten(2)), valid)
        for block in self.staff_blocks:
            columns = block(columns, valid)
        return columns

    def _fuse_staves(self, staves: Tensor, is_staff: Tensor) -> Tensor:
        """Return the columns of a system [shape=(B, columns, width)], given those of its staves."""
        strongest = staves.masked_fill(~is_staff, -1e4).amax(dim=1)
        total = (staves * is_staff).sum(dim=1)
        fused: Tensor = self.fuse(torch.cat([strongest, total], dim=2))
        return fused

    def project_global(self, features: Tensor) -> Tensor:
        """Apply the global head."""
        projected: Tensor = self.global_head(features)
        return projected

    def global_head_parameters(self) -> Iterator[nn.Parameter]:
        """Yield the global head."""
        return self.global_head.parameters()


class _StemLayer(nn.Module):
    """A convolution that keeps the number of columns."""

    def __init__(
        self, n_in: int, n_out: int, kernel_size: int, padding: int, stride: tuple[int, int] = (1, 1)
    ) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(n_in, n_out, kernel_size, stride, padding, bias=False)
        self.norm = nn.BatchNorm2d(n_out)
        self.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # faster on a CPU

    def forward(self, features: Tensor, mask: Tensor) -> Tensor:
        """Return features [shape=(B, n_out, ...)], 0 where `mask` [shape=(B, 1, 1, columns)] is 0."""
        features = features.contiguous(memory_format=torch.channels_last)
        return functional.relu(self.norm(self.convolution(features)).mul_(mask), inplace=True)


class FrameTower(AudioTower):
    """Waveforms [shape=(B, n_samples)] -> one token per hop."""

    def __init__(self, options: SmallOptions) -> None:
        super().__init__()
        hop_samples = options.sample_rate_hz * options.hop_ms // 1000
        self.width, self.embedding_dim = options.width, options.embedding_dim
        self.geometry = AudioGeometry(options.sample_rate_hz, hop_samples)
        self.filter_bank = LogFrequencyFilterBank(options.sample_rate_hz, hop_samples)
        self.input = nn.Conv1d(self.filter_bank.n_bands, options.width, kernel_size=3, padding=1)
        self.blocks = nn.ModuleList(
            ConvolutionBlock(options.width, dilation=d) for d in options.audio_dilations
        )
        self.blocks.extend(NeighbourBlock(options.width, reach) for reach in options.audio_reaches)
        self.norm = nn.LayerNorm(options.width)
        self.global_head = GlobalHead(options.width, options.embedding_dim)

    def forward(self, inputs: Tensor) -> Tokens:
        """Encode waveforms; the mask is False after the last frame with a sample other than 0."""
        self.geometry.check(inputs)
        hop = self.geometry.frame_samples
        n_frames = inputs.shape[1] // hop
        sounding = (inputs[:, : n_frames * hop] != 0).reshape(-1, n_frames, hop).any(dim=2)
        mask = trailing_mask(sounding)  # (B, frames)
        valid = mask.to(inputs.dtype)[:, :, None]

        spectrum = self.filter_bank(inputs) * valid
        frames = self.input(spectrum.transpose(1, 2)).transpose(1, 2)
        for block in self.blocks:
            frames = block(frames, valid)
        tokens = self.norm(frames)
        return Tokens(tokens, _masked_mean(tokens, valid), mask=mask)

    def project_global(self, features: Tensor) -> Tensor:
        """Apply the global head."""
        projected: Tensor = self.global_head(features)
        return projected

    def global_head_parameters(self) -> Iterator[nn.Parameter]:
        """Yield the global head."""
        return self.global_head.parameters()
