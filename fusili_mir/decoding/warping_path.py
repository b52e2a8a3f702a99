"""From similarities to one warping path over the whole recording.

A rough search over all stops is followed by an exact one in a band around its path. Then a semi-Markov model of
how scores are played times the stops.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from fusili_mir.arrays import Bool, Float32, Float64, Int64
from fusili_mir.audio.sound_envelope import FrameSound
from fusili_mir.decoding.certainty import PIECE_BY_ORDER, STOP_CLUES
from fusili_mir.decoding.course import Course
from fusili_mir.decoding.onset_evidence import OnsetEvidence
from fusili_mir.decoding.open_ends import follow_to_open_ends
from fusili_mir.decoding.piece_clues import PieceClues
from fusili_mir.decoding.rough_search import DecodingOptions, RoughSearch, path_costs
from fusili_mir.decoding.semi_markov import TimedStops, time_stops
from fusili_mir.decoding.similarity import CourseSimilarity
from fusili_mir.decoding.stop_likelihoods import StopLikelihoods
from fusili_mir.decoding.stop_pins import StopPin, Stretch, stretches_between
from fusili_mir.decoding.stop_times import StopTimes
from fusili_mir.decoding.timing_law import TimingLaw
from fusili_mir.decoding.viterbi import Block, BlockLikelihoods, DecodedPath, best_path
from fusili_mir.errors import InputError
from fusili_mir.geometry import FrameGrid
from fusili_mir.short_repr import short_repr

__all__ = [
    "DecodedCourse",
    "DecodingOptions",
    "PathClues",
    "RoughSearch",
    "WarpingPath",
    "decode_path",
]

_BAND_FRAMES = 64  # frames that share a range of stops
_SHORT_SEC = 2.0  # set by hand: a shorter filler is a note that sounds different
_ACTIVATION = STOP_CLUES.index("activation")


@short_repr
@dataclass(frozen=True)
class PathClues:
    """Clues to how sure a path is.

    Attributes
    ----------
    stops : np.ndarray of int [shape=(n,)]
        The stops that were timed.
    of_stops : np.ndarray [shape=(n, n_clues)]
        See `StopClues.table`.
    of_piece : PieceClues
    """

    stops: Int64
    of_stops: Float64
    of_piece: PieceClues


@short_repr
@dataclass(frozen=True)
class WarpingPath:
    """Audio frame -> stop of the course.

    Attributes
    ----------
    stop : np.ndarray of int [shape=(M,)]
        Stop in each frame. Non-decreasing.
    is_filler : np.ndarray of bool [shape=(M,)]
        Frames in which something other than the music of that stop sounds.
    similarity : np.ndarray of float [shape=(M,)]
        Cosine of each frame with its stop.
    confidence : np.ndarray of float [shape=(M,)]
        Probability that the place of the frame is right to 0.1 s; it moves evenly from that of one stop to that
        of the next. 0 in the filler.
    reliability : float
        Probability that the recording is of this score, if it is as likely as not beforehand.
    margin_sec : np.ndarray of float [shape=(M,)]
        By how much the stop of the frame may begin earlier or later, with a probability of
        `INTERVAL_PROBABILITY`; infinite in the filler.
    clues : PathClues, optional
        What these probabilities rest on.
    """

    stop: Int64
    is_filler: Bool
    similarity: Float32
    confidence: Float32
    reliability: float
    margin_sec: Float64
    clues: PathClues | None = None


@dataclass(frozen=True)
class DecodedCourse:
    """A recording along a course.

    Attributes
    ----------
    path : WarpingPath
        Frame -> stop.
    times : StopTimes
        When each stop begins.
    """

    path: WarpingPath
    times: StopTimes


def decode_path(
    similarity: CourseSimilarity,
    grid: FrameGrid,
    scale: float,
    sound: FrameSound,
    evidence: OnsetEvidence,
    options: DecodingOptions | None = None,
    pins: Sequence[StopPin] = (),
) -> DecodedCourse:
    """Find the path of a recording along a course, and when each stop begins.

    Parameters
    ----------
    similarity : CourseSimilarity
    grid : FrameGrid
        Times of the frames.
    scale : float
        The bundle's scale of cosines.
    sound : FrameSound
        Which frames are silent.
    evidence : OnsetEvidence
        What the sound says about the beginnings of stops.
    options : DecodingOptions, optional
    pins : sequence of StopPin
        Stops whose seconds are known. What lies between two of them does not depend on anything else.

    Returns
    -------
    DecodedCourse
        Its path is non-decreasing; it may begin after the first stop and end before the last one.

    Raises
    ------
    InputError
        If nothing in the recording sounds like the course, or pins contradict each other.
    """
    options = options or DecodingOptions()
    n_frames, n_stops = len(similarity.frames), len(similarity.course)
    stretches = stretches_between(pins, n_stops)
    sounding = sound.sounding
    likelihoods = StopLikelihoods.of(
        similarity, scale, options.hub_weight_of(similarity.course), sound.is_silent
    )
    heard = likelihoods.among(sounding)
    rough = RoughSearch(heard.similarity, grid.frame_sec, scale, options)
    frame_of_sounding = np.asarray(grid.start_sec + (sounding + 0.5) * grid.frame_sec)
    arrivals = _arrivals(evidence, sounding, grid, options.law.arrival_weight)
    searched = [_search(rough, heard, arrivals, frame_of_sounding, each, options) for each in stretches]
    path = _with_silences(_joined(searched), sounding, n_frames)
    if path.is_filler.all():
        raise InputError("nothing in the recording sounds like the score; is it a recording of this piece?")
    path = follow_to_open_ends(path, likelihoods, evidence, grid, options.law, stretches)
    music = np.flatnonzero(~path.is_filler)
    timed = TimedStops.joined(
        [_time(path, music, each, likelihoods, evidence, grid, options.law) for each in stretches]
    )
    stop, is_filler = _frames(timed, path, grid, likelihoods)
    clues = _piece_clues(timed, rough.order, evidence)
    weights = PIECE_BY_ORDER if evidence.certainty is None else evidence.certainty.piece
    reliability = clues.probability(weights)
    times = _stop_times(timed, similarity.course, music, grid, reliability)
    return DecodedCourse(
        WarpingPath(
            stop=stop,
            is_filler=is_filler,
            similarity=similarity.pairs(np.arange(n_frames), stop),
            confidence=np.where(is_filler, 0.0, _frame_confidence(times, stop, grid)).astype(np.float32),
            reliability=reliability,
            margin_sec=np.where(is_filler, np.inf, _frame_margins(times.margin_sec, stop)),
            clues=PathClues(timed.stops, timed.clues, clues),
        ),
        times,
    )


def _search(
    rough: RoughSearch,
    likelihoods: StopLikelihoods,
    arrivals: BlockLikelihoods | None,
    seconds: Float64,
    stretch: Stretch,
    options: DecodingOptions,
) -> DecodedPath:
    """Find the path through the frames of a stretch; all of them at `seconds`, and all stops, if it is whole."""
    n_stops = len(rough.similarity.course)
    first, end = np.searchsorted(seconds, (stretch.from_sec, stretch.to_sec)).tolist()
    # Where nothing begins at a pin, what began before it goes on.
    first_stop = stretch.first if stretch.is_pinned else max(stretch.first - 1, 0)
    if first == end:
        return DecodedPath(np.empty(0, np.int64), np.empty(0, np.bool_), np.empty(0, np.float32))
    if (first, end, first_stop, stretch.end) != (0, len(seconds), 0, n_stops):
        whole = rough.similarity
        course = whole.course.part(slice(first_stop, stretch.end))
        rough = replace(rough, similarity=replace(whole, frames=whole.frames[first:end], course=course))

    def moved(block: Block) -> Block:
        frames, stops = block.frames, block.stops
        return Block(
            slice(frames.start + first, frames.stop + first),
            slice(stops.start + first_stop, stops.stop + first_stop),
        )

    n_frames, n_stops = end - first, stretch.end - first_stop
    path = best_path(
        lambda block: likelihoods(moved(block)),
        _band(rough.path(), rough.factors, n_frames, n_stops, options.band_stops),
        n_stops,
        path_costs(options, rough.stop_weights, n_frames, rough.frame_sec),
        None if arrivals is None else lambda block: arrivals(moved(block)),
    )
    return replace(path, stop=path.stop + first_stop)


def _joined(paths: list[DecodedPath]) -> DecodedPath:
    return DecodedPath(
        np.concatenate([path.stop for path in paths]),
        np.concatenate([path.is_filler for path in paths]),
        np.concatenate([path.gap for path in paths]),
    )


def _time(
    path: DecodedPath,
    music: Int64,
    stretch: Stretch,
    likelihoods: StopLikelihoods,
    evidence: OnsetEvidence,
    grid: FrameGrid,
    law: TimingLaw,
) -> TimedStops:
    """Time the stops of a stretch along a path."""
    seconds = grid.start_sec + (music + 0.5) * grid.frame_sec
    inside = (seconds >= stretch.from_sec) & (seconds < stretch.to_sec)
    inside &= (path.stop[music] >= stretch.first) & (path.stop[music] < stretch.end)
    frame, stop = music[inside], path.stop[music][inside]
    if stretch.is_pinned:
        frame, stop = _with_pin(frame, stop, stretch.first, stretch.from_sec, grid, at_end=False)
    if stretch.next_is_pinned:
        frame, stop = _with_pin(frame, stop, stretch.end, stretch.to_sec, grid, at_end=True)
    if not len(stop):
        return TimedStops(
            np.empty(0, np.int64), np.empty(0), np.empty(0), np.empty(0), np.empty((0, len(STOP_CLUES)))
        )
    timed = time_stops(stop, frame, likelihoods, evidence, grid.start_sec, grid.frame_sec, law, stretch)
    return timed.among(timed.stops < stretch.end)


def _with_pin(
    frame: Int64, stop: Int64, pinned: int, second: float, grid: FrameGrid, at_end: bool
) -> tuple[Int64, Int64]:
    """Let a path begin, or end, at a stop that is pinned to a second."""
    at = int((second - grid.start_sec) / grid.frame_sec)
    if at_end:
        return np.append(frame, at), np.append(stop, pinned)
    return np.append(at, frame), np.append(pinned, stop)


def _piece_clues(timed: TimedStops, order: float, evidence: OnsetEvidence) -> PieceClues:
    """Look at a path as a whole."""
    of_stop = dict(zip(STOP_CLUES, timed.clues.T, strict=True))
    elsewhere = np.roll(timed.stops, len(timed.stops) // 2)
    return PieceClues(
        order=order,
        sure=float(of_stop["own"].mean()),
        struck=float(np.mean(of_stop["activation"] - evidence.activation(elsewhere, timed.seconds))),
        unsteady=float(of_stop["unsteady"].mean()),
    )


def _arrivals(
    evidence: OnsetEvidence, sounding: Int64, grid: FrameGrid, weight: float
) -> BlockLikelihoods | None:
    """Return what onsets in each frame say for arriving at stops; silence says nothing."""
    if not weight:
        return None
    begin_sec = grid.start_sec + np.append(sounding, sounding[-1] + 1) * grid.frame_sec
    cells = np.rint((begin_sec - evidence.start_sec) / evidence.cell_sec).astype(np.int64)

    def arrivals(block: Block) -> Float32:
        nats = evidence.block(cells[block.frames.start : block.frames.stop + 1], block.stops)
        return np.asarray(np.float32(weight) * np.maximum(nats, 0.0))

    return arrivals


def _with_silences(path: DecodedPath, sounding: Int64, n_frames: int) -> DecodedPath:
    """Put the silent frames back: each continues what was before; at either end they are filler."""
    frames = np.arange(n_frames)
    last = np.maximum(np.searchsorted(sounding, frames, side="right") - 1, 0)
    outside = (frames < sounding[0]) | (frames > sounding[-1])
    return DecodedPath(
        path.stop[last], path.is_filler[last] | outside, np.where(outside, 0.0, path.gap[last])
    )


def _frame_confidence(times: StopTimes, stop: Int64, grid: FrameGrid) -> Float64:
    """Return how sure the place of each frame is, which moves evenly from one stop to the next."""
    heard = times.is_heard
    middle_sec = grid.centre(np.arange(len(stop)))
    return np.interp(middle_sec, times.onset_sec[heard], times.confidence[heard])


def _frame_margins(margin_sec: Float64, stop: Int64) -> Float64:
    """Return the margin of each frame: the place lies between two stops, and is as sure as the less sure one."""
    following = np.minimum(stop + 1, len(margin_sec) - 1)
    return np.fmax(margin_sec[stop], margin_sec[following])


def _stop_times(
    timed: TimedStops, course: Course, music: Int64, grid: FrameGrid, reliability: float
) -> StopTimes:
    """Put the times of stops in order; stops that were left out lie between their neighbours as in the score.

    A time is right only if the recording is of the score. What is certain stays so.
    """
    onset_sec, probability = np.full(len(course), np.nan), np.zeros(len(course))
    margin_sec, activation = np.full(len(course), np.nan), np.zeros(len(course))
    certain = timed.probability >= 1.0
    onset_sec[timed.stops] = timed.seconds
    probability[timed.stops] = np.where(certain, 1.0, reliability * timed.probability)
    margin_sec[timed.stops], activation[timed.stops] = timed.margin_sec, timed.clues[:, _ACTIVATION]
    heard = np.arange(timed.stops[0], timed.stops[-1] + 1)
    left_out = heard[np.isnan(onset_sec[heard])]
    onset_sec[left_out] = np.interp(course.start[left_out], course.start[timed.stops], timed.seconds)
    after = np.searchsorted(timed.stops, left_out)  # the next stop that was timed
    earliest_sec, latest_sec = timed.seconds - timed.margin_sec, timed.seconds + timed.margin_sec
    margin_sec[left_out] = np.maximum(
        onset_sec[left_out] - earliest_sec[after - 1], latest_sec[after] - onset_sec[left_out]
    )
    onset_sec[heard] = grid.within(onset_sec[heard])
    end_sec = float(grid.within(grid.start_sec + (music[-1] + 1) * grid.frame_sec))
    end_sec = max(end_sec, float(onset_sec[heard[-1]]))
    return StopTimes(onset_sec, end_sec, probability, margin_sec, activation)


def _frames(
    timed: TimedStops, path: DecodedPath, grid: FrameGrid, likelihoods: StopLikelihoods
) -> tuple[Int64, Bool]:
    """Return the stop of each frame, and whether something else sounds in it."""
    frames = np.arange(len(path.stop))
    middle_sec = grid.start_sec + (frames + 0.5) * grid.frame_sec
    number = np.searchsorted(timed.seconds, middle_sec, side="right") - 1
    music = np.flatnonzero(~path.is_filler)
    after = np.searchsorted(music, frames).clip(max=len(music) - 1)  # the next frame of music
    lasting_sec = (music[after] - music[np.maximum(after - 1, 0)] - 1) * grid.frame_sec
    between = (frames > music[0]) & (frames < music[-1])
    # A short filler is a note that sounds different, and a silence may be a rest.
    passing = between & (likelihoods.is_silent | (lasting_sec < _SHORT_SEC))
    return timed.stops[np.maximum(number, 0)], (path.is_filler & ~passing) | (number < 0)


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
