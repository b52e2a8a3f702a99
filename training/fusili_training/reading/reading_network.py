"""A network that reads staves: where heads are, what the clef makes of the middle line, and which signs apply.

Convolutions look at a staff cell by cell, a cell being a step of the scale high and a column wide, and treat all
rows alike: a head is a head anywhere. What stands at the beginning of the staff, clef and key, is known in all of
its columns. Two recurrent layers walk along the columns and carry what holds until further notice: one for the
whole staff, which remembers clefs, and one for each row, which remembers signs, beginning with those of the key.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from fusili_mir.hearing.note_reading import ALTERATIONS, COLUMN_PX, N_MIDDLES, N_ROWS, STEP_PX

__all__ = ["ReadingNetwork", "ReadingNetworkOptions"]

_PER_CELL = 2 + len(ALTERATIONS)  # head, struck, alterations
_START_COLUMNS, _START_STRIDE = 64, 4  # at the beginning of a staff: clef, key and time signature
_START_FEATURES = 32
_KEY_COLUMNS, _KEY_FEATURES = 44, 24  # signs of a key stand among the first columns
_OUTSIDE_ROWS = 12  # above and below the staff
_OCTAVE = 7  # rows
_OCTAVES = 5  # two up and two down: a sign of the key holds in all of them
_RARE = -4.0  # logit of a head before anything is learnt


@dataclass(frozen=True)
class ReadingNetworkOptions:
    """Sizes of the network.

    Attributes
    ----------
    channels : int
        Features of a cell.
    dilations : tuple of int
        Distance, in columns, of what each block sees: signs stand some columns left of their heads.
    state, memory : int
        Features that are carried along a staff, and along each of its rows.
    """

    channels: int = 32
    dilations: tuple[int, ...] = (1, 2, 4, 1)
    state: int = 160
    memory: int = 12


class ReadingNetwork(nn.Module):
    """Staff strips [shape=(B, 128, width)] -> logits; see `fusili_mir.hearing.note_reading.READING_OUTPUTS`."""

    def __init__(self, options: ReadingNetworkOptions | None = None) -> None:
        super().__init__()
        sizes = options or ReadingNetworkOptions()
        cell_px = STEP_PX * COLUMN_PX
        self.stem = nn.Conv2d(cell_px, sizes.channels, 3, padding=1, bias=False)
        self.stem_norm = nn.BatchNorm2d(sizes.channels)
        self.blocks = nn.ModuleList(_Block(sizes.channels, dilation) for dilation in sizes.dilations)
        self.column = nn.Linear(N_ROWS * sizes.channels, sizes.state)
        self.outside = nn.Linear(2 * sizes.channels, sizes.state, bias=False)
        self.start = nn.Conv1d(sizes.state, _START_FEATURES, _START_STRIDE, _START_STRIDE)
        self.begin = nn.Linear(_START_FEATURES * _START_COLUMNS // _START_STRIDE, sizes.state)
        self.key = nn.Conv1d(_OCTAVES * sizes.channels, _KEY_FEATURES, 1)
        self.key_signs = nn.Conv1d(_KEY_FEATURES, len(ALTERATIONS), 1)
        self.key_memory = nn.Linear(_KEY_FEATURES, sizes.memory)
        self.hint = nn.Linear(sizes.state, sizes.memory)
        self.along_rows = nn.GRU(sizes.channels + sizes.memory, sizes.memory, batch_first=True)
        self.signs = nn.Linear(sizes.memory, len(ALTERATIONS))
        self.along = nn.GRU(sizes.state, sizes.state, batch_first=True)
        self.middles = nn.Linear(2 * sizes.state, N_MIDDLES)
        self.cell = nn.Conv2d(sizes.channels, _PER_CELL, 1)
        self.context = nn.Linear(3 * sizes.state, N_ROWS * _PER_CELL)
        with torch.no_grad():
            self.cell.get_parameter("bias")[0] = _RARE

    def forward(self, strips: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return logits of heads, struck heads, middle lines and alterations."""
        ink = functional.pad(1 - strips, (0, 0, STEP_PX // 2, STEP_PX // 2))[:, None]  # rows centred on steps
        cells = functional.pixel_unshuffle(ink, STEP_PX)  # (B, 16, 33, C)
        features = functional.relu(self.stem_norm(self.stem(cells)))
        for block in self.blocks:
            features = block(features)
        outside = torch.cat(
            (features[:, :, :_OUTSIDE_ROWS].amax(dim=2), features[:, :, -_OUTSIDE_ROWS:].amax(dim=2)), dim=1
        )  # (B, 2 * channels, C): octave lines may be at any height
        columns = self.column(features.permute(0, 3, 1, 2).flatten(2)) + self.outside(outside.transpose(1, 2))
        columns = functional.relu(columns)  # (B, C, state)
        begun = self._begin(columns)  # (B, state)
        carried, _ = self.along(columns, begun[None])
        known = torch.cat((begun[:, None].expand_as(carried), carried), dim=2)
        context = self.context(torch.cat((columns, known), dim=2)).unflatten(2, (N_ROWS, _PER_CELL))
        read = self.cell(features).permute(0, 3, 2, 1) + context  # (B, C, 33, 7)
        key = functional.relu(self.key(_octaves(features[..., :_KEY_COLUMNS].amax(dim=3))))
        alterations = (
            read[..., 2:] + self.key_signs(key).transpose(1, 2)[:, None] + self._signs(features, columns, key)
        )
        return read[..., 0], read[..., 1], self.middles(known), alterations

    def _begin(self, columns: Tensor) -> Tensor:
        """Look at the beginning of each staff [shape=(B, state)]; after a short one comes nothing."""
        first = functional.pad(columns.transpose(1, 2), (0, _START_COLUMNS))[:, :, :_START_COLUMNS]
        begun: Tensor = torch.tanh(self.begin(functional.relu(self.start(first)).flatten(1)))
        return begun

    def _signs(self, features: Tensor, columns: Tensor, key: Tensor) -> Tensor:
        """Remember the signs in each row, at first those of the key; returns logits [shape=(B, C, 33, 5)]."""
        hint = self.hint(columns)[:, None].expand(-1, N_ROWS, -1, -1)  # bar lines end what signs mean
        rows = torch.cat((features.permute(0, 2, 3, 1), hint), dim=3)  # (B, 33, C, channels + memory)
        begun = torch.tanh(self.key_memory(key.transpose(1, 2)))  # (B, 33, memory)
        remembered, _ = self.along_rows(rows.flatten(0, 1), begun.flatten(0, 1)[None])
        signs: Tensor = self.signs(remembered).unflatten(0, (-1, N_ROWS))  # (B, 33, C, 5)
        return signs.transpose(1, 2)


def _octaves(rows: Tensor) -> Tensor:
    """Bring to each row the features octaves away, too [shape=(B, 5 * channels, 33)]."""
    reach = _OCTAVES // 2 * _OCTAVE
    padded = functional.pad(rows, (reach, reach))
    return torch.cat([padded[..., _OCTAVE * octave :][..., :N_ROWS] for octave in range(_OCTAVES)], dim=1)


class _Block(nn.Module):
    """A residual convolution; it sees three rows, and columns at some distance."""

    def __init__(self, channels: int, dilation: int) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(
            channels, channels, 3, padding=(1, dilation), dilation=(1, dilation), bias=False
        )
        self.norm = nn.BatchNorm2d(channels)

    def forward(self, features: Tensor) -> Tensor:
        updated: Tensor = functional.relu(features + self.norm(self.convolution(features)))
        return updated
