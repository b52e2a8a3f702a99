"""Which places of a score begin to sound when, as a path along columns tells.

A note head is several columns wide, and which of them the path visits while the note is held means little:
columns that sound alike are one place, and it begins when the path first comes to any of them. What lies between
two places is passed evenly, on the page and in time.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from fusili_mir.decoding import WarpingPath
from fusili_mir.geometry import Float64, FrameGrid, Int64
from fusili_mir.similarity import CourseSimilarity, Float32

__all__ = ["SoundingPlaces", "sounding_places"]

_MIN_LEAD = 0.3  # nats a frame, by which a place must stand out from its neighbours
_MIN_EVIDENCE = 1.0  # nats in all
_REACH = 32  # stops to either side of the path that may sound alike


@dataclass(frozen=True)
class SoundingPlaces:
    """Places in playing order, and when each begins.

    Attributes
    ----------
    first, last : np.ndarray [shape=(n,)]
        From where to where each reaches on the course, in stops: 3.5 is the middle of stop 3.
    onset_sec : np.ndarray [shape=(n,)]
        Never falls.
    """

    first: Float64
    last: Float64
    onset_sec: Float64

    def position(self, seconds: Float64, lengths: Float64) -> Float64:
        """Return where on the course the music is.

        Parameters
        ----------
        seconds : np.ndarray [shape=(m,)]
        lengths : np.ndarray [shape=(P,)]
            How long the way through each stop is.

        Returns
        -------
        np.ndarray [shape=(m,)]
            In stops. A place is crossed at once when it begins; then it goes on evenly to the next.
        """
        edges = np.arange(len(lengths) + 1)
        way = np.append(0.0, np.cumsum(lengths))
        reached = np.interp(np.stack((self.first, self.last), axis=1).ravel(), edges, way)
        return np.interp(np.interp(seconds, np.repeat(self.onset_sec, 2), reached), way, edges)


def sounding_places(
    path: WarpingPath, similarity: CourseSimilarity, scale: float, grid: FrameGrid
) -> SoundingPlaces:
    """Find the places that a path along columns comes to.

    Parameters
    ----------
    path : WarpingPath
    similarity : CourseSimilarity
        That the path was found with.
    scale : float
        Of the cosines, as the bundle's model learnt it.
    grid : FrameGrid
        Of the recording.

    Returns
    -------
    SoundingPlaces
        At least one: where the path is all the time, if nothing sounds like the score.
    """
    music = np.flatnonzero(~path.is_filler)
    if not len(music):
        music = np.arange(len(path.stop))
    heard = replace(similarity, frames=similarity.frames[music])
    begin = _beginnings(path.stop[music], heard, scale)
    extents = _extents(path.stop[music], begin, heard, scale)
    onset = _onsets(begin, extents.best, heard, music)
    return SoundingPlaces(extents.first, extents.last, grid.start_sec + onset * grid.frame_sec)


def _beginnings(stops: Int64, similarity: CourseSimilarity, scale: float) -> Int64:
    """Return the frames in which the path comes to something new.

    A stay at a stop that the stop before or the stop after would explain almost as well is no place of its own;
    its frames go to the better of the two.
    """
    begin = np.flatnonzero(np.diff(stops, prepend=-1))
    while len(begin) > 1:
        n_frames = np.diff(begin, append=len(stops))
        middle = stops[begin + n_frames // 2]
        sounds = replace(similarity, frames=_means(similarity.frames, begin))
        place = np.arange(len(begin))
        before = np.append(-np.inf, sounds.pairs(place[1:], middle[:-1]))
        after = np.append(sounds.pairs(place[:-1], middle[1:]), -np.inf)
        lead = scale * (sounds.pairs(place, middle) - np.maximum(before, after))
        # In nats, over what a place must have to be one.
        excess = n_frames * lead - np.maximum(_MIN_LEAD * n_frames, _MIN_EVIDENCE)
        weakest = (
            (excess < 0)
            & (excess <= np.append(np.inf, excess[:-1]))
            & (excess < np.append(excess[1:], np.inf))
        )
        if not weakest.any():
            return begin
        joins_after = np.flatnonzero(weakest & (after > before))
        begin[joins_after + 1] = begin[joins_after]
        begin = np.unique(np.delete(begin, np.flatnonzero(weakest)))
    return begin


def _means(frames: Float32, begin: Int64) -> Float32:
    """Average the frames of each stretch that begins at one of some frames [shape=(n, d)]."""
    sums = np.add.reduceat(frames, begin, axis=0)
    return np.asarray(sums / np.diff(begin, append=len(frames))[:, None], dtype=np.float32)


@dataclass(frozen=True)
class _Extents:
    """From where to where places reach, see `SoundingPlaces`, and the stop of each that sounds most like it."""

    first: Float64
    last: Float64
    best: Int64


def _extents(stops: Int64, begin: Int64, similarity: CourseSimilarity, scale: float) -> _Extents:
    """Find all stops that sound like what was heard at each place."""
    sounds = replace(similarity, frames=_means(similarity.frames, begin))
    first, last = np.empty(len(begin)), np.empty(len(begin))
    best = np.empty(len(begin), dtype=np.int64)
    left = 0
    for place, (start, end) in enumerate(zip(begin, np.append(begin[1:], len(stops)), strict=True)):
        right = stops[end] if end < len(stops) else len(similarity.course)
        visited = slice(stops[start], stops[end - 1] + 1)
        window = slice(max(left, visited.start - _REACH), min(right, visited.stop + _REACH))
        nats = scale * sounds.block(slice(place, place + 1), window)[0]
        run = _alike(nats, slice(visited.start - window.start, visited.stop - window.start))
        first[place], last[place] = window.start + run.start + 0.5, window.start + run.stop - 0.5
        best[place] = window.start + run.start + int(nats[run].argmax())
        left = max(window.start + run.stop, visited.stop)
    # What is wider than note heads are holds several of them, or none.
    return _Extents(first, np.minimum(last, first + np.median(last - first)), best)


def _alike(nats: Float32, visited: slice) -> slice:
    """Return the stops next to each other that sound like the best of those visited.

    They hold the first visited one that does: of several note heads alike, the first is the one that begins.
    """
    enough = nats > nats[visited].max() - _MIN_LEAD
    start = visited.start + int(enough[visited].argmax())
    before, after = np.flatnonzero(~enough[:start]), np.flatnonzero(~enough[start:])
    return slice(
        int(before[-1]) + 1 if len(before) else 0, start + int(after[0]) if len(after) else len(nats)
    )


def _onsets(begin: Int64, best: Int64, similarity: CourseSimilarity, music: Int64) -> Float64:
    """Return when places begin, in frames of the recording.

    A place begins where it and the one before together explain most, and within two frames where both are equally
    similar.
    """
    end = np.append(begin[1:], len(music))
    place = np.repeat(np.arange(len(begin)), end - begin)
    frame = np.arange(len(music))
    own = similarity.pairs(frame, best[place])
    over_before = own - similarity.pairs(frame, best[np.maximum(place - 1, 0)])
    after_over = similarity.pairs(frame, best[np.minimum(place + 1, len(best) - 1)]) - own
    onset = music[begin].astype(np.float64)
    for number in range(1, len(begin)):
        start, middle = begin[number - 1], begin[number]
        lead = np.concatenate((after_over[start:middle], over_before[middle : end[number]]))
        split = 1 + int(np.cumsum(lead[:-1]).argmin())
        here, before = music[start + split], music[start + split - 1]
        onset[number] = here
        if here == before + 1 and lead[split - 1] < 0 < lead[split]:
            onset[number] += -0.5 - lead[split - 1] / (lead[split] - lead[split - 1])
    return np.maximum.accumulate(onset)
