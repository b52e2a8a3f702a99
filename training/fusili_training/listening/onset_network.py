"""A network that hears onsets: how likely a note of each pitch of a piano begins at each step of 10 ms.

Its front end is a log-frequency spectrum, once with long windows, which tell pitches apart, and once with short
ones, which date onsets. All further layers treat all pitches alike: a pitch sees its own bands and those of its
partials, so what is learnt in one octave holds in all others. They run on a grid of 20 ms, and the last one says
in which half of a cell the onset is.

Features lie as (channels, pitches, time), and a pitch meets its partials through convolutions with holes: what
moves by whole rows needs no copies.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from fusili_mir.hearing.onset_listener import ONSET_STEP_SEC, SAMPLE_RATE_HZ
from fusili_training.backbones.filter_bank import BandSpectrum, band_centres_hz
from fusili_training.backbones.precision import full_precision
from fusili_training.pitches import LOWEST_PITCH, N_PITCHES

__all__ = ["OnsetNetwork", "OnsetNetworkOptions"]

_BANDS_PER_SEMITONE = 2
_HIGHEST_HZ = 7_600.0
_GAIN = 300.0  # in log(1 + gain * amplitude): soft notes remain visible beside loud ones
_STEPS = 2  # in a cell
_LONG_WINDOWS = ((0.0, 0.26), (260.0, 0.12), (1050.0, 0.06), (2100.0, 0.04))  # from this Hz on: seconds
_SHORT_WINDOWS = ((0.0, 0.06), (1050.0, 0.03))
_PARTIALS = (-24, -19, -12, 0, 12, 19, 24, 28, 31, 34, 36)  # in semitones: the first eight, and three below
_CONFUSABLE = (-19, -12, 12, 19, 24)  # pitches whose partials are also those of a pitch
# The same steps in evenly spaced series, each for one convolution. A series begins at 0 or below, so that padding
# is enough; a step that an earlier one has, or that is not asked for, has no weight in it.
_PARTIAL_SERIES = ((-24, 28), (-12, 31), (0, 34), (-19, 19), (0, 12, 24, 36))
_CONFUSABLE_SERIES = ((-19, 19), (-12, 0, 12, 24))


@dataclass(frozen=True)
class OnsetNetworkOptions:
    """Sizes of the network.

    Attributes
    ----------
    stem_channels, channels : int
        Features of a pitch before and after its partials are brought together.
    dilations : tuple of int
        Distance in time of what each block sees, in cells of 20 ms.
    """

    stem_channels: int = 12
    channels: int = 24
    dilations: tuple[int, ...] = (1, 2, 4, 1)


class OnsetNetwork(nn.Module):
    """Waveforms [shape=(B, n_samples)] -> logits of onsets [shape=(B, n_steps, 88)].

    Step i is the time from ``i * 0.01`` to ``(i + 1) * 0.01`` s; the number of steps is even.
    """

    def __init__(self, options: OnsetNetworkOptions | None = None) -> None:
        super().__init__()
        sizes = options or OnsetNetworkOptions()
        hop = round(ONSET_STEP_SEC * SAMPLE_RATE_HZ)
        self.long = _MixedSpectrum(_LONG_WINDOWS, _STEPS * hop)
        self.short = _MixedSpectrum(_SHORT_WINDOWS, hop)
        stride = _BANDS_PER_SEMITONE
        self.long_stem = nn.Conv2d(1, sizes.stem_channels, (5, 5), (stride, 1), padding=2, bias=False)
        self.short_stem = nn.Conv2d(1, sizes.stem_channels, (5, 6), (stride, _STEPS), padding=2, bias=False)
        self.stem_norm = nn.BatchNorm2d(sizes.stem_channels)
        self.gather = _AcrossPitches(sizes.stem_channels, sizes.channels, _PARTIALS, _PARTIAL_SERIES)
        self.blocks = nn.ModuleList(_Block(sizes.channels, dilation) for dilation in sizes.dilations)
        self.again = _AcrossPitches(sizes.channels, sizes.channels, _CONFUSABLE, _CONFUSABLE_SERIES)
        self.out = nn.Conv2d(sizes.channels, _STEPS, (1, 3), padding=(0, 1))
        nn.init.constant_(self.out.get_parameter("bias"), -5.0)  # onsets are rare

    def forward(self, waveforms: Tensor) -> Tensor:
        """Return logits; what sounds at the ends is heard as if silence surrounded it."""
        long = self.long_stem(self.long(waveforms).mT[:, None])  # (B, 1, bands, steps) -> (B, C, 98, cells)
        short = self.short_stem(self.short(waveforms).mT[:, None])
        stem = functional.relu(self.stem_norm(long + short))
        features = functional.relu(self.gather(stem))  # (B, C, 88, cells)
        half = len(self.blocks) // 2
        for block in self.blocks[:half]:
            features = block(features)
        features = features + functional.relu(self.again(features))
        for block in self.blocks[half:]:
            features = block(features)
        cells: Tensor = self.out(features)  # (B, 2, 88, cells)
        return cells.permute(0, 3, 1, 2).flatten(1, 2)


class _AcrossPitches(nn.Conv2d):
    """Bring to each pitch the features of pitches some semitones away, and mix them.

    Features [shape=(B, C, pitches, cells)] -> [shape=(B, C', 88, cells)]; beyond the features there are zeros.
    """

    def __init__(
        self, channels: int, out_channels: int, semitones: Sequence[int], series: Sequence[Sequence[int]]
    ) -> None:
        super().__init__(len(semitones) * channels, out_channels, 1)
        self.semitones, self.series = tuple(semitones), tuple(series)

    def forward(self, features: Tensor) -> Tensor:
        """Return the mixed features."""
        channels = features.shape[1]
        weights = {
            step: self.weight[:, number * channels : (number + 1) * channels]
            for number, step in enumerate(self.semitones)
        }
        nothing = self.weight.new_zeros(self.out_channels, channels, 1, 1)
        mixed, bias = None, self.bias
        for steps in self.series:
            kernel = torch.cat([weights.pop(step, nothing) for step in steps], dim=2)  # (C', C, steps, 1)
            padded = functional.pad(features, (0, 0, -steps[0], N_PITCHES + steps[-1] - features.shape[2]))
            part = functional.conv2d(padded, kernel, bias, dilation=(steps[1] - steps[0], 1))
            mixed, bias = part if mixed is None else mixed + part, None
        assert mixed is not None  # noqa: S101
        return mixed


class _Block(nn.Module):
    """A residual block: along time, then along pitch."""

    def __init__(self, channels: int, dilation: int) -> None:
        super().__init__()
        self.along_time = nn.Conv2d(
            channels, channels, (1, 3), padding=(0, dilation), dilation=(1, dilation), bias=False
        )
        self.norm = nn.BatchNorm2d(channels)
        self.along_pitch = nn.Conv2d(channels, channels, (3, 1), padding=(1, 0), bias=False)
        self.end_norm = nn.BatchNorm2d(channels)

    def forward(self, features: Tensor) -> Tensor:
        """Return features [shape=(B, C, 88, cells)]."""
        mixed = functional.relu(self.norm(self.along_time(features)))
        updated: Tensor = functional.relu(features + self.end_norm(self.along_pitch(mixed)))
        return updated


class _MixedSpectrum(nn.Module):
    """Log amplitudes [shape=(B, n_steps, n_bands)] with a window for each range of frequencies."""

    def __init__(self, windows: Sequence[tuple[float, float]], hop_samples: int) -> None:
        super().__init__()
        bands_per_octave = 12 * _BANDS_PER_SEMITONE
        lowest_hz = 440.0 * 2.0 ** ((LOWEST_PITCH - 69) / 12)
        centres_hz = band_centres_hz(lowest_hz, _HIGHEST_HZ, bands_per_octave)
        ends_hz = [start_hz for start_hz, _ in windows[1:]] + [float("inf")]
        self.ranges = nn.ModuleList(
            BandSpectrum(
                SAMPLE_RATE_HZ,
                hop_samples,
                window_sec,
                centres_hz[(centres_hz >= start_hz) & (centres_hz < end_hz)],
                bands_per_octave,
            )
            for (start_hz, window_sec), end_hz in zip(windows, ends_hz, strict=True)
        )

    def forward(self, waveforms: Tensor) -> Tensor:
        with full_precision(waveforms.device):
            amplitudes = torch.cat([each(waveforms) for each in self.ranges], dim=2)
            return torch.log1p(_GAIN * amplitudes)
