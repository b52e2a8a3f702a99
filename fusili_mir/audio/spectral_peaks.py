"""Peaks of the spectrum of a recording: which pitches sound when, much finer than semitones.

A window of half a second resolves the partials of a chord, and interpolation between its bins finds a steady
partial to within a cent. A vibrato shows as a cluster of peaks around the pitch that is meant: the mean counts.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from scipy.fft import rfft

from fusili_mir.arrays import Float32, Float64

__all__ = ["A4_HZ", "SpectralPeaks", "find_peaks"]

A4_HZ = 440.0
"""Frequency from which pitches are counted."""

_WINDOW_SEC = 0.5
_LOWEST_HZ, _HIGHEST_HZ = 100.0, 1_500.0  # below, semitones are not resolved; above, partials are out of tune
_FLOOR_NATS = 30 / 8.686  # peaks that are weaker than the strongest by 30 dB are left out
_CLUSTER_CENTS = 50.0  # peaks that are nearer to each other belong to one tone
_BLOCK_WINDOWS = 64
_TINY = 1e-9


@dataclass(frozen=True)
class SpectralPeaks:
    """The peaks of a recording, window by window.

    Attributes
    ----------
    seconds : np.ndarray [shape=(n,)]
        Middle of the window that each peak was found in. Non-decreasing.
    cents : np.ndarray [shape=(n,)]
        Pitch relative to A at 440 Hz.
    magnitude : np.ndarray [shape=(n,)]
    step_sec : float
        Time from one window to the next.
    """

    seconds: Float64
    cents: Float64
    magnitude: Float64
    step_sec: float

    def __len__(self) -> int:
        return len(self.seconds)

    def between(self, start_sec: float, end_sec: float) -> SpectralPeaks:
        """Return the peaks of the windows whose middle lies in a stretch of time."""
        first, last = np.searchsorted(self.seconds, (start_sec, end_sec))
        some = slice(int(first), int(last))
        return SpectralPeaks(self.seconds[some], self.cents[some], self.magnitude[some], self.step_sec)


def find_peaks(blocks: Iterable[Float32], sample_rate_hz: int, start_sec: float = 0.0) -> SpectralPeaks:
    """Find the peaks of a stream of samples.

    Parameters
    ----------
    blocks : iterable of np.ndarray [shape=(n,)], float32
        Samples of a recording, block by block.
    sample_rate_hz : int
    start_sec : float
        Second at which the first sample sounds.

    Returns
    -------
    SpectralPeaks
        None for a recording that is shorter than a window.

    Examples
    --------
    >>> second = np.arange(16_000, dtype=np.float32) / 16_000
    >>> peaks = find_peaks([np.sin(2 * np.pi * 442 * second)], 16_000)  # 1200 * log2(442 / 440) = 7.85 cents
    >>> [round(float(cents)) for cents in peaks.cents]
    [8, 8]
    """
    length = 2 ** round(np.log2(_WINDOW_SEC * sample_rate_hz))
    step = length // 2
    window = np.hanning(length + 1)[:-1].astype(np.float32)
    bin_hz = sample_rate_hz / length
    first, last = int(_LOWEST_HZ / bin_hz), min(int(_HIGHEST_HZ / bin_hz), length // 2 - 1)
    rest = np.empty(0, np.float32)
    n_windows = 0
    found: list[tuple[Float64, Float64, Float64]] = []
    for block in blocks:
        samples = np.concatenate((rest, block))
        if len(samples) < length:
            rest = samples
            continue
        windows = np.lib.stride_tricks.sliding_window_view(samples, length)[::step]
        for start in range(0, len(windows) if samples.any() else 0, _BLOCK_WINDOWS):  # silence has no peaks
            spectra = np.abs(rfft(windows[start : start + _BLOCK_WINDOWS] * window))
            number, position, magnitude = _peaks(spectra[:, first - 1 : last + 2])
            seconds = start_sec + (n_windows + start + number + 1) * step / sample_rate_hz
            cents = 1200 * np.log2((position + first - 1) * bin_hz / A4_HZ)
            found.append(_tones(seconds, cents, magnitude))
        n_windows += len(windows)
        rest = samples[len(windows) * step :]
    seconds, cents, magnitude = (
        np.concatenate([np.empty(0), *(part[column] for part in found)]) for column in range(3)
    )
    return SpectralPeaks(seconds, cents, magnitude, step / sample_rate_hz)


def _tones(seconds: Float64, cents: Float64, magnitude: Float64) -> tuple[Float64, Float64, Float64]:
    """Join the peaks of each window that lie close together, at their mean by energy."""
    apart = (np.diff(seconds) > 0) | (np.diff(cents) > _CLUSTER_CENTS)
    first = np.flatnonzero(np.append(True, apart)) if len(seconds) else np.empty(0, np.int64)
    if not len(first):
        return seconds, cents, magnitude
    energy = np.add.reduceat(np.square(magnitude), first)
    mean = np.add.reduceat(np.square(magnitude) * cents, first) / energy
    return seconds[first], mean, np.sqrt(energy)


def _peaks(spectra: Float64) -> tuple[Float64, Float64, Float64]:
    """Return row, position between bins and magnitude of the peaks of spectra [shape=(n, n_bins)]."""
    nats = np.log(spectra + _TINY)
    before, here, after = nats[:, :-2], nats[:, 1:-1], nats[:, 2:]
    is_peak = (here > before) & (here >= after) & (here > here.max(axis=1, keepdims=True) - _FLOOR_NATS)
    row, column = np.nonzero(is_peak & (spectra[:, 1:-1] > _TINY))
    left, top, right = before[row, column], here[row, column], after[row, column]
    between = 0.5 * (left - right) / (left - 2 * top + right)  # a parabola through three logarithms
    magnitude = np.exp(top - 0.25 * (left - right) * between)
    return row.astype(np.float64), column + 1 + between, magnitude
