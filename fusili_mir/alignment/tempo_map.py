"""Beats <-> seconds: linear between known pairs, and at the average tempo beyond them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fusili_mir.arrays import Float64
from fusili_mir.errors import InputError
from fusili_mir.short_repr import short_repr

__all__ = ["TempoMap"]

_DEFAULT_SEC_PER_BEAT = 0.5  # where a single beat is known: 120 a minute, as MIDI has it
_SAME_BEAT = 1e-6


@short_repr
@dataclass(frozen=True)
class TempoMap:
    """Pairs of score and performance time.

    Attributes
    ----------
    beats : np.ndarray [shape=(n,)]
        Strictly increasing.
    seconds : np.ndarray [shape=(n,)]
        Non-decreasing.

    Examples
    --------
    >>> tempo = TempoMap(beats=np.array([0.0, 4.0]), seconds=np.array([1.0, 3.0]))
    >>> float(tempo.to_seconds(2.0)), float(tempo.to_beats(4.0))  # the latter is beyond the last pair
    (2.0, 6.0)
    """

    beats: Float64
    seconds: Float64

    def __post_init__(self) -> None:
        if not len(self.beats) or len(self.beats) != len(self.seconds):
            raise InputError(
                f"{len(self.beats)} beats and {len(self.seconds)} seconds; expected equally many, at least one"
            )
        if np.any(np.diff(self.beats) <= 0) or np.any(np.diff(self.seconds) < 0):
            raise InputError(
                "the pairs of a tempo map are out of order; expected increasing beats and non-decreasing seconds"
            )

    @property
    def sec_per_beat(self) -> float:
        """Average over all pairs; half a second if there is only one pair or no time passes."""
        if len(self.beats) < 2 or self.seconds[-1] <= self.seconds[0]:
            return _DEFAULT_SEC_PER_BEAT
        return float((self.seconds[-1] - self.seconds[0]) / (self.beats[-1] - self.beats[0]))

    def through(self, beats: Float64, seconds: Float64) -> TempoMap:
        """Return a map that also has some given pairs."""
        inside = (beats > self.beats[0]) & (beats < self.beats[-1])
        other = np.all(np.abs(beats[:, None] - self.beats) > _SAME_BEAT, axis=1)
        all_beats = np.append(self.beats, beats[inside & other])
        order = np.argsort(all_beats)
        all_seconds = np.append(self.seconds, seconds[inside & other])[order]
        return TempoMap(all_beats[order], np.maximum.accumulate(all_seconds))

    def to_seconds(self, beat: npt.ArrayLike) -> Float64:
        """Return when beats are played."""
        beat = np.asarray(beat, dtype=np.float64)
        beyond = np.minimum(beat - self.beats[0], 0) + np.maximum(beat - self.beats[-1], 0)
        inside = np.interp(beat, self.beats, self.seconds)
        return np.asarray(inside + beyond * self.sec_per_beat, dtype=np.float64)

    def to_beats(self, seconds: npt.ArrayLike) -> Float64:
        """Return which beats are played; of several at the same time, the last."""
        seconds = np.asarray(seconds, dtype=np.float64)
        beyond = np.minimum(seconds - self.seconds[0], 0) + np.maximum(seconds - self.seconds[-1], 0)
        inside = np.interp(seconds, self.seconds, self.beats)
        return np.asarray(inside + beyond / self.sec_per_beat, dtype=np.float64)
