"""Measuring the envelope of a recording while it streams past, block by block."""

from __future__ import annotations

import numpy as np
from scipy.fft import rfft
from scipy.ndimage import maximum_filter1d

from fusili_mir.arrays import Float32
from fusili_mir.audio.sound_envelope import STEP_SEC, SoundEnvelope
from fusili_mir.growing_rows import GrowingRows

__all__ = ["EnvelopeMeter", "share_kept", "share_kept_of"]

_WINDOW_SEC = 0.060
_LAG = 2  # steps over which a rise is measured
_HIGHEST_HZ = 5_000.0
_COMPRESSION = 0.5  # an exponent: the level of a recording does not change its onsets
_NEAR_STEPS = 5
_FAR_STEPS = 16  # further away than `share_kept` looks
_BLOCK_STEPS = 2**14  # for which it is computed at once
_TINY = np.finfo(np.float32).tiny


def share_kept(level: Float32) -> Float32:
    """Return the share of its level, at most 1, that a sound keeps after each step: less where it is cut off.

    An abrupt end clicks just as an abrupt beginning does.
    """
    ahead = round(_WINDOW_SEC / STEP_SEC / 2)  # steps from the middle of a window to its end
    loudest = maximum_filter1d(np.pad(level, _NEAR_STEPS + ahead), _NEAR_STEPS, origin=-(_NEAR_STEPS // 2))
    # loudest[i] is the maximum over `_NEAR_STEPS` steps from i on; step 0 is at _NEAR_STEPS + ahead.
    before, after = (loudest[first : first + len(level)] for first in (ahead, _NEAR_STEPS + 2 * ahead))
    kept = np.minimum(after, before) / np.maximum(
        before, _TINY
    )  # never overflows, even after perfect silence
    return np.where((after >= before) & (after > 0), np.float32(1.0), kept).astype(np.float32)


def share_kept_of(level: Float32, first: int, end: int) -> Float32:
    """Return what `share_kept` returns of the steps ``first <= step < end``."""
    begin = max(0, first - _FAR_STEPS)
    return share_kept(level[begin : end + _FAR_STEPS])[first - begin : end - begin]


class EnvelopeMeter:
    """Measures the envelope of a recording that streams past.

    Parameters
    ----------
    sample_rate_hz : int
        Sampling rate of the blocks.
    start_sec : float
        Moment of the first sample; not 0 for an excerpt.
    n_samples : int
        How many samples will pass, about: room for what is measured is taken at once.
    """

    def __init__(self, sample_rate_hz: int, start_sec: float = 0.0, n_samples: int = 0) -> None:
        self._start_sec = start_sec
        self._step = max(1, round(STEP_SEC * sample_rate_hz))
        self._step_sec = self._step / sample_rate_hz
        length = 2 * self._step * round(_WINDOW_SEC / STEP_SEC / 2)
        self._window = np.hanning(length + 1)[:-1].astype(np.float32)
        n_bins = min(length // 2, int(_HIGHEST_HZ * length / sample_rate_hz)) + 1
        self._rest = np.zeros(length // 2, np.float32)  # centres the window of step 0 on sample 0
        self._spectra: Float32 = np.zeros((_LAG, n_bins), np.float32)  # spectra of the last steps
        n_steps = n_samples // self._step + 2
        self._rises = GrowingRows(np.float32, n_expected=n_steps)
        self._levels = GrowingRows(np.float32, n_expected=n_steps)

    def see(self, block: Float32) -> None:
        """Measure a block [shape=(n,)]."""
        samples = np.concatenate((self._rest, block))
        length = len(self._window)
        if len(samples) < length:
            self._rest = samples
            return
        windows = np.lib.stride_tricks.sliding_window_view(samples, length)[:: self._step]
        self._rest = samples[len(windows) * self._step :]
        if not samples.any() and not self._spectra.any():  # nothing rises, and nothing need be computed
            self._rises.pass_over(len(windows))
            self._levels.pass_over(len(windows))
            return
        spectra = np.abs(rfft(windows * self._window)[:, : self._spectra.shape[1]])
        spectra = np.concatenate((self._spectra, spectra.astype(np.float32) ** _COMPRESSION))
        self._spectra = spectra[-_LAG:]
        # A partial that moves to the next bin, as in a vibrato, is not an onset.
        old = maximum_filter1d(spectra, 3, axis=1)[:-_LAG]
        rise = np.maximum(spectra[_LAG:] - old, 0.0).sum(axis=1, dtype=np.float32)
        fall = np.maximum(spectra[:-_LAG] - spectra[_LAG:], 0.0).sum(axis=1, dtype=np.float32)
        self._rises.add(rise**2 / np.maximum(rise + fall, _TINY))
        middle = windows[:, (length - self._step) // 2 : (length + self._step) // 2]
        self._levels.add(np.sqrt(np.square(middle).mean(axis=1, dtype=np.float32)))

    def envelope(self) -> SoundEnvelope:
        """Return the envelope of all blocks, once and at the end."""
        self.see(np.zeros(len(self._window) // 2, np.float32))
        # A window sees a sound about half a lag before the onset reaches its middle. A rise from one step to a
        # later one is therefore dated at the later one.
        rise, level = self._rises.array(), self._levels.array()
        kept = GrowingRows(np.float32, n_expected=len(rise))
        for part in range(0, len(rise), _BLOCK_STEPS):
            kept.add_sparse(
                rise[part : part + _BLOCK_STEPS] * share_kept_of(level, part, part + _BLOCK_STEPS)
            )
        return SoundEnvelope(kept.array(), level, self._step_sec, self._start_sec)
