"""Measuring the attacks of a recording while it passes by, block by block.

The spectrum is taken with three windows: short ones for high partials, which date an attack exactly, long ones
for low partials, which only they can tell apart. The attack of a pitch is the weighted rise of its partials.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from scipy.fft import rfft  # in float32, which numpy 1 does not keep

from fusili_mir.arrays import Float32
from fusili_mir.audio.attack_map import LOWEST_PITCH, N_PITCHES, AttackMap
from fusili_mir.audio.envelope_meter import share_kept_of
from fusili_mir.audio.sound_envelope import STEP_SEC
from fusili_mir.growing_rows import GrowingRows

__all__ = ["AttackMeter"]

_N_PARTIALS = 8
_PARTIAL_DECAY = 0.85  # weight of a partial relative to the one below
_HIGHEST_SHARE = 0.44  # of the sampling rate
_COMPRESSION = 1000.0  # log(1 + this * amplitude): quiet notes count as well as loud ones


@dataclass(frozen=True)
class _Window:
    """One of the windows: its length, over how many steps a rise is measured, and for which partials."""

    window_sec: float
    lag_steps: int
    lowest_hz: float
    highest_hz: float


_WINDOWS = (
    _Window(0.032, 2, 1200.0, np.inf),
    _Window(0.064, 2, 400.0, 1200.0),
    _Window(0.128, 4, 100.0, 400.0),
)
_N_LATE = max(window.lag_steps for window in _WINDOWS) // 2  # steps by which a rise is noticed late
_BLOCK_STEPS = 2**12


@dataclass
class _Measured:
    """What one window has seen so far."""

    shape: Float32  # of the window
    partials: Float32  # (bins, 88): from the rise of the spectrum to that of pitches
    last: Float32  # (lag, bins): the last spectra
    rises: Float32  # (n, 88): those of steps that other windows have not reached yet


class AttackMeter:
    """Measures the attacks of a recording that passes by.

    Parameters
    ----------
    sample_rate_hz : int
        Sampling rate of the blocks.
    gain : float
        Factor that brings the blocks to a usual level, so that the attacks of quiet recordings are as strong.
    start_sec : float
        Moment of the first sample.
    cents : float
        How far the recording sounds above the pitches that are looked for.
    n_samples : int
        How many samples will pass, about: room for their attacks is taken at once.
    """

    def __init__(
        self,
        sample_rate_hz: int,
        gain: float = 1.0,
        start_sec: float = 0.0,
        cents: float = 0.0,
        n_samples: int = 0,
    ) -> None:
        self._gain, self._start_sec = np.float32(gain), start_sec
        self._step = max(1, round(STEP_SEC * sample_rate_hz))
        self._step_sec = self._step / sample_rate_hz
        self._windows = [_measured(window, sample_rate_hz, cents) for window in _WINDOWS]
        self._length = max(len(window.shape) for window in self._windows)
        self._rest = np.zeros(self._length // 2, np.float32)  # so that step 0 is about sample 0
        self._steps = GrowingRows(np.float16, (N_PITCHES,), n_samples // self._step + _N_LATE + 2)

    def listen(self, blocks: Iterable[Float32]) -> Iterator[Float32]:
        """Pass blocks [shape=(n,)] through, and measure them."""
        for block in blocks:
            self._measure(self._gain * block)
            yield block
        self._measure(np.zeros(self._length // 2, np.float32))

    def attacks(self, level: Float32 | None = None) -> AttackMap:
        """Return the attacks of what has passed, once and at the end.

        With the level of the recording at each step, sounds that end abruptly are not taken for attacks.
        """
        self._steps.pass_over(_N_LATE)
        strength = self._steps.array()[_N_LATE:]
        if level is not None:
            for first in range(0, min(len(level), len(strength)), _BLOCK_STEPS):
                end = min(first + _BLOCK_STEPS, len(level), len(strength))
                if strength[first:end].any():
                    strength[first:end] *= share_kept_of(level, first, end)[:, None].astype(np.float16)
        return AttackMap(strength, self._step_sec, self._start_sec)

    def _measure(self, block: Float32) -> None:
        samples = np.concatenate((self._rest, block))
        if len(samples) < self._length:
            self._rest = samples
            return
        stretches = np.lib.stride_tricks.sliding_window_view(samples, self._length)[:: self._step]
        self._rest = samples[len(stretches) * self._step :]
        silent = not samples.any()
        for window in self._windows:
            if silent and not window.last.any():  # nothing rises, and nothing need be computed
                rises = np.zeros((len(stretches), N_PITCHES), np.float32)
                window.rises = np.concatenate((window.rises, rises))
                continue
            length = len(window.shape)
            first = (self._length - length) // 2
            spectra = np.abs(rfft(stretches[:, first : first + length] * window.shape))
            spectra = np.log1p(_COMPRESSION * spectra[:, : window.last.shape[1]]).astype(np.float32)
            lag = len(window.last)
            seen = np.concatenate((window.last, spectra))
            window.last = seen[-lag:]
            # A partial that moves to the next bin, as in a vibrato, is not an attack.
            before = seen[:-lag].copy()
            before[:, 1:] = np.maximum(before[:, 1:], seen[:-lag, :-1])
            before[:, :-1] = np.maximum(before[:, :-1], seen[:-lag, 1:])
            rises = np.maximum(seen[lag:] - before, 0.0) @ window.partials
            window.rises = np.concatenate((window.rises, rises))
        n_known = min(len(window.rises) for window in self._windows)
        total = np.sum([window.rises[:n_known] for window in self._windows], axis=0)
        # What rises at all pitches alike is a click, or noise.
        own = np.maximum(total - total.mean(axis=1, keepdims=True), 0.0)
        self._steps.add_sparse(own.astype(np.float16))
        for window in self._windows:
            window.rises = window.rises[n_known:]


def _measured(window: _Window, sample_rate_hz: int, cents: float) -> _Measured:
    length = 2 * round(window.window_sec * sample_rate_hz / 2)
    shape = np.hanning(length + 1)[:-1].astype(np.float32)
    shape *= 2 / shape.sum()  # a sine has its amplitude
    n_bins = int(_HIGHEST_SHARE * length) + 2
    partials = np.zeros((n_bins, N_PITCHES), np.float32)
    for pitch in range(N_PITCHES):
        fundamental_hz = 440.0 * 2.0 ** ((pitch + LOWEST_PITCH - 69) / 12 + cents / 1200)
        frequency = fundamental_hz * np.arange(1, _N_PARTIALS + 1)
        weight = _PARTIAL_DECAY ** np.arange(_N_PARTIALS)
        heard = (frequency >= _WINDOWS[-1].lowest_hz) & (frequency < _HIGHEST_SHARE * sample_rate_hz)
        here = heard & (frequency >= window.lowest_hz) & (frequency < window.highest_hz)
        place = frequency[here] * length / sample_rate_hz
        low = place.astype(np.int64)
        share = weight[here] / max(weight[heard].sum(), 1e-9)
        np.add.at(partials[:, pitch], low, share * (1 - (place - low)))
        np.add.at(partials[:, pitch], low + 1, share * (place - low))
    # A rise from one step to another is dated half-way between them: windows of short lags wait for the others.
    n_waiting = (max(each.lag_steps for each in _WINDOWS) - window.lag_steps) // 2
    return _Measured(
        shape,
        partials,
        np.zeros((window.lag_steps, n_bins), np.float32),
        np.zeros((n_waiting, N_PITCHES), np.float32),
    )
