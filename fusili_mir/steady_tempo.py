"""What a steady tempo tells about stops that cannot be told apart by ear.

The rough path says when most stops are reached. Where a stop sounds like the one before it, that time means
nothing: it is taken from those around it, as the score has them in time.
"""

from __future__ import annotations

import numpy as np
from scipy.ndimage import uniform_filter1d

from fusili_mir.geometry import Float64
from fusili_mir.rough_search import RoughSearch
from fusili_mir.similarity import Float32
from fusili_mir.viterbi import Block, DecodedPath

__all__ = ["expected_frames", "tempo_penalty"]

_SMOOTHED_STOPS = 9
_MIN_LEAD = 1.0  # nats a frame, by which a stop that is reached must come to stand out from the one before
_MOST_PENALTY = np.float32(3.0)


def expected_frames(rough: RoughSearch, path: DecodedPath) -> Float32:
    """Say when stops are to be expected at a steady tempo.

    Parameters
    ----------
    rough : RoughSearch
    path : DecodedPath
        Its path, in groups.

    Returns
    -------
    np.ndarray [shape=(P + 1,)]
        The frame in which each stop begins, and the last one ends: those of the path where they are telling,
        with what they depart from a constant tempo averaged over neighbours.
    """
    by_frame, by_stop = rough.factors
    start, n_frames = rough.similarity.course.start, len(rough.similarity.frames)
    music = np.flatnonzero(~path.is_filler)
    if not len(music):
        return np.linspace(0, n_frames, len(start), dtype=np.float32)
    groups, first = np.unique(path.stop[music], return_index=True)
    frames = music[first]
    before = np.maximum(frames - 1, 0)
    old = path.stop[before]
    lead = rough.scores[frames, groups] - rough.scores[frames, old]
    lead -= rough.scores[before, groups] - rough.scores[before, old]
    telling = (lead > _MIN_LEAD * by_frame) | path.is_filler[before] | (np.arange(len(groups)) == 0)
    last = min((groups[-1] + 1) * by_stop, len(start) - 1)
    beats = np.append(start[groups[telling] * by_stop], start[last])
    arrival = np.append(frames[telling] * by_frame, min((music[-1] + 1) * by_frame, n_frames)).astype(
        np.float64
    )
    return _smoothed(start, beats, arrival)


def _smoothed(start: Float64, beats: Float64, arrival: Float64) -> Float32:
    span = beats[-1] - beats[0]
    if span <= 0:
        return np.linspace(arrival[0], arrival[-1], len(start), dtype=np.float32)
    steady = arrival[0] + (arrival[-1] - arrival[0]) * (beats - beats[0]) / span
    smooth = steady + uniform_filter1d(arrival - steady, _SMOOTHED_STOPS, mode="nearest")
    return np.maximum.accumulate(np.interp(start, beats, smooth)).astype(np.float32)


def tempo_penalty(expected: Float32, block: Block, weight: float) -> Float32:
    """Return what stops pay for being away from where they are expected.

    Parameters
    ----------
    expected : np.ndarray [shape=(P + 1,)]
        Of `expected_frames`.
    block : Block
    weight : float
        Nats for each frame of distance; a little at most, so that it only decides where the ear cannot.

    Returns
    -------
    np.ndarray [shape=(n_frames, n_stops)]
    """
    frame = np.arange(block.frames.start, block.frames.stop, dtype=np.float32)[:, None]
    begins, ends = expected[block.stops], expected[block.stops.start + 1 : block.stops.stop + 1]
    away = np.maximum(begins - frame - 0.5, frame + 0.5 - ends)
    np.maximum(away, 0.0, out=away)
    away *= np.float32(weight)
    return np.minimum(away, _MOST_PENALTY, out=away)
