"""The onset activations of a recording: how likely a note of each pitch begins at each moment.

Where the pitches of a score are known, a note begins where its own pitch does, not just where anything does. This
tells the notes of a fast passage apart, and the notes of one chord from each other.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fusili_mir.arrays import Float32, Float64, Int64
from fusili_mir.audio.sound_envelope import STEP_SEC

__all__ = ["LOWEST_PITCH", "N_PITCHES", "OnsetMap", "pitch_index"]

LOWEST_PITCH = 21
"""MIDI number of the lowest key of a piano, the first pitch of an onset map."""
N_PITCHES = 88

_FAINTEST = 0.03  # an activation that says nothing: log-ratios are taken over it


@dataclass(frozen=True)
class OnsetMap:
    """The onset activations of a recording; step i is the moment ``start_sec + i * step_sec``.

    Attributes
    ----------
    activation : np.ndarray [shape=(n, 88)], float16
        Probability that a note of each pitch of a piano begins.
    step_sec : float
    start_sec : float
        Moment of the first step; not 0 for an excerpt.
    """

    activation: npt.NDArray[np.float16]
    step_sec: float = STEP_SEC
    start_sec: float = 0.0

    def __len__(self) -> int:
        return len(self.activation)

    def pooled(self, factor: int, groups: slice | None = None) -> Float32:
        """Return the strongest of every `factor` steps [shape=(n // factor, 88)], or of some groups."""
        first, end, _ = (groups or slice(None)).indices(len(self) // factor)
        steps = self.activation[first * factor : max(first, end) * factor]
        strongest = steps[::factor].astype(np.float32)
        for other in range(1, factor):
            np.maximum(strongest, steps[other::factor], out=strongest)
        return strongest

    def steps(self, seconds: Float64) -> Int64:
        """Return the steps nearest to some moments, which may lie beyond the recording."""
        return np.asarray(np.rint((seconds - self.start_sec) / self.step_sec), dtype=np.int64)

    def strongest_between(self, first: Int64, end: Int64) -> Float64:
        """Return the strongest activation of any pitch in ranges of steps, 0 in empty ones.

        Parameters
        ----------
        first, end : np.ndarray of int [shape=(n,)]
            Each range has the steps ``first <= step < end``. Neither decreases.

        Returns
        -------
        np.ndarray [shape=(n,)]
        """
        if not len(first):
            return np.zeros(0)
        begin, last = (int(step) for step in np.clip((first[0], end[-1]), 0, len(self)))
        # Of numbers of half precision, those from 0 on have the order of their bits, which is found much faster.
        bits = np.asarray(self.activation[begin:last], np.float16).view(np.int16)
        of_any = np.append(bits.max(axis=1), np.int16(0))  # one more, for ranges at the end
        ends = np.stack((first, end), axis=1).clip(begin, max(last, begin)) - begin
        strongest = np.maximum.reduceat(of_any, ends.ravel())[::2].view(np.float16).astype(np.float64)
        return np.where(ends[:, 1] > ends[:, 0], strongest, 0.0)

    def at(self, seconds: Float64) -> Float32:
        """Return the logarithm of the activation of each pitch at some moments [shape=(n, 88)].

        The strongest of three steps counts; a pitch that does not begin has the logarithm of a faint activation.
        """
        step = self.steps(seconds)
        strongest = np.zeros((len(step), N_PITCHES), np.float32)
        for away in (-1, 0, 1):
            np.maximum(strongest, self.activation[np.clip(step + away, 0, len(self) - 1)], out=strongest)
        return np.asarray(np.log(strongest + np.float32(_FAINTEST)))

    def nearest(self, seconds: Float64, pitches: Int64, reach_sec: Float64, spread_sec: float) -> Float64:
        """Move notes to the onsets of their own pitches.

        Parameters
        ----------
        seconds : np.ndarray [shape=(n,)]
            About when the notes begin; finite.
        pitches : np.ndarray of int [shape=(n,)]
            Index of the pitch of each note, see `pitch_index`.
        reach_sec : np.ndarray [shape=(n,)]
            How far each note may be moved.
        spread_sec : float
            How far notes usually are from where they are expected: near onsets count more than far ones.

        Returns
        -------
        np.ndarray [shape=(n,)]
            Located more finely than steps. A note without an onset nearby stays where it is.
        """
        last = len(self) - 2
        if last < 1 or not len(seconds):
            return seconds
        most = max(1, round(float(reach_sec.max()) / self.step_sec))
        away = np.arange(-most, most + 1)
        at = np.clip(np.rint((seconds - self.start_sec) / self.step_sec).astype(np.int64), 0, len(self) - 1)
        around = np.clip(at[:, None] + away, 1, last)
        value = np.log(self.activation[around, pitches[:, None]].astype(np.float32) + _FAINTEST)
        value = value - np.abs(away) * (self.step_sec / spread_sec)
        value[np.abs(away) * self.step_sec > reach_sec[:, None]] = -np.inf
        peak = np.take_along_axis(around, value.argmax(axis=1)[:, None], axis=1)[:, 0]
        before, top, after = (
            self.activation[peak + shift, pitches].astype(np.float64) for shift in (-1, 0, 1)
        )
        curvature = np.maximum(2 * top - before - after, 1e-6)
        between = np.clip((after - before) / (2 * curvature), -0.5, 0.5)
        found = top > _FAINTEST
        return np.where(found, self.start_sec + (peak + between) * self.step_sec, seconds)


def pitch_index(midi_pitch: npt.ArrayLike) -> Int64:
    """Return where MIDI pitches are in an onset map; pitches beyond a piano's go to its nearest key.

    >>> pitch_index([21, 69, 120]).tolist()
    [0, 48, 87]
    """
    return np.clip(np.asarray(midi_pitch, dtype=np.int64) - LOWEST_PITCH, 0, N_PITCHES - 1)
