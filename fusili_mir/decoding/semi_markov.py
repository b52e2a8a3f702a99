"""Timing stops: a semi-Markov model of how a score is played.

A path through frames (`viterbi`) tells roughly when each stop is played. Here each stop gets the cell of 20 ms in
which it begins, so that three log-likelihoods add up to the most:

    onset     how the sound begins there, for the pitches of this stop (`onset_evidence`)
    sound     how the frames from there to the next stop sound, by their embeddings
    duration  log-normal around the duration in the score times the local tempo (`timing_law`)

The tempo is that of the stops around, taken from the path first and then from the times found with it. Given the
tempo, the search is exact within the reach of each stop. Sums over all ways to time the stops, in place of the
best one, give the probability that a stop begins within a tenth of a second of its time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from functools import lru_cache
from itertools import pairwise

import numpy as np

from fusili_mir.arrays import Bool, Float32, Float64, Int32, Int64
from fusili_mir.decoding.certainty import NEAR_SEC
from fusili_mir.decoding.onset_evidence import NearbyOnsets, OnsetEvidence
from fusili_mir.decoding.stop_clues import StopClues
from fusili_mir.decoding.stop_likelihoods import StopLikelihoods
from fusili_mir.decoding.stop_pins import Stretch
from fusili_mir.decoding.timing_law import TimingLaw
from fusili_mir.decoding.viterbi import Block

__all__ = ["TimedStops", "played_stops", "time_stops"]

_NEVER = np.float32(-1e9)
# Set by hand; no fit is recorded.
_LONGEST_PASSED = 3  # stops in a row without a frame that may still have been played; more were left out
_LEAST_NATS = np.float32(-2.0)  # a frame that sounds different says so, and no more
_LONG_SEC = 2.5  # a stop may last so much longer than three times what is usual
_BLOCK_STOPS = 16  # for which likelihoods are computed together
_LEAST_GAP_SEC = 0.001  # no two stops share a second
_SPREADS = 1.645  # standard deviations of a normal distribution to either side that hold 90 %
_FIRST_NATS_PER_SEC = 0.5  # how much the first stop is drawn to where the path has it


@dataclass(frozen=True)
class _Round:
    """One of two rounds: the first finds the way with few durations, the second times it with all.

    Attributes
    ----------
    reach_sec : float
        How far a stop may move.
    n_smoothed : int
        Number of stops to either side over which the tempo is taken.
    n_durations : int
        How many usual durations are tried, at most; beyond that number they lie ever further apart.
    dense_sec : float
        Up to which duration all are tried, however short the stop should be: pauses end on an onset, too.
    """

    reach_sec: float
    n_smoothed: int
    n_durations: int
    dense_sec: float


# Set by hand; no fit is recorded.
_ROUNDS = (_Round(3.0, 40, 48, 0.0), _Round(1.0, 24, 400, 1.2))


@dataclass(frozen=True)
class TimedStops:
    """Stops with their times.

    Attributes
    ----------
    stops : np.ndarray of int [shape=(n,)]
        Those that were played. Strictly increasing.
    seconds : np.ndarray [shape=(n,)]
        When they begin. Strictly increasing.
    probability : np.ndarray [shape=(n,)]
        Probability that each begins within 0.1 s of that.
    margin_sec : np.ndarray [shape=(n,)]
        By how much each may begin earlier or later, with a probability of `INTERVAL_PROBABILITY`.
    clues : np.ndarray [shape=(n, n_clues)]
        What the two rest on; see `StopClues.table`.
    """

    stops: Int64
    seconds: Float64
    probability: Float64
    margin_sec: Float64
    clues: Float64

    @classmethod
    def joined(cls, parts: Sequence[TimedStops]) -> TimedStops:
        """Put parts one after another."""
        columns = ([getattr(part, each.name) for part in parts] for each in fields(cls))
        return cls(*(np.concatenate(column) for column in columns))

    def among(self, rows: Bool) -> TimedStops:
        """Return some of the stops."""
        return type(self)(*(getattr(self, each.name)[rows] for each in fields(self)))


def played_stops(stop: Int64) -> Int64:
    """Return the stops from the first to the last of a path, without those that were left out."""
    visited = np.unique(stop)
    runs = [
        np.arange(here, there if there - here - 1 <= _LONGEST_PASSED else here + 1)
        for here, there in pairwise(visited.tolist())
    ]
    return np.concatenate([*runs, visited[-1:]])


def time_stops(
    stop: Int64,
    frame: Int64,
    likelihoods: StopLikelihoods,
    evidence: OnsetEvidence,
    start_sec: float,
    frame_sec: float,
    law: TimingLaw | None = None,
    stretch: Stretch | None = None,
) -> TimedStops:
    """Time the stops of a path.

    Parameters
    ----------
    stop : np.ndarray of int [shape=(m,)]
        Stop in each frame of music. Non-decreasing.
    frame : np.ndarray of int [shape=(m,)]
        The frames of music. Strictly increasing.
    likelihoods : StopLikelihoods
        Log-likelihoods of all frames.
    evidence : OnsetEvidence
    start_sec, frame_sec : float
        Moment of the first frame, and time from one frame to the next.
    law : TimingLaw, optional
    stretch : Stretch, optional
        Stretch to which all stops belong. If the stop after it is pinned, it is the last one of the path.

    Returns
    -------
    TimedStops
    """
    law = law or TimingLaw()
    course = likelihoods.similarity.course
    stops = played_stops(stop)
    visited, first = np.unique(stop, return_index=True)
    arrival_sec = np.interp(course.start[stops], course.start[visited], start_sec + frame[first] * frame_sec)
    lasting = course.start[stops + 1] - course.start[stops]
    path_sec = arrival_sec
    probability = spread_sec = rival = np.zeros(len(stops))
    pins = _Pins.of(stretch, len(stops), evidence)
    if pins.are_too_close:
        evenly_sec = pins.evenly(course.start[stops])
        lost_sec = np.full(len(stops), pins.stretch.to_sec - pins.stretch.from_sec)
        nearby = NearbyOnsets.unknown(len(stops))
        unknown = StopClues(probability, lost_sec, probability, evenly_sec, lost_sec, path_sec, rival, nearby)
        return TimedStops(stops, evenly_sec, probability, lost_sec, unknown.table())
    for each in _ROUNDS:
        tempo = local_tempo(lasting, arrival_sec, each.n_smoothed)
        expected_sec = [
            law.expected_sec(float(duration), float(sec_per_unit))
            for duration, sec_per_unit in zip(lasting, tempo, strict=True)
        ]
        lattice = pins.keep(_Lattice.around(arrival_sec, each.reach_sec, evidence))
        terms = _Terms(
            stops, expected_sec, lasting, lattice, likelihoods, evidence, start_sec, frame_sec, law, each
        )
        is_last = each is _ROUNDS[-1]
        cells, probability, spread_sec, rival = _best_cells(terms, arrival_sec, with_probability=is_last)
        arrival_sec = evidence.start_sec + (cells + 0.5) * evidence.cell_sec
    refined_sec = pins.keep_seconds(evidence.refined(stops, arrival_sec))
    seconds = pins.keep_seconds(_strictly_increasing(refined_sec, pins.keep_seconds(arrival_sec)))
    seen = StopClues(
        probability,
        spread_sec,
        evidence.activation(stops, seconds),
        seconds,
        np.array(expected_sec),
        path_sec,
        rival,
        evidence.nearby(stops, seconds),
    )
    clues, certainty = seen.table(), evidence.certainty
    margin_sec = evidence.cell_sec + _SPREADS * spread_sec
    if certainty is not None:
        probability, margin_sec = certainty.probability(clues), certainty.margin_sec(clues)
    return TimedStops(stops, seconds, *pins.keep_certain(probability, margin_sec), clues)


def local_tempo(lasting: Float64, arrival_sec: Float64, n_smoothed: int) -> Float64:
    """Return how many seconds a unit of the score takes around each stop [shape=(n,)].

    It is the slope of a line through the arrivals; where a line makes no sense, that of the whole path.
    """
    position = np.cumsum(lasting) - lasting
    span = arrival_sec[-1] - arrival_sec[0]
    overall = max(span / position[-1], 1e-3) if position[-1] > 0 and span > 0 else 0.5
    number = np.arange(len(arrival_sec))
    first, end = np.maximum(number - n_smoothed, 0), np.minimum(number + n_smoothed + 1, len(arrival_sec))

    def mean(values: Float64) -> Float64:
        summed = np.append(0.0, np.cumsum(values))
        return np.asarray((summed[end] - summed[first]) / (end - first))

    x, y = position - position.mean(), arrival_sec - arrival_sec.mean()
    variance = mean(x * x) - mean(x) ** 2
    covariance = mean(x * y) - mean(x) * mean(y)
    makes_sense = variance > 1e-9 * max(float(np.abs(x).max()) ** 2, 1e-9)
    slope = np.where(makes_sense, covariance / np.where(makes_sense, variance, 1.0), overall)
    return np.where((slope > overall / 5) & (slope < overall * 5), slope, overall)


@dataclass(frozen=True)
class _Lattice:
    """From which to which cell each stop may begin: ``first <= cell < end``."""

    first: Int64
    end: Int64

    @classmethod
    def around(cls, arrival_sec: Float64, reach_sec: float, evidence: OnsetEvidence) -> _Lattice:
        middle = np.rint((arrival_sec - evidence.start_sec) / evidence.cell_sec).astype(np.int64)
        reach = max(2, round(reach_sec / evidence.cell_sec))
        n_cells = evidence.n_cells
        first = np.maximum.accumulate(np.clip(middle - reach, 0, max(n_cells - 1, 0)))
        end = np.maximum.accumulate(np.minimum(middle + reach + 1, n_cells))
        return cls(first, np.maximum(end, first + 1))


@dataclass(frozen=True)
class _Pins:
    """What is known beforehand about when some successive stops begin; see `Stretch`."""

    stretch: Stretch
    n_stops: int
    evidence: OnsetEvidence

    @classmethod
    def of(cls, stretch: Stretch | None, n_stops: int, evidence: OnsetEvidence) -> _Pins:
        return cls(stretch or Stretch(0, n_stops), n_stops, evidence)

    @property
    def are_too_close(self) -> bool:
        """Whether the stops would have less than a cell each."""
        cells = (self.stretch.to_sec - self.stretch.from_sec) / self.evidence.cell_sec
        return cells < self.n_stops + 1

    def evenly(self, position: Float64) -> Float64:
        """Spread stops over the stretch, as far apart as they are in the score."""
        last = position[-1] if position[-1] > position[0] else position[0] + 1.0
        share = (position - position[0]) / (last - position[0])
        number = np.arange(self.n_stops) / max(self.n_stops - 1, 1)
        share = np.maximum.accumulate(0.9 * share + 0.1 * number)  # no two together
        length = self.stretch.to_sec - self.stretch.from_sec
        inside = 1.0 if self.stretch.next_is_pinned else self.n_stops / (self.n_stops + 1)
        return np.asarray(self.stretch.from_sec + share * length * inside)

    def _cell(self, second: float) -> int:
        """Return the cell of a second: for minus infinity the first, for infinity the last."""
        cells = (second - self.evidence.start_sec) / self.evidence.cell_sec
        return int(np.clip(cells, 0, max(self.evidence.n_cells - 1, 0)))

    def keep(self, lattice: _Lattice) -> _Lattice:
        """Leave to each stop the cells in which it may begin, given those that are known."""
        stretch = self.stretch
        low, high = self._cell(stretch.from_sec), self._cell(stretch.to_sec)
        first, end = lattice.first.clip(low, high), lattice.end.clip(low + 1, high + 1)
        if stretch.is_pinned:
            first[0], end[0] = low, low + 1
        if stretch.next_is_pinned:
            first[-1], end[-1] = high, high + 1
        return _Lattice(first, np.maximum(end, first + 1))

    def keep_seconds(self, seconds: Float64) -> Float64:
        """Return times within the stretch, at least a millisecond apart from its ends and from each other."""
        stretch, number = self.stretch, np.arange(self.n_stops)
        earliest = stretch.from_sec + (number + (not stretch.is_pinned)) * _LEAST_GAP_SEC
        latest = stretch.to_sec - (self.n_stops - number - stretch.next_is_pinned) * _LEAST_GAP_SEC
        kept = np.clip(seconds, earliest, latest)
        if stretch.is_pinned:
            kept[0] = stretch.from_sec
        if stretch.next_is_pinned:
            kept[-1] = stretch.to_sec
        return kept

    def keep_certain(self, probability: Float64, margin_sec: Float64) -> tuple[Float64, Float64]:
        """Be certain of what is known."""
        number = np.arange(self.n_stops)
        known = (number < int(self.stretch.is_pinned)) | (
            number >= self.n_stops - int(self.stretch.next_is_pinned)
        )
        return np.where(known, 1.0, probability), np.where(known, 0.0, margin_sec)


@dataclass(frozen=True)
class _Terms:
    """The log-likelihoods of one round."""

    stops: Int64
    expected_sec: list[float]
    lasting: Float64
    lattice: _Lattice
    likelihoods: StopLikelihoods
    evidence: OnsetEvidence
    start_sec: float
    frame_sec: float
    law: TimingLaw
    round: _Round

    def onset(self, number: int) -> Float32:
        """Return what a stop gains by beginning in each of its cells."""
        cells = slice(int(self.lattice.first[number]), int(self.lattice.end[number]))
        return self.evidence.nats(int(self.stops[number]), cells)

    def durations(self, number: int) -> tuple[Int64, Float32]:
        """Return how many cells a stop may last, and what each duration costs."""
        cell_sec, expected_sec = self.evidence.cell_sec, self.expected_sec[number]
        n_usual = max(int(2.2 * expected_sec / cell_sec), int(self.round.dense_sec / cell_sec), 6)
        first, end = self.lattice.first, self.lattice.end
        way = max(first[number + 1] - first[number], end[number + 1] - end[number])
        if way > max(n_usual, self.round.reach_sec / cell_sec):  # the path has a pause here, however long
            usual = _usual_cells(n_usual, self.round.n_durations)
            cells = np.concatenate((usual, np.arange(n_usual + 1, end[number + 1] - first[number])))
        else:
            cells = _tried_cells(n_usual, self.round.n_durations, cell_sec)
        reachable = (cells > first[number + 1] - end[number]) & (cells < end[number + 1] - first[number])
        cells = cells[reachable] if reachable.any() else cells[:1]
        is_grace = bool(self.lasting[number] < 1e-6)
        is_spaced = self.likelihoods.similarity.course.is_spaced
        cost = self.law.duration_cost(
            (cells * cell_sec).astype(np.float32), expected_sec, is_grace, is_spaced
        )
        return cells, cost

    def sounds(self) -> Iterator[tuple[Float32, Float32]]:
        """Yield, for each stop, the sums of its likelihoods up to its own cells, and up to those of the next."""
        n_frames = len(self.likelihoods.baseline)
        first, end = self.lattice.first, self.lattice.end
        n_stops = len(self.stops)
        for block in range(0, n_stops, _BLOCK_STOPS):
            after = min(block + _BLOCK_STOPS, n_stops)
            frames = slice(
                min(max(int(self._frame(first[block])), 0), n_frames - 1),
                max(1, min(int(self._frame(end[min(after, n_stops - 1)])) + 2, n_frames)),
            )
            stops = slice(int(self.stops[block]), int(self.stops[after - 1]) + 1)
            nats = np.maximum(self.likelihoods(Block(frames, stops)), _LEAST_NATS)
            nats *= np.float32(self.evidence.sound_weight)
            for number in range(block, after):
                summed = np.append(
                    0.0, np.cumsum(nats[:, self.stops[number] - stops.start], dtype=np.float64)
                )
                following = min(number + 1, n_stops - 1)
                yield (
                    self._at(summed, frames.start, first[number], end[number]),
                    self._at(summed, frames.start, first[following], end[following]),
                )

    def _frame(self, cell: np.int64) -> float:
        """Return the frame, and the part of it, at which a cell has its middle."""
        second = self.evidence.start_sec + (float(cell) + 0.5) * self.evidence.cell_sec
        return (second - self.start_sec) / self.frame_sec

    def _at(self, summed: Float64, first_frame: int, first: np.int64, end: np.int64) -> Float32:
        place = self._frame(first) + np.arange(end - first) * self.evidence.cell_sec / self.frame_sec
        return np.asarray(np.interp(place - first_frame, np.arange(len(summed)), summed), np.float32)


def _usual_cells(n_usual: int, n_durations: int) -> Int64:
    """Return durations up to the longest usual one: all, or so many that grow by about the same factor."""
    if n_usual <= n_durations:
        return np.arange(1, n_usual + 1)
    return np.asarray(np.unique(np.rint(np.geomspace(1, n_usual, n_durations))), dtype=np.int64)


@lru_cache(maxsize=512)  # many stops last about as long
def _tried_cells(n_usual: int, n_durations: int, cell_sec: float) -> Int64:
    """Return usual durations and some longer ones, in cells, increasing; not to be written to."""
    longest = 3 * n_usual + _LONG_SEC / cell_sec
    long = np.unique(np.rint(np.geomspace(n_usual + 1, longest, 12)))
    cells = np.asarray(np.concatenate((_usual_cells(n_usual, n_durations), long)), dtype=np.int64)
    cells.flags.writeable = False
    return cells


@dataclass(frozen=True)
class _Column:
    """One stop of the lattice: log-likelihoods for each cell in which it may begin.

    `until_here` and `until_next` are sums of the likelihoods of its frames, up to its own cells and up to those
    of the next stop; `total` is the sum over all ways to each cell.
    """

    onset: Float32
    until_here: Float32
    until_next: Float32
    total: Float32


def _best_cells(
    terms: _Terms, arrival_sec: Float64, with_probability: bool
) -> tuple[Int64, Float64, Float64, Float64]:
    """Find the cells in which stops begin and, if asked for, how probable, spread and unrivalled each is."""
    first, end, evidence = terms.lattice.first, terms.lattice.end, terms.evidence
    columns: list[_Column] = []  # all of them, if probabilities are asked for
    before: _Column | None = None
    sources: list[Int32] = []
    best = np.zeros(0, np.float32)
    for number, (until_here, until_next) in enumerate(terms.sounds()):
        onset = terms.onset(number)
        if before is None:
            middle_sec = evidence.start_sec + (np.arange(first[0], end[0]) + 0.5) * evidence.cell_sec
            drawn = _FIRST_NATS_PER_SEC * np.abs(middle_sec - arrival_sec[0])
            best = total = (onset - drawn).astype(np.float32)
            source = np.zeros(len(onset), np.int64)
        else:
            cells, cost = terms.durations(number - 1)
            here = _shifted(first[number], end[number], -cells, first[number - 1], end[number - 1])
            ways = np.append(best - before.until_here, _NEVER)[here] - cost
            chosen = ways.argmax(axis=1)[:, None]
            source = np.take_along_axis(here, chosen, axis=1)[:, 0]
            gain = before.until_next + onset
            best = np.take_along_axis(ways, chosen, axis=1)[:, 0] + gain
            total = best
            if with_probability:
                total = _log_sum(np.append(before.total - before.until_here, _NEVER)[here] - cost) + gain
        best, total = best - best.max(), total - total.max()
        before = _Column(onset, until_here, until_next, total)
        sources.append(source.astype(np.int32))
        if with_probability:
            columns.append(before)
    chosen_cells = np.empty(len(sources), np.int64)
    chosen_cells[-1] = int(best.argmax())
    for number in range(len(sources) - 1, 0, -1):
        last = int(end[number - 1] - first[number - 1]) - 1
        chosen_cells[number - 1] = min(int(sources[number][chosen_cells[number]]), last)
    if not with_probability:
        return first + chosen_cells, np.ones(len(sources)), np.zeros(len(sources)), np.zeros(len(sources))
    return first + chosen_cells, *_posterior(chosen_cells, columns, terms)


def _posterior(chosen: Int64, columns: list[_Column], terms: _Terms) -> tuple[Float64, Float64, Float64]:
    """Return the posterior probability of beginning near the chosen cells, the spread, and the lead over rivals.

    All come from sums over all ways. The spread, in seconds, is the root of the mean square distance from the
    chosen cell. The last is how much likelier the best cell nearby is than the best one elsewhere, in nats;
    infinite if there is none.
    """
    first, end = terms.lattice.first, terms.lattice.end
    near = round(NEAR_SEC / terms.evidence.cell_sec)
    probability, spread_sec, rival = (np.empty(len(columns)) for _ in range(3))
    after = np.zeros_like(columns[-1].total)  # sums over all ways to go on from each cell
    for number in range(len(columns) - 1, -1, -1):
        here = columns[number]
        together = here.total + after
        weight = np.exp(together - together.max())
        begin, end_near = max(chosen[number] - near, 0), chosen[number] + near + 1
        probability[number] = weight[begin:end_near].sum() / weight.sum()
        elsewhere = max(together[:begin].max(initial=-np.inf), together[end_near:].max(initial=-np.inf))
        rival[number] = together[begin:end_near].max() - elsewhere
        away = np.arange(len(weight)) - chosen[number]
        spread_sec[number] = np.sqrt(weight @ away**2 / weight.sum()) * terms.evidence.cell_sec
        if number:
            before = columns[number - 1]
            cells, cost = terms.durations(number - 1)
            there = _shifted(first[number - 1], end[number - 1], cells, first[number], end[number])
            gain = np.append(after + here.onset + before.until_next, _NEVER)
            after = _log_sum(gain[there] - cost) - before.until_here
            after = after - after.max()
    return probability, spread_sec, rival


def _shifted(first: np.int64, end: np.int64, by: Int64, other_first: np.int64, other_end: np.int64) -> Int64:
    """Count cells, each moved by some numbers, among those of another stop; its number for those beyond it."""
    moved = np.arange(first, end)[:, None] + by - other_first
    n_other = other_end - other_first
    return np.where((moved >= 0) & (moved < n_other), moved, n_other)


def _log_sum(nats: Float32) -> Float32:
    """Return the logarithm of the sum of exponentials of each row."""
    top = nats.max(axis=1, keepdims=True)
    return np.asarray(top[:, 0] + np.log(np.exp(nats - top).sum(axis=1)), dtype=np.float32)


def _strictly_increasing(seconds: Float64, coarse: Float64) -> Float64:
    """Return refined times in order; those that would be out of order stay where they were, or nearly."""
    ordered = seconds.copy()
    for number in range(1, len(ordered)):
        if ordered[number] <= ordered[number - 1] + _LEAST_GAP_SEC:
            ordered[number] = max(coarse[number], ordered[number - 1] + _LEAST_GAP_SEC)
    return ordered
