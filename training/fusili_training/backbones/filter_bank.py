"""The audio front end of the small backbone: a log-frequency spectrum.

Low bands need long windows to be resolved; high bands need short windows to keep onsets sharp. Bands below
`CROSSOVER_HZ` use windows of 240 ms, the others windows of 80 ms. A frame is the middle of its windows. The front
end is a fixed linear map, a magnitude and a logarithm. In an exported graph the linear map is a matrix product,
which is fast in every runtime; in torch it is a Fourier transform, which needs fewer operations.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from fusili_mir.errors import InputError
from fusili_training.backbones.precision import full_precision

__all__ = ["BandSpectrum", "LogFrequencyFilterBank", "band_centres_hz"]

CROSSOVER_HZ = 500.0
_LONG_WINDOW_SEC = 0.240
_SHORT_WINDOW_SEC = 0.080
_GAIN = 30.0  # in log(1 + gain * amplitude): quiet notes remain visible, silence is 0


class LogFrequencyFilterBank(nn.Module):
    """Waveforms -> log(1 + 30 |S|) on bands of equal musical width.

    Parameters
    ----------
    sample_rate_hz : int
        Sample rate of the waveforms.
    hop_samples : int
        Distance between frames; an even number.
    bands_per_octave : int
        Number of bands per octave; 24 gives two per semitone.
    lowest_hz, highest_hz : float
        Centre of the lowest band, and upper limit for the centre of the highest band.
    """

    def __init__(
        self,
        sample_rate_hz: int = 16_000,
        hop_samples: int = 640,
        bands_per_octave: int = 24,
        lowest_hz: float = 32.7,
        highest_hz: float = 5_000.0,
    ) -> None:
        super().__init__()
        if hop_samples < 2 or hop_samples % 2:
            raise InputError(f"hop_samples is {hop_samples}; expected an even number above 0")
        if not 0 < lowest_hz < CROSSOVER_HZ < highest_hz <= sample_rate_hz / 2:
            raise InputError(
                f"bands from {lowest_hz:g} to {highest_hz:g} Hz at {sample_rate_hz} Hz;"
                f" expected a range that includes {CROSSOVER_HZ:g} Hz and ends below half the sample rate"
            )
        centres_hz = band_centres_hz(lowest_hz, highest_hz, bands_per_octave)
        low = centres_hz < CROSSOVER_HZ
        self.n_bands = len(centres_hz)
        self.hop_samples = hop_samples
        self.low = BandSpectrum(
            sample_rate_hz, hop_samples, _LONG_WINDOW_SEC, centres_hz[low], bands_per_octave
        )
        self.high = BandSpectrum(
            sample_rate_hz, hop_samples, _SHORT_WINDOW_SEC, centres_hz[~low], bands_per_octave
        )

    def forward(self, waveforms: Tensor) -> Tensor:
        """Return the spectrum [shape=(B, n_frames, n_bands)] of waveforms [shape=(B, n_samples)].

        Frame m covers the samples ``m * hop`` to ``(m + 1) * hop``; an incomplete last frame is left out.
        """
        with full_precision(waveforms.device):
            amplitudes = torch.cat([self.low(waveforms), self.high(waveforms)], dim=2)
            return torch.log1p(_GAIN * amplitudes)


def band_centres_hz(lowest_hz: float, highest_hz: float, bands_per_octave: int) -> Tensor:
    """Return the centres of bands of equal musical width [shape=(n_bands,)]."""
    n_bands = math.floor(bands_per_octave * math.log2(highest_hz / lowest_hz)) + 1
    return lowest_hz * 2 ** (torch.arange(n_bands, dtype=torch.float64) / bands_per_octave)


class BandSpectrum(nn.Module):
    """The amplitudes of bands that share one window length.

    Parameters
    ----------
    sample_rate_hz, hop_samples : int
        Sample rate of the waveforms, and distance between frames.
    window_sec : float
        Length of the window; rounded to whole hops, two at least.
    centres_hz : Tensor [shape=(n_bands,)]
        Centres of the bands, increasing.
    bands_per_octave : int
        Distance of the bands.
    """

    cosines: Tensor
    sines: Tensor
    window: Tensor
    filters: Tensor

    def __init__(
        self,
        sample_rate_hz: int,
        hop_samples: int,
        window_sec: float,
        centres_hz: Tensor,
        bands_per_octave: int,
    ) -> None:
        super().__init__()
        self.hop_samples = hop_samples
        self.n_hops = max(2, round(window_sec * sample_rate_hz / hop_samples))
        length = self.n_hops * hop_samples
        bin_hz = sample_rate_hz / length
        spacing_hz = centres_hz * (2 ** (1 / bands_per_octave) - 1)
        reach_hz = spacing_hz.clamp_min(bin_hz)  # a band narrower than a bin still contains one
        first, last = (
            int((centres_hz[0] - reach_hz[0]) / bin_hz),
            math.ceil((centres_hz[-1] + reach_hz[-1]) / bin_hz),
        )
        self.bins = slice(max(1, first), last + 1)
        bins_hz = torch.arange(self.bins.start, self.bins.stop, dtype=torch.float64) * bin_hz
        filters = (1 - (bins_hz[:, None] - centres_hz).abs() / reach_hz).clamp_min(0)  # (bins, bands)

        # Samples lie at +-1/2, +-3/2, ... around the middle. Cosines are even and sines are odd there, so half of
        # the window, folded, is enough for each.
        offsets = torch.arange(length // 2, dtype=torch.float64) + 0.5
        window = 0.5 + 0.5 * torch.cos(2 * math.pi * offsets / length)  # Hann, from the middle outwards
        phases = 2 * math.pi * offsets[:, None] * bins_hz / sample_rate_hz
        gain = 2 / (2 * window.sum())  # a sine of amplitude 1 gives 1
        for name, values in (
            ("cosines", gain * window[:, None] * phases.cos()),
            ("sines", gain * window[:, None] * phases.sin()),
            ("window", gain * torch.cat([window.flip(0), window])),
            ("filters", filters),
        ):
            self.register_buffer(name, values.float(), persistent=False)

    def forward(self, waveforms: Tensor) -> Tensor:
        """Return amplitudes [shape=(B, n_frames, n_bands)] of waveforms [shape=(B, n_samples)]."""
        hop = self.hop_samples
        batch, n_frames = waveforms.shape[0], waveforms.shape[1] // hop
        margin = (self.n_hops - 1) * hop // 2
        padded = functional.pad(waveforms[:, : n_frames * hop], (margin, margin))
        hops = padded.reshape(batch, n_frames + self.n_hops - 1, hop)
        windows = torch.cat([hops[:, shift : shift + n_frames] for shift in range(self.n_hops)], dim=2)
        power = self._power_by_products(windows) if torch.compiler.is_exporting() else self._power(windows)
        # The small number keeps the square root away from 0, where its gradient is infinite.
        return (power + 1e-12).sqrt() @ self.filters

    def _power(self, windows: Tensor) -> Tensor:
        bins: Tensor = torch.fft.rfft(windows * self.window)[:, :, self.bins]
        return bins.real.square() + bins.imag.square()

    def _power_by_products(self, windows: Tensor) -> Tensor:
        half = windows.shape[2] // 2
        after, before = windows[:, :, half:], windows[:, :, :half].flip(2)
        real, imaginary = (after + before) @ self.cosines, (after - before) @ self.sines
        return real.square() + imaginary.square()
