"""The envelope of a recording: how loud it is, and how much begins to sound, at each moment.

Embeddings tell what sounds; when it begins they tell to a frame, and of a repeated chord not at all. The rise of
the spectrum tells it to some milliseconds. Both are measured in steps of 10 ms, and against what is usual around
them, so that neither the level of a recording nor its noise matter.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.ndimage import maximum_filter1d

from fusili_mir.geometry import Float64, FrameGrid, Int64

__all__ = ["EnvelopeMeter", "FrameSound", "SoundEnvelope"]

Float32: TypeAlias = npt.NDArray[np.float32]

_STEP_SEC = 0.010
_WINDOW_SEC = 0.060
_LAG = 2  # steps over which a rise is measured
_HIGHEST_HZ = 5_000.0
_COMPRESSION = 0.5  # a power: a recording of another level has the same onsets
_AROUND_SEC = 10.0  # what is usual is found in stretches of so long
_MOST_NATS = np.float32(2.0)
_LEAST_USUAL = 0.01  # of the strongest rise: less is the silence between clean sounds
_LEAST_SHARE = 0.1  # of what is usual in the whole recording, in its silent stretches
_LEAST_STRONG = 0.01  # of the strongest rise, that of strong onsets
_NEAR_STEPS = 5
_TINY = np.finfo(np.float32).tiny
_SILENT_SHARE = 0.01  # of the loud parts: 40 dB below them


@dataclass(frozen=True)
class FrameSound:
    """What the envelope tells about the M frames of a recording.

    Attributes
    ----------
    onset : np.ndarray [shape=(M,)], float32
        How much more likely than not something began since the middle of the frame before, in nats.
    is_silent : np.ndarray of bool [shape=(M,)]
    """

    onset: Float32
    is_silent: npt.NDArray[np.bool_]

    @classmethod
    def unknown(cls, n_frames: int) -> FrameSound:
        """Tell nothing."""
        return cls(np.zeros(n_frames, np.float32), np.zeros(n_frames, np.bool_))

    @property
    def sounding(self) -> Int64:
        """The frames in which there is sound; all of them, if there is none in any."""
        return np.arange(len(self.is_silent)) if self.is_silent.all() else np.flatnonzero(~self.is_silent)


@dataclass(frozen=True)
class SoundEnvelope:
    """The envelope of a recording; step i is the moment ``i * step_sec``.

    Attributes
    ----------
    rise : np.ndarray [shape=(n,)], float32
        By how much the spectrum rises, at least 0.
    level : np.ndarray [shape=(n,)], float32
        Root mean square.
    step_sec : float
    """

    rise: Float32
    level: Float32
    step_sec: float = _STEP_SEC

    @cached_property
    def nats(self) -> Float32:
        """How much more likely than not something begins at each step [shape=(n,)], within [-2, 2].

        0 is half-way, by ratio, between the usual rise and that of the strongest onsets around; in steady noise
        all steps are near 0.
        """
        if not self.rise.any():
            return np.zeros_like(self.rise)
        size = max(1, round(_AROUND_SEC / self.step_sec))
        centres = np.arange(0, len(self.rise), max(1, size // 2))
        stretches = [self.rise[max(0, c - size // 2) : c + size // 2 + 1] for c in centres]
        least = _LEAST_SHARE * _halfway(self.rise)
        levels = [max(_halfway(stretch), least) for stretch in stretches]
        level = np.interp(np.arange(len(self.rise)), centres, levels)
        ratio = np.log(np.maximum(self.rise, _TINY) / level)
        return np.asarray(np.clip(ratio, -_MOST_NATS, _MOST_NATS), dtype=np.float32)

    def of_frames(self, grid: FrameGrid) -> FrameSound:
        """Return what is known about frames; after the end of the recording there is silence."""
        centres_sec = grid.start_sec + (np.arange(-1, len(grid)) + 0.5) * grid.frame_sec
        edges = np.clip(np.floor(centres_sec / self.step_sec).astype(np.int64) + 1, 0, len(self.rise))
        holds_steps = np.diff(edges) > 0
        onset, loudest = (
            np.maximum.reduceat(np.append(values, lowest), edges)[:-1]
            for values, lowest in ((self.nats, -_MOST_NATS), (self.level, np.float32(0.0)))
        )
        loud = float(np.quantile(self.level, 0.95)) if len(self.level) else 0.0
        return FrameSound(
            np.where(holds_steps, onset, -_MOST_NATS), ~holds_steps | (loudest <= _SILENT_SHARE * loud)
        )

    def nearest_onset(self, seconds: Float64, reach_sec: float) -> Float64:
        """Move moments to the onset next to them.

        Parameters
        ----------
        seconds : np.ndarray [shape=(n,)]
            Finite.
        reach_sec : float
            How far away an onset may be.

        Returns
        -------
        np.ndarray [shape=(n,)]
            Between steps; a moment without an onset near stays where it is. Of several onsets the strongest
            counts, near ones more than far ones.
        """
        last = len(self.rise) - 1
        if last < 2:
            return seconds
        reach = max(1, round(reach_sec / self.step_sec))
        away = np.arange(-reach, reach + 1)
        around = np.rint(seconds / self.step_sec).astype(np.int64)[:, None] + away
        inside = (around > 0) & (around < last)
        around = np.clip(around, 1, last - 1)
        here = self.rise[around]
        is_peak = (here > self.rise[around - 1]) & (here >= self.rise[around + 1])
        weight = np.where(
            inside & is_peak & (self.nats[around] > 0), here * (1 - np.abs(away) / (reach + 1)), 0
        )
        best = weight.argmax(axis=1)[:, None]
        peak = np.take_along_axis(around, best, axis=1)[:, 0]
        before, top, after = (self.rise[peak + shift].astype(np.float64) for shift in (-1, 0, 1))
        curvature = np.maximum(2 * top - before - after, _TINY)
        between = np.clip((after - before) / (2 * curvature), -0.5, 0.5)
        found = np.take_along_axis(weight, best, axis=1)[:, 0] > 0
        return np.where(found, (peak + between) * self.step_sec, seconds)


def _halfway(rise: Float32) -> float:
    """Return the middle, by ratio, between the usual rise and the strongest."""
    usual, strong = np.quantile(rise, (0.5, 0.98))
    strong = max(strong, _LEAST_STRONG * rise.max())  # of a few notes in silence the quantile tells nothing
    return float(np.sqrt(max(usual, _LEAST_USUAL * strong) * strong))


def _share_kept(level: Float32) -> Float32:
    """Return the share of its level that a sound keeps after each step, 1 at most: less where it is cut off.

    A sound that is cut off clicks, as one that sets in does.
    """
    ahead = round(_WINDOW_SEC / _STEP_SEC / 2)  # so far before the middle of a window its end is
    loudest = maximum_filter1d(np.pad(level, _NEAR_STEPS + ahead), _NEAR_STEPS, origin=-(_NEAR_STEPS // 2))
    # loudest[i] is that of `_NEAR_STEPS` steps from i on; step 0 is at _NEAR_STEPS + ahead.
    before, after = (loudest[first : first + len(level)] for first in (ahead, _NEAR_STEPS + 2 * ahead))
    return np.asarray(np.minimum(after / np.maximum(before, _TINY), 1.0), dtype=np.float32)


class EnvelopeMeter:
    """Measures the envelope of a recording that passes by.

    Parameters
    ----------
    sample_rate_hz : int
        Of the blocks.
    """

    def __init__(self, sample_rate_hz: int) -> None:
        self._step = max(1, round(_STEP_SEC * sample_rate_hz))
        self._step_sec = self._step / sample_rate_hz
        length = 2 * self._step * round(_WINDOW_SEC / _STEP_SEC / 2)
        self._window = np.hanning(length + 1)[:-1].astype(np.float32)
        n_bins = min(length // 2, int(_HIGHEST_HZ * length / sample_rate_hz)) + 1
        self._rest = np.zeros(length // 2, np.float32)  # so that the window of step 0 is about sample 0
        self._spectra: Float32 = np.zeros((_LAG, n_bins), np.float32)  # of the last steps
        self._n_samples, self._sample_rate_hz = 0, sample_rate_hz
        self._rises: list[Float32] = []
        self._levels: list[Float32] = []

    def listen(self, blocks: Iterable[Float32]) -> Iterator[Float32]:
        """Pass blocks [shape=(n,)] on, and measure them."""
        for block in blocks:
            self._measure(block)
            self._n_samples += len(block)
            yield block
        self._measure(np.zeros(len(self._window) // 2, np.float32))

    @property
    def duration_sec(self) -> float:
        """Of what has passed by."""
        return self._n_samples / self._sample_rate_hz

    def envelope(self) -> SoundEnvelope:
        """Return the envelope of what has passed by."""
        # A sound is seen before its onset is in the middle of the window: by about half of the lag, so that a
        # rise from one step to another is the onset of the other.
        rise, level = (np.concatenate([np.zeros(0, np.float32), *v]) for v in (self._rises, self._levels))
        return SoundEnvelope(rise * _share_kept(level), level, self._step_sec)

    def _measure(self, block: Float32) -> None:
        samples = np.concatenate((self._rest, block))
        length = len(self._window)
        if len(samples) < length:
            self._rest = samples
            return
        windows = np.lib.stride_tricks.sliding_window_view(samples, length)[:: self._step]
        self._rest = samples[len(windows) * self._step :]
        spectra = np.abs(np.fft.rfft(windows * self._window)[:, : self._spectra.shape[1]])
        spectra = np.concatenate((self._spectra, spectra.astype(np.float32) ** _COMPRESSION))
        self._spectra = spectra[-_LAG:]
        # A partial that moves to the next bin, as in a vibrato, is no onset.
        old = maximum_filter1d(spectra, 3, axis=1)[:-_LAG]
        rise = np.maximum(spectra[_LAG:] - old, 0.0).sum(axis=1, dtype=np.float32)
        fall = np.maximum(spectra[:-_LAG] - spectra[_LAG:], 0.0).sum(axis=1, dtype=np.float32)
        self._rises.append(rise**2 / np.maximum(rise + fall, _TINY))
        middle = windows[:, (length - self._step) // 2 : (length + self._step) // 2]
        self._levels.append(np.sqrt(np.square(middle).mean(axis=1, dtype=np.float32)))
