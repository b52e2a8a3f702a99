"""What the sound says about when each stop begins.

A stop begins where notes of its pitches do. A symbolic score says which; where they are read from an image, and
less certain, the beginning of anything counts as well.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fusili_mir.arrays import Float32, Float64, Int64
from fusili_mir.audio.onset_map import N_PITCHES, OnsetMap
from fusili_mir.audio.sound_envelope import SoundEnvelope
from fusili_mir.decoding.certainty import NEAR_SEC, Certainty
from fusili_mir.decoding.timing_law import TimingLaw

__all__ = ["NearbyOnsets", "OnsetEvidence", "StopPitches"]

_GROUP = 2  # steps in a cell of the grid on which stops are timed
_SPREAD_STEPS = 3.0  # set by hand: over which an onset counts less by a factor of e
_KEPT_CELLS = 2**12  # about 80 s
_CUT_SEC = 0.15  # set by hand: within which what sounds from the start on seems to begin
# Chosen on the 27 human performances: how far from a stop its own pitches are looked for, from where another time
# would be wrong on, and how long the onset of a stop itself goes on.
_ELSEWHERE_SEC, _OWN_ONSET_SEC = 0.2, 0.05


@dataclass(frozen=True)
class StopPitches:
    """The pitches of the stops of a course.

    Attributes
    ----------
    weights : np.ndarray [shape=(P, 88)], float32
        Share of each pitch of an onset map in each stop; they add up to 1.
    n_notes : np.ndarray [shape=(P,)], float32
        Number of notes of each stop, as far as it is known: at least 1, or 0 if its pitches say nothing.
    are_read : bool
        Whether they were read from an image, and are less certain than those of a score.
    doubtful : np.ndarray [shape=(P,)], float32, optional
        Share of the notes of each stop that may as well be missing or others: from 0, the default, to 1.
    """

    weights: Float32
    n_notes: Float32
    are_read: bool = False
    doubtful: Float32 | None = None


@dataclass(frozen=True)
class NearbyOnsets:
    """What begins before and after some stops; all of shape (n,), and 0 where that is not known.

    Attributes
    ----------
    earlier, later : np.ndarray
        How much more likely the pitches of each begin 0.1 to 0.2 s before or after it than at its time, in nats.
    passed : np.ndarray
        Strongest activation of any pitch between it and the next one.
    doubtful : np.ndarray
        See `StopPitches`.
    """

    earlier: Float64
    later: Float64
    passed: Float64
    doubtful: Float64

    @classmethod
    def unknown(cls, n_stops: int) -> NearbyOnsets:
        """Say nothing about some stops."""
        return cls(*np.zeros((4, n_stops)))


@dataclass(frozen=True)
class OnsetEvidence:
    """Log-likelihood ratios of onsets, on a grid of cells of `cell_sec`.

    Attributes
    ----------
    onsets : OnsetMap
    envelope : SoundEnvelope
        Onsets of anything, which count as well where pitches were read.
    pitches : StopPitches
    law : TimingLaw
    """

    onsets: OnsetMap
    envelope: SoundEnvelope
    pitches: StopPitches
    law: TimingLaw

    @cached_property
    def _cells(self) -> _Cells:
        return _Cells(self.onsets)

    @cached_property
    def _of_anything(self) -> Float32 | None:
        """Log-likelihood ratio that anything begins in each cell, which uncertain pitches leave room for."""
        if not self.pitches.are_read:
            return None
        steps = self.envelope.nats[: self.n_cells * _GROUP]
        steps = np.pad(steps, (0, self.n_cells * _GROUP - len(steps)))
        nats = self.law.envelope_weight * steps.reshape(-1, _GROUP).max(axis=1)
        return np.asarray(nats, dtype=np.float32)

    @property
    def cell_sec(self) -> float:
        """Duration of a cell."""
        return _GROUP * self.onsets.step_sec

    @property
    def start_sec(self) -> float:
        """Moment at which the first cell begins: half a step before the moment of its first step."""
        return self.onsets.start_sec - self.onsets.step_sec / 2

    @property
    def n_cells(self) -> int:
        """Number of cells."""
        return len(self.onsets) // _GROUP

    @property
    def sound_weight(self) -> float:
        """Share of the likelihoods of frames that counts beside it."""
        return self.law.sound_weight

    @property
    def certainty(self) -> Certainty | None:
        """How sure results are; None where that was not fitted."""
        return self.law.read_certainty if self.pitches.are_read else self.law.certainty

    def nats(self, stop: int, cells: slice) -> Float32:
        """Return the log-likelihood ratio that a stop begins in each of some cells [shape=(n,)]."""
        strength = self._cells.some(cells) @ self.pitches.weights[stop]
        nats = self.law.onset_nats(strength, float(self.pitches.n_notes[stop]), self.pitches.are_read)
        if self._of_anything is not None:
            nats = nats + self._of_anything[cells]
        return _without_cut(nats, np.arange(cells.start, cells.start + len(nats)), self.cell_sec)

    def block(self, cells: Int64, stops: slice) -> Float32:
        """Return the log-likelihood ratio that these stops, rather than others, begin in ranges of cells.

        The best cell of a range counts [shape=(n_ranges, n_stops)]. Each reaches up to the next one, and `cells`
        has one more for the end.
        """
        strength = self._cells.best_of_ranges(cells) @ self.pitches.weights[stops].T
        nats = self.law.onset_nats(strength, self.pitches.n_notes[stops], self.pitches.are_read)
        return _without_cut(nats, cells[:-1], self.cell_sec)

    def refined(self, stops: Int64, seconds: Float64) -> Float64:
        """Move the beginnings of stops, known to a cell, to the strongest onset of their pitches nearby.

        Pitches that are read may be wrong: where they hardly begin, any onset is taken.
        """
        if not self.law.refine_sec:
            return seconds
        activation, weights = self.onsets.activation, self.pitches.weights[stops]
        at = self.onsets.steps(seconds)
        reach = round(self.law.refine_sec / self.onsets.step_sec)
        away = np.arange(-reach - 1, reach + 2)
        around = np.clip(at[:, None] + away, 0, len(activation) - 1)
        # n: stops, p: pitches
        seen = np.stack([np.einsum("np,np->n", activation[step], weights) for step in around.T], axis=1)
        peak_sec, strongest = _peaks(seen, at, away, self.onsets.step_sec, self.onsets.start_sec, self.law)
        if self.pitches.are_read:
            any_sec = self.envelope.nearest_onset(seconds, self.law.refine_sec + self.envelope.step_sec)
            return np.where(strongest > self.law.read_onset_strength, peak_sec, any_sec)
        return np.where(strongest > self.law.faintest_strength, peak_sec, seconds)

    def activation(self, stops: Int64, seconds: Float64) -> Float64:
        """Return the mean activation of the pitches of each stop at its second, in nats [shape=(n,)]."""
        weights = self.pitches.weights[stops]
        struck = np.einsum("np,np->n", self.onsets.at(seconds + self.law.bias_sec), weights)
        return np.asarray(struck, dtype=np.float64)

    def nearby(self, stops: Int64, seconds: Float64) -> NearbyOnsets:
        """Return what begins before and after stops that begin at some seconds, which increase."""
        onsets, faintest, doubtful = self.onsets, self.law.faintest_strength, self.pitches.doubtful
        step = onsets.steps(seconds + self.law.bias_sec)
        nearest, furthest = (round(sec / onsets.step_sec) for sec in (NEAR_SEC, _ELSEWHERE_SEC))
        away = np.arange(nearest, furthest + 1, 2)  # an onset is seen in some steps around it
        weights, own = self.pitches.weights[stops], self.activation(stops, seconds)
        earlier, later = (
            np.log(_strongest_mean(onsets, step[:, None] + each, weights) + faintest) - own
            for each in (-away, away)
        )
        reach = round(_OWN_ONSET_SEC / onsets.step_sec)
        passed = onsets.strongest_between(step[:-1] + reach, step[1:] - reach)
        return NearbyOnsets(
            earlier,
            later,
            np.append(passed, np.zeros(min(len(stops), 1))),
            np.zeros(len(stops)) if doubtful is None else doubtful[stops].astype(np.float64),
        )


def _strongest_mean(onsets: OnsetMap, steps: Int64, weights: Float32) -> Float64:
    """Return the strongest of the mean activations of stops at some steps each [shape=(n,)].

    `steps` has the shape (n, m), and `weights` (n, 88).
    """
    strongest = np.zeros(len(steps), np.float32)
    for each in np.clip(steps, 0, len(onsets) - 1).T:  # n: stops, p: pitches
        np.maximum(strongest, np.einsum("np,np->n", onsets.activation[each], weights), out=strongest)
    return strongest.astype(np.float64)


def _without_cut(nats: Float32, cells: Int64, cell_sec: float) -> Float32:
    """Let nothing speak for an onset where the recording begins: what sounds there may have begun before."""
    at_cut = cells * cell_sec < _CUT_SEC
    if at_cut.any():
        nats[at_cut] = np.minimum(nats[at_cut], 0.0)
    return nats


class _Cells:
    """The strongest activations in cells of `_GROUP` steps; only those are kept that were asked for last."""

    def __init__(self, onsets: OnsetMap) -> None:
        self._onsets = onsets
        self._first, self._kept = 0, np.empty((0, N_PITCHES), np.float32)

    def __len__(self) -> int:
        return len(self._onsets) // _GROUP

    def some(self, cells: slice) -> Float32:
        """Return the activations in some cells [shape=(n, 88)]."""
        first, end, _ = cells.indices(len(self))
        if not self._first <= first <= end <= self._first + len(self._kept):
            self._first = first // _KEPT_CELLS * _KEPT_CELLS
            self._kept = self._onsets.pooled(_GROUP, slice(self._first, -(-end // _KEPT_CELLS) * _KEPT_CELLS))
        return self._kept[first - self._first : max(first, end) - self._first]

    def best_of_ranges(self, cells: Int64) -> Float32:
        """Return the strongest activations in ranges of cells, each up to the next one [shape=(n_ranges, 88)]."""
        begins = np.clip(cells[:-1], 0, len(self) - 1)
        end = int(np.clip(cells[-1], begins[-1] + 1, len(self)))
        some = self.some(slice(int(begins[0]), end))
        return np.asarray(np.maximum.reduceat(some, begins - begins[0], axis=0))


def _peaks(
    seen: Float32,
    at: Int64,
    away: Int64,
    step_sec: float,
    start_sec: float,
    law: TimingLaw,
) -> tuple[Float64, Float64]:
    """Find the peak of each row, near ones before far ones, finer than steps, and its height [shape=(n,)]."""
    inner = seen[:, 1:-1]
    value = np.log(inner + law.faintest_strength) - np.abs(away[1:-1]) / _SPREAD_STEPS
    best = value.argmax(axis=1)
    row = np.arange(len(seen))
    before, top, after = (seen[row, best + shift].astype(np.float64) for shift in (0, 1, 2))
    curvature = np.maximum(2 * top - before - after, 1e-6)
    between = np.clip((after - before) / (2 * curvature), -0.5, 0.5)
    return start_sec + (at + away[1:-1][best] + between) * step_sec - law.bias_sec, top
