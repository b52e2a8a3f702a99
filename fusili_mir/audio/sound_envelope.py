"""The envelope of a recording: how loud it is, and how much begins to sound, at each moment.

Embeddings tell what sounds; when it begins they tell to a frame, and of a repeated chord not at all. The rise of
the spectrum tells it to some milliseconds. Both are measured in steps of 10 ms, and against what is usual around
them, so that neither the level of a recording nor its noise matter.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fusili_mir.arrays import Bool, Float32, Float64, Int64
from fusili_mir.geometry import FrameGrid

__all__ = ["STEP_SEC", "FrameSound", "SoundEnvelope"]


STEP_SEC = 0.010
"""Time from one step of an envelope to the next."""

_AROUND_SEC = 10.0  # what is usual is found in stretches of so long
_MOST_NATS = np.float32(2.0)
_LEAST_USUAL = 0.01  # of the strongest rise: less is the silence between clean sounds
_LEAST_SHARE = 0.1  # of what is usual in the whole recording, in its silent stretches
_LEAST_STRONG = 0.01  # of the strongest rise, that of strong onsets
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
    is_silent: Bool

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
    step_sec: float = STEP_SEC

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
