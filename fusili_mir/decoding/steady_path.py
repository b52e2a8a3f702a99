"""Settling a path: every stop begins with an onset and lasts about as long as the local tempo predicts.

Similarities alone cannot distinguish the second of two equal chords from the first. Here each stop is assigned
the frame in which it begins, to maximise the sum of three terms: how well the frames up to the next stop match,
the onset at its beginning, and how well its duration fits. The expected duration comes from the path itself,
smoothed over many stops at first and over fewer later.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from fusili_mir.arrays import Float32, Float64, Int64
from fusili_mir.decoding.stop_likelihoods import StopLikelihoods
from fusili_mir.decoding.viterbi import Block

__all__ = ["settle"]

_NEVER = np.float32(-1e9)
_LONGEST_PASSED = 3  # stops in a row that may have been played without a frame; longer runs were left out
_LEAST_NATS = np.float32(-2.0)  # limits what a single frame that sounds different can cost
_MOST_COST = 30.0  # largest cost of a duration, in nats
_ROUNDED_FRAMES = 0.7  # uncertainty of a duration
_BLOCK_STOPS = 16


@dataclass(frozen=True)
class _Pass:
    """Settings of one of several passes.

    Attributes
    ----------
    n_smoothed : int
        Number of stops on either side over which the tempo is smoothed.
    reach_sec : float
        Largest distance that a stop may move.
    loosened : float
        Factor by which the spread of durations is widened; 1 in the end.
    """

    n_smoothed: int
    reach_sec: float
    loosened: float


_PASSES = (_Pass(40, 6.0, 1.6), _Pass(40, 6.0, 1.3), _Pass(30, 4.0, 1.0), _Pass(30, 4.0, 1.0))


def settle(stop: Int64, likelihoods: StopLikelihoods, onset: Float32, frame_sec: float) -> Int64:
    """Move the beginnings of stops to onsets at a steady tempo.

    Parameters
    ----------
    stop : np.ndarray of int [shape=(M,)]
        A path: the stop of each frame. Non-decreasing.
    likelihoods : StopLikelihoods
        Likelihoods of these frames.
    onset : np.ndarray [shape=(M,)]
        Gain of a stop that begins in each frame, in nats.
    frame_sec : float
        Time from one frame to the next.

    Returns
    -------
    np.ndarray of int [shape=(M,)]
        The settled path; -1 before the first stop begins.
    """
    course = likelihoods.similarity.course
    stops = _played_stops(stop)
    visited, first = np.unique(stop, return_index=True)
    arrival = np.interp(course.start[stops], course.start[visited], first)
    lasting = course.start[stops + 1] - course.start[stops]
    for each in _PASSES:
        expected = lasting * _local_tempo(lasting, arrival, each.n_smoothed)
        reach = max(4, round(each.reach_sec / frame_sec))
        arrival = _best_arrivals(
            stops, arrival, expected, likelihoods, onset, reach, each.loosened * course.spread
        )
    number = np.searchsorted(arrival, np.arange(len(stop)), side="right") - 1
    return np.where(number >= 0, stops[number], -1)


def _played_stops(stop: Int64) -> Int64:
    """Return the stops from the first to the last of a path, except those that were left out."""
    visited = np.unique(stop)
    runs = [
        np.arange(here, there if there - here - 1 <= _LONGEST_PASSED else here + 1)
        for here, there in pairwise(visited.tolist())
    ]
    return np.concatenate([*runs, visited[-1:]])


def _local_tempo(lasting: Float64, arrival: Float64, n_smoothed: int) -> Float64:
    """Return the local tempo at each stop, in frames per unit of the score.

    It is the slope of a line through the arrivals nearby; where a line makes no sense, that of the whole path.
    """
    position = np.cumsum(lasting) - lasting
    overall = (arrival[-1] - arrival[0]) / position[-1] if position[-1] > 0 else 1.0
    number = np.arange(len(arrival))
    first, end = np.maximum(number - n_smoothed, 0), np.minimum(number + n_smoothed + 1, len(arrival))

    def mean(values: Float64) -> Float64:
        summed = np.append(0.0, np.cumsum(values))
        return np.asarray((summed[end] - summed[first]) / (end - first))

    x, y = position - position.mean(), arrival - arrival.mean()
    variance = mean(x * x) - mean(x) ** 2
    covariance = mean(x * y) - mean(x) * mean(y)
    makes_sense = variance > 1e-9 * max(float(np.abs(x).max()) ** 2, 1e-9)
    slope = np.where(makes_sense, covariance / np.where(makes_sense, variance, 1.0), overall)
    return np.where((slope > overall / 5) & (slope < overall * 5), slope, overall)


def _best_arrivals(
    stops: Int64,
    arrival: Float64,
    expected: Float64,
    likelihoods: StopLikelihoods,
    onset: Float32,
    reach: int,
    spread: float,
) -> Float64:
    """Find the best frame for each stop to begin in, within `reach` frames of its arrival, by Viterbi search."""
    n_frames, width = len(onset), 2 * reach + 1
    earliest = np.maximum.accumulate(np.clip(np.rint(arrival).astype(np.int64) - reach, 0, n_frames - 1))
    onsets = np.append(onset, np.full(width, _NEVER))
    best = onsets[earliest[0] : earliest[0] + width]  # best total with the last stop beginning in each frame
    sources = np.empty((len(stops), width), np.int16)
    for number, heard in enumerate(_heard(stops, earliest, width, likelihoods)):
        left = best - heard[:width]
        if number + 1 == len(stops):
            best = left + heard[-1]
            break
        later = int(earliest[number + 1] - earliest[number])
        cost = _duration_cost(later + np.arange(-width + 1, width), expected[number], spread)
        # Row a, column b: this stop begins in its frame a, the next one in its frame b.
        costs = np.lib.stride_tricks.sliding_window_view(cost, width)[::-1]
        totals = left[:, None] - costs
        same = np.arange(later, width)  # a stop without a frame has no onset
        totals[same, same - later] -= onsets[earliest[number] + same]
        source = totals.argmax(axis=0)
        sources[number + 1] = source
        best = np.take_along_axis(totals, source[None], axis=0)[0]
        best += heard[later : later + width] + onsets[earliest[number + 1] : earliest[number + 1] + width]
    chosen = np.empty(len(stops), np.int64)
    chosen[-1] = int(best.argmax())
    for number in range(len(stops) - 1, 0, -1):
        chosen[number - 1] = sources[number, chosen[number]]
    return (earliest + chosen).astype(np.float64)


def _heard(stops: Int64, earliest: Int64, width: int, likelihoods: StopLikelihoods) -> Iterator[Float32]:
    """Yield, for each stop, cumulative sums of its likelihoods from the first frame in which it may begin.

    They extend to the last frame in which the next stop may begin, or to the end; beyond it they are constant.
    """
    n_frames = len(likelihoods.baseline)
    for first in range(0, len(stops), _BLOCK_STOPS):
        end = min(first + _BLOCK_STOPS, len(stops))
        last_frame = int(earliest[end]) + width if end < len(stops) else n_frames
        frames = slice(int(earliest[first]), min(last_frame, n_frames))
        nats = likelihoods(Block(frames, slice(int(stops[first]), int(stops[end - 1]) + 1)))
        np.maximum(nats, _LEAST_NATS, out=nats)
        for number in range(first, end):
            since = int(earliest[number]) - frames.start
            until = int(earliest[number + 1]) + width - frames.start if number + 1 < len(stops) else None
            summed = np.cumsum(nats[since:until, stops[number] - stops[first]], dtype=np.float32)
            n_missing = max(width, until - since if until is not None else 0) - len(summed)
            yield np.concatenate((np.zeros(1, np.float32), summed, np.full(max(n_missing, 0), summed[-1])))


def _duration_cost(duration: Int64, expected: float, spread: float) -> Float32:
    """Return the cost of durations, in frames: 0 for the expected one."""
    ratio = np.log((np.maximum(duration, 0) + _ROUNDED_FRAMES) / (expected + _ROUNDED_FRAMES))
    variance = spread**2 + (_ROUNDED_FRAMES / (expected + _ROUNDED_FRAMES)) ** 2
    cost = np.minimum(ratio**2 / (2 * variance), _MOST_COST)
    return np.where(duration < 0, -_NEVER, cost).astype(np.float32)
