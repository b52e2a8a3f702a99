"""The envelope of a recording: how loud it is, and how much begins to sound, at each moment.

Embeddings show what sounds, but when it begins only to within a frame and, for a repeated chord, not at all. The
rise of the spectrum shows it to within a few milliseconds. Loudness and rise are measured in steps of 10 ms and
compared with what is usual nearby, so neither the level of a recording nor its noise matters.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fusili_mir.arrays import Bool, Float32, Float64, Int64
from fusili_mir.geometry import FrameGrid
from fusili_mir.short_repr import short_repr

__all__ = ["STEP_SEC", "FrameSound", "SoundEnvelope"]


STEP_SEC = 0.010
"""Time from one step of an envelope to the next."""

_AROUND_SEC = 10.0  # length of the stretches over which the usual rise is measured
_MOST_NATS = np.float32(2.0)
_LEAST_USUAL = 0.01  # of strong onsets: a usual rise below it is the silence between clean sounds
_LEAST_SHARE = 0.1  # of the value for the whole recording: the least in silent stretches
_LEAST_STRONG = 0.01  # of the strongest rise: the least rise of strong onsets
_TINY = np.finfo(np.float32).tiny
_BLOCK_STEPS = 2**16
_SILENT_SHARE = 0.01  # of the level of the loud parts: 40 dB below it


@short_repr
@dataclass(frozen=True)
class FrameSound:
    """What the envelope says about the M frames of a recording.

    Attributes
    ----------
    is_silent : np.ndarray of bool [shape=(M,)]
    """

    is_silent: Bool

    @property
    def sounding(self) -> Int64:
        """Indices of the frames that are not silent; of all frames if every one is."""
        return np.arange(len(self.is_silent)) if self.is_silent.all() else np.flatnonzero(~self.is_silent)


@short_repr
@dataclass(frozen=True)
class SoundEnvelope:
    """The envelope of a recording; step i is the moment ``start_sec + i * step_sec``.

    Attributes
    ----------
    rise : np.ndarray [shape=(n,)], float32
        Rise of the spectrum, at least 0.
    level : np.ndarray [shape=(n,)], float32
        Root mean square of the samples.
    step_sec : float
    start_sec : float
        Moment of the first step; not 0 for an excerpt.
    """

    rise: Float32
    level: Float32
    step_sec: float = STEP_SEC
    start_sec: float = 0.0

    @cached_property
    def nats(self) -> Float32:
        """Log-odds that something begins at each step [shape=(n,)], within [-2, 2].

        0 stands for the geometric mean of the usual rise and that of the strongest onsets nearby; in steady noise
        all steps are near 0.
        """
        if not self.rise.any():
            return np.zeros_like(self.rise)
        size = max(1, round(_AROUND_SEC / self.step_sec))
        centres = np.arange(0, len(self.rise), max(1, size // 2))
        stretches = [self.rise[max(0, c - size // 2) : c + size // 2 + 1] for c in centres]
        least = _LEAST_SHARE * _halfway(self.rise)
        levels = [max(_halfway(stretch), least) for stretch in stretches]
        nats = np.empty_like(self.rise)
        for start in range(0, len(nats), _BLOCK_STEPS):
            rise = self.rise[start : start + _BLOCK_STEPS]
            level = np.interp(np.arange(start, start + len(rise)), centres, levels)
            ratio = np.log(np.maximum(rise, _TINY) / level)
            nats[start : start + len(rise)] = np.clip(ratio, -_MOST_NATS, _MOST_NATS)
        return nats

    def of_frames(self, grid: FrameGrid) -> FrameSound:
        """Return what is known about frames; those after the end of the recording are silent."""
        centres_sec = grid.start_sec - self.start_sec + (np.arange(-1, len(grid)) + 0.5) * grid.frame_sec
        edges = np.clip(np.floor(centres_sec / self.step_sec).astype(np.int64) + 1, 0, len(self.rise))
        holds_steps = np.diff(edges) > 0
        loudest = np.maximum.reduceat(np.append(self.level, np.float32(0.0)), edges)[:-1]
        loud = float(np.quantile(self.level, 0.95)) if len(self.level) else 0.0
        return FrameSound(~holds_steps | (loudest <= _SILENT_SHARE * loud))

    def nearest_onset(self, seconds: Float64, reach_sec: float) -> Float64:
        """Move moments to onsets nearby.

        Parameters
        ----------
        seconds : np.ndarray [shape=(n,)]
            The moments, all finite.
        reach_sec : float
            Largest distance to an onset.

        Returns
        -------
        np.ndarray [shape=(n,)]
            Onsets are located more finely than steps; a moment without an onset nearby stays where it is. Of
            several onsets the strongest counts, with weights that decrease with the distance.

        Examples
        --------
        >>> rise = np.zeros(100, np.float32)
        >>> rise[40] = 1.0  # an onset at 0.4 s
        >>> SoundEnvelope(rise, level=rise).nearest_onset(np.array([0.43, 0.7]), reach_sec=0.07).tolist()
        [0.4, 0.7]
        """
        last = len(self.rise) - 1
        if last < 2:
            return seconds
        reach = max(1, round(reach_sec / self.step_sec))
        away = np.arange(-reach, reach + 1)
        around = np.rint((seconds - self.start_sec) / self.step_sec).astype(np.int64)[:, None] + away
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
        return np.where(found, self.start_sec + (peak + between) * self.step_sec, seconds)


def _halfway(rise: Float32) -> float:
    """Return the geometric mean of the usual rise and the strongest."""
    usual, strong = np.quantile(rise, (0.5, 0.98))
    strong = max(strong, _LEAST_STRONG * rise.max())  # with a few notes in silence the quantile means nothing
    return float(np.sqrt(max(usual, _LEAST_USUAL * strong) * strong))
