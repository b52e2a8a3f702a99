"""From similarities to one warping path over the whole recording.

Two searches: a rough one over all stops, then an exact one in a band around it. The second knows, from the first,
when each stop is to be expected at a steady tempo, and so places repeated notes that sound alike.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fusili_mir.geometry import Int64
from fusili_mir.rough_search import DecodingOptions, RoughSearch, path_costs, played_columns
from fusili_mir.similarity import CourseSimilarity, Float32
from fusili_mir.steady_tempo import expected_frames, tempo_penalty
from fusili_mir.viterbi import Block, DecodedPath, best_path

__all__ = ["DecodingOptions", "RoughSearch", "WarpingPath", "decode_path", "played_columns"]

_BAND_FRAMES = 64


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
    expected = expected_frames(rough, rough_path)
    baseline = similarity.baseline(scale)
    hubs = options.hub_weight_of(similarity.course) * similarity.hubs(scale, baseline)

    def scores(block: Block) -> Float32:
        nats = similarity.block(block.frames, block.stops)
        nats *= np.float32(scale)
        nats -= baseline[block.frames, None]
        nats -= hubs[block.stops]
        nats -= tempo_penalty(expected, block, options.tempo_weight * frame_sec)
        return nats

    path = best_path(
        scores,
        _band(rough_path, rough.factors, n_frames, n_stops, options.band_stops),
        n_stops,
        path_costs(options, rough.stop_weights, n_frames),
    )
    return WarpingPath(
        stop=path.stop,
        is_filler=path.is_filler,
        similarity=similarity.pairs(np.arange(n_frames), path.stop),
        confidence=np.where(path.is_filler, 0.0, np.exp(path.gap)).astype(np.float32),
        reliability=rough.reliability,
    )


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
