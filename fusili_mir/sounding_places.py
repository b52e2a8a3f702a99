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
from fusili_mir.note_times import onset_frames
from fusili_mir.similarity import CourseSimilarity, Float32

__all__ = ["SoundingPlaces", "sounding_places"]

_MIN_LEAD = 1.0  # nats a frame, by which two places must differ to be two
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

    def position(self, seconds: Float64) -> Float64:
        """Return where on the course the music is, in stops.

        A place is crossed at once when it begins; then it goes on evenly to the next.
        """
        edges = np.stack((self.first, self.last), axis=1).ravel()
        return np.interp(seconds, np.repeat(self.onset_sec, 2), edges)


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
    stops = path.stop[music]
    begin = _beginnings(stops, replace(similarity, frames=similarity.frames[music]), scale)
    end = np.append(begin[1:], len(music))
    sounds = replace(similarity, frames=_means(similarity.frames[music], begin))
    first, last = np.empty(len(begin)), np.empty(len(begin))
    left = 0
    for place, (one, other) in enumerate(zip(stops[begin], stops[end - 1], strict=True)):
        right = stops[begin[place + 1]] if place + 1 < len(begin) else len(similarity.course)
        window = slice(max(left, one - _REACH), min(right, other + 1 + _REACH))
        nats = scale * sounds.block(slice(place, place + 1), window)[0]
        run = _alike(nats, one - window.start, other + 1 - window.start)
        first[place], last[place] = window.start + run.start + 0.5, window.start + run.stop - 0.5
        left = max(window.start + run.stop, other + 1)
    onset = onset_frames(path, similarity, stops[begin], music[begin])
    return SoundingPlaces(
        first, last, np.maximum.accumulate(grid.start_sec + onset * grid.frame_sec).astype(np.float64)
    )


def _beginnings(stops: Int64, similarity: CourseSimilarity, scale: float) -> Int64:
    """Return the frames in which the path comes to something new.

    Stays at neighbouring stops are joined for as long as either stop would do for the frames of the other.
    """
    begin = np.flatnonzero(np.diff(stops, prepend=-1))
    while True:
        middle = stops[(begin + np.append(begin[1:], len(stops))) // 2]
        sounds = replace(similarity, frames=_means(similarity.frames, begin))
        place = np.arange(len(begin))
        own = sounds.pairs(place, middle)
        swapped = sounds.pairs(place[1:], middle[:-1]) + sounds.pairs(place[:-1], middle[1:])
        is_new = scale * (own[1:] + own[:-1] - swapped) >= _MIN_LEAD
        if is_new.all():
            return begin
        begin = begin[np.append(True, is_new)]


def _means(frames: Float32, begin: Int64) -> Float32:
    """Average the frames of each stretch that begins at one of some frames [shape=(n, d)]."""
    sums = np.add.reduceat(frames, begin, axis=0)
    return np.asarray(sums / np.diff(begin, append=len(frames))[:, None], dtype=np.float32)


def _alike(nats: Float32, one: int, other: int) -> slice:
    """Return the stops next to each other that sound like the best of those visited.

    They hold the first visited one that does: of several note heads alike, the first is the one that begins.
    """
    enough = nats > nats[one:other].max() - _MIN_LEAD
    start = one + int(enough[one:other].argmax())
    before, after = np.flatnonzero(~enough[:start]), np.flatnonzero(~enough[start:])
    return slice(
        int(before[-1]) + 1 if len(before) else 0, start + int(after[0]) if len(after) else len(nats)
    )
