"""From similarities to one warping path over the whole recording.

Two searches: a rough one over all stops, in which frames (and, in long pieces, stops) are taken in groups; then
an exact one in a band around it. Both are `fusili_mir.viterbi`. The second knows, from the first, when each
stop is to be expected at a steady tempo, and so places repeated notes that sound alike.

How far the result can be trusted is measured against the recording played backwards, which has the same sounds
in an order that the score does not explain.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy.ndimage import uniform_filter1d

from fusili_mir.errors import InputError
from fusili_mir.geometry import Float64, Int64
from fusili_mir.similarity import CourseSimilarity, Float32, pool_frames
from fusili_mir.viterbi import Block, DecodedPath, PathCosts, best_path, best_score, whole_blocks

__all__ = ["DecodingOptions", "RoughSearch", "WarpingPath", "decode_path", "played_columns"]


@dataclass(frozen=True)
class DecodingOptions:
    """How a path may run.

    Attributes
    ----------
    max_speed : float
        Fastest passage, over the average of the piece.
    skip_cost, filler_cost, margin_cost, jump_cost : float
        In nats; see `fusili_mir.viterbi.PathCosts`.
    tempo_weight : float
        Nats a frame for each second that a stop is away from where a steady tempo has it.
    band_stops : int
        Least width of the band.
    rough_cells : int
        Most cells of the rough search.
    """

    max_speed: float = 16.0
    skip_cost: float = 1.0
    filler_cost: float = 10.0
    margin_cost: float = 40.0
    jump_cost: float = 40.0
    tempo_weight: float = 1.0
    band_stops: int = 256
    rough_cells: int = 2**23

    def __post_init__(self) -> None:
        if self.max_speed < 1 or self.band_stops < 16 or self.rough_cells < 2**10:
            raise InputError(
                f"max_speed {self.max_speed:g}, band_stops {self.band_stops}, rough_cells {self.rough_cells}; "
                "expected at least 1, 16 and 1024"
            )


@dataclass(frozen=True)
class WarpingPath:
    """Audio frame -> stop of the course.

    Attributes
    ----------
    stop : np.ndarray of int [shape=(M,)]
        Never falls.
    is_filler : np.ndarray of bool [shape=(M,)]
        Frames in which something else than the music of that stop sounds.
    similarity : np.ndarray of float [shape=(M,)]
        Cosine of each frame with its stop.
    confidence : np.ndarray of float [shape=(M,)]
        How likely the stop is beside the best one nearby: 1 if it is the best; 0 in the filler.
    reliability : float
        Of the whole path: 0 if the score explains the recording no better than it does the recording played
        backwards, 1 if nothing could be explained better without regard to order.
    """

    stop: Int64
    is_filler: npt.NDArray[np.bool_]
    similarity: Float32
    confidence: Float32
    reliability: float


@dataclass(frozen=True)
class RoughSearch:
    """The search over all stops, in groups of frames and stops.

    Attributes
    ----------
    similarity : CourseSimilarity
        Of single frames and stops.
    scale : float
        Of the cosines, as the bundle's model learnt it.
    options : DecodingOptions
    """

    similarity: CourseSimilarity
    scale: float
    options: DecodingOptions

    @cached_property
    def factors(self) -> tuple[int, int]:
        """Frames and stops in a group; powers of two, frames first while there are more of them."""
        n_frames, n_stops = len(self.similarity.frames), len(self.similarity.course)
        by_frame = by_stop = 1
        while (n_frames / by_frame) * (n_stops / by_stop) > self.options.rough_cells:
            if n_frames / by_frame > 2 * n_stops / by_stop:
                by_frame *= 2
            else:
                by_stop *= 2
        return by_frame, by_stop

    @cached_property
    def scores(self) -> Float32:
        """Nats over the filler [shape=(n_frame_groups, n_stop_groups)]."""
        by_frame, by_stop = self.factors
        frames = pool_frames(self.similarity.frames, by_frame)
        pooled = CourseSimilarity(
            self.similarity.embeddings, self.similarity.mask, frames, self.similarity.course
        )
        scores = pooled.pooled(by_stop)
        scores *= np.float32(self.scale)
        scores -= pooled.baseline(self.scale)[:, None]
        scores *= np.float32(by_frame)
        return scores

    @cached_property
    def score(self) -> float:
        """Of the best path, in nats a frame: unfoldings are told apart by it."""
        return self._best_score(self.scores)

    @cached_property
    def reliability(self) -> float:
        """See `WarpingPath.reliability`."""
        backwards = self._best_score(self.scores[::-1])
        free = float(np.maximum(self.scores.max(axis=1), 0.0).sum()) / len(self.similarity.frames)
        if free - backwards < 1e-6:
            return 0.0
        return float(np.clip((self.score - backwards) / (free - backwards), 0.0, 1.0))

    def path(self, jumps: bool = False) -> DecodedPath:
        """Return the best path, in groups."""
        n_frames, n_stops = self.scores.shape
        return best_path(self._block, whole_blocks(n_frames, n_stops), n_stops, self._costs(jumps))

    def _block(self, block: Block) -> Float32:
        return self.scores[block.frames, block.stops]

    def _costs(self, jumps: bool = False) -> PathCosts:
        n_frames, n_stops = self.scores.shape
        return _costs(self.options, n_stops / n_frames, self.options.jump_cost if jumps else None)

    def _best_score(self, scores: Float32) -> float:
        n_frames, n_stops = scores.shape
        total = best_score(
            lambda block: scores[block.frames, block.stops],
            whole_blocks(n_frames, n_stops),
            n_stops,
            self._costs(),
        )
        return total / len(self.similarity.frames)


def decode_path(
    similarity: CourseSimilarity,
    frame_sec: float,
    scale: float,
    options: DecodingOptions | None = None,
) -> WarpingPath:
    """Find the path of a recording along a course.

    Parameters
    ----------
    similarity : CourseSimilarity
    frame_sec : float
        Time from one frame to the next.
    scale : float
        Of the cosines, as the bundle's model learnt it.
    options : DecodingOptions, optional

    Returns
    -------
    WarpingPath
        Monotonic; it may begin after the first stop and end before the last one.
    """
    options = options or DecodingOptions()
    rough = RoughSearch(similarity, scale, options)
    rough_path = rough.path()
    n_frames, n_stops = len(similarity.frames), len(similarity.course)
    expected = _expected_frames(rough_path, rough.factors, similarity.course.start, n_frames)
    baseline = similarity.baseline(scale)
    weight = np.float32(options.tempo_weight * frame_sec)

    def scores(block: Block) -> Float32:
        nats = similarity.block(block.frames, block.stops)
        nats *= np.float32(scale)
        nats -= baseline[block.frames, None]
        nats -= _tempo_penalty(expected, block, weight)
        return nats

    path = best_path(
        scores,
        _band(rough_path, rough.factors, n_frames, n_stops, options.band_stops),
        n_stops,
        _costs(options, n_stops / n_frames),
    )
    return WarpingPath(
        stop=path.stop,
        is_filler=path.is_filler,
        similarity=similarity.pairs(np.arange(n_frames), path.stop),
        confidence=np.where(path.is_filler, 0.0, np.exp(path.gap)).astype(np.float32),
        reliability=rough.reliability,
    )


def played_columns(rough: RoughSearch) -> Int64:
    """Find out in which order the columns of a score are played, repeats and leaps included.

    Parameters
    ----------
    rough : RoughSearch
        Along the columns in reading order.

    Returns
    -------
    np.ndarray of int [shape=(n,)]
        All columns from the first to the last one played, in playing order.
    """
    path = rough.path(jumps=True)
    by_stop = rough.factors[1]
    n_stops, max_step = len(rough.similarity.course), rough._costs().max_step
    step = np.diff(path.stop)
    leaps = np.flatnonzero((step < 0) | (step > max_step))
    if not len(leaps):
        return np.arange(n_stops)
    starts = path.stop[np.concatenate(([0], leaps + 1))] * by_stop
    stops = np.minimum((path.stop[np.concatenate((leaps, [len(path.stop) - 1]))] + 1) * by_stop, n_stops)
    starts[0], stops[-1] = 0, n_stops
    return np.concatenate([np.arange(first, stop) for first, stop in zip(starts, stops, strict=True)])


def _costs(options: DecodingOptions, stops_per_frame: float, jump: float | None = None) -> PathCosts:
    fastest = max(2.0, options.max_speed * stops_per_frame)
    return PathCosts(
        max_step=2 ** math.ceil(math.log2(fastest)),
        # Where stops are denser than frames, each frame has to pass some.
        skip=options.skip_cost if stops_per_frame < 0.5 else 0.0,
        filler=options.filler_cost,
        margin=options.margin_cost,
        jump=jump,
    )


def _expected_frames(path: DecodedPath, factors: tuple[int, int], start: Float64, n_frames: int) -> Float32:
    """Return the frame in which each stop begins, and the last one ends, at a steady tempo [shape=(P + 1,)].

    That is the rough path, with what it departs from a constant tempo averaged over neighbouring stops.
    """
    by_frame, by_stop = factors
    music = ~path.is_filler
    if not music.any():
        return np.linspace(0, n_frames, len(start), dtype=np.float32)
    groups, first = np.unique(path.stop[music], return_index=True)
    arrival = np.flatnonzero(music)[first] * float(by_frame)
    knots = np.append(start[groups * by_stop], start[min((groups[-1] + 1) * by_stop, len(start) - 1)])
    arrival = np.append(arrival, min((np.flatnonzero(music)[-1] + 1) * by_frame, n_frames))
    span = knots[-1] - knots[0]
    if span <= 0:
        return np.interp(np.arange(len(start)), [0, len(start) - 1], arrival[[0, -1]]).astype(np.float32)
    steady = arrival[0] + (arrival[-1] - arrival[0]) * (knots - knots[0]) / span
    smooth = steady + uniform_filter1d(arrival - steady, _TEMPO_STOPS, mode="nearest")
    return np.maximum.accumulate(np.interp(start, knots, smooth)).astype(np.float32)


_TEMPO_STOPS = 9
_MOST_TEMPO_PENALTY = np.float32(3.0)


def _tempo_penalty(expected: Float32, block: Block, weight: np.float32) -> Float32:
    """Return the nats that stops pay for being away from where they are expected [shape=(n_frames, n_stops)]."""
    frame = np.arange(block.frames.start, block.frames.stop, dtype=np.float32)[:, None]
    begins, ends = expected[block.stops], expected[block.stops.start + 1 : block.stops.stop + 1]
    away = np.maximum(begins - frame - 0.5, frame + 0.5 - ends)
    np.maximum(away, 0.0, out=away)
    away *= weight
    return np.minimum(away, _MOST_TEMPO_PENALTY, out=away)


_BAND_FRAMES = 64


def _band(
    path: DecodedPath, factors: tuple[int, int], n_frames: int, n_stops: int, least_width: int
) -> list[Block]:
    """Lay blocks of single frames and stops around a path of groups."""
    by_frame, by_stop = factors
    size = max(_BAND_FRAMES, by_frame)
    margin = max(least_width // 2, 8 * by_stop)
    blocks: list[Block] = []
    for start in range(0, n_frames, size):
        stop = min(start + size, n_frames)
        groups = path.stop[start // by_frame : max((stop - 1) // by_frame, start // by_frame) + 1]
        first = max(0, int(groups[0]) * by_stop - margin)
        last = min(n_stops, (int(groups[-1]) + 1) * by_stop + margin)
        blocks.append(Block(slice(start, stop), slice(first, last)))
    return blocks
