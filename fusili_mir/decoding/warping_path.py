"""From similarities to one warping path over the whole recording.

A rough search over all stops is followed by an exact one in a band around its path. Then the beginnings of stops
are moved to onsets at a steady tempo.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from fusili_mir.arrays import Bool, Float32, Int64
from fusili_mir.audio.sound_envelope import FrameSound
from fusili_mir.decoding.rough_search import DecodingOptions, RoughSearch, path_costs, played_columns
from fusili_mir.decoding.similarity import CourseSimilarity
from fusili_mir.decoding.steady_path import settle
from fusili_mir.decoding.stop_likelihoods import StopLikelihoods
from fusili_mir.decoding.viterbi import Block, DecodedPath, best_path
from fusili_mir.short_repr import short_repr

__all__ = ["DecodingOptions", "RoughSearch", "WarpingPath", "decode_path", "played_columns"]

_BAND_FRAMES = 64
_SHORT_SEC = 2.0


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
        Likelihood of the stop relative to the best one nearby: 1 if it is the best; 0 in the filler.
    reliability : float
        Reliability of the whole path: 0 if the score explains the recording no better than the recording played
        backwards, 1 if ignoring the order of the score would explain it no better.
    """

    stop: Int64
    is_filler: Bool
    similarity: Float32
    confidence: Float32
    reliability: float


def decode_path(
    similarity: CourseSimilarity,
    frame_sec: float,
    scale: float,
    options: DecodingOptions | None = None,
    sound: FrameSound | None = None,
) -> WarpingPath:
    """Find the path of a recording along a course.

    Parameters
    ----------
    similarity : CourseSimilarity
    frame_sec : float
        Time from one frame to the next.
    scale : float
        The bundle's scale of cosines.
    options : DecodingOptions, optional
    sound : FrameSound, optional
        Onsets and silences that are known about the frames.

    Returns
    -------
    WarpingPath
        Non-decreasing path; it may begin after the first stop and end before the last one.
    """
    options = options or DecodingOptions()
    n_frames, n_stops = len(similarity.frames), len(similarity.course)
    sound = sound or FrameSound.unknown(n_frames)
    sounding = sound.sounding
    heard = replace(similarity, frames=similarity.frames[sounding])
    rough = RoughSearch(heard, frame_sec, scale, options)
    likelihoods = StopLikelihoods.of(
        similarity, scale, options.hub_weight_of(similarity.course), sound.is_silent
    )
    path = best_path(
        likelihoods.among(sounding),
        _band(rough.path(), rough.factors, len(sounding), n_stops, options.band_stops),
        n_stops,
        path_costs(options, rough.stop_weights, len(sounding), frame_sec),
    )
    path = _with_silences(path, sounding, n_frames)
    path = _settled(path, likelihoods, np.float32(options.onset_weight) * sound.onset, frame_sec)
    return WarpingPath(
        stop=path.stop,
        is_filler=path.is_filler,
        similarity=similarity.pairs(np.arange(n_frames), path.stop),
        confidence=np.where(path.is_filler, 0.0, np.exp(path.gap)).astype(np.float32),
        reliability=rough.reliability,
    )


def _with_silences(path: DecodedPath, sounding: Int64, n_frames: int) -> DecodedPath:
    """Put the silent frames back: each continues what was before; at either end they are filler."""
    frames = np.arange(n_frames)
    last = np.maximum(np.searchsorted(sounding, frames, side="right") - 1, 0)
    outside = (frames < sounding[0]) | (frames > sounding[-1])
    return DecodedPath(
        path.stop[last], path.is_filler[last] | outside, np.where(outside, 0.0, path.gap[last])
    )


def _settled(
    path: DecodedPath, likelihoods: StopLikelihoods, onset: Float32, frame_sec: float
) -> DecodedPath:
    """Settle the beginnings of stops; frames before the first one are filler."""
    music = np.flatnonzero(~path.is_filler)
    if not len(music):
        return path
    frames = np.arange(len(path.stop))
    after = np.searchsorted(music, frames).clip(max=len(music) - 1)  # the next frame of music
    lasting_sec = (music[after] - music[np.maximum(after - 1, 0)] - 1) * frame_sec
    between = (frames > music[0]) & (frames < music[-1])
    # A short filler is a note that sounds different, and a silence may be a rest.
    kept = np.flatnonzero(~path.is_filler | (between & (likelihoods.is_silent | (lasting_sec < _SHORT_SEC))))
    settled = settle(path.stop[kept], likelihoods.among(kept), onset[kept], frame_sec)
    is_filler = path.is_filler.copy()
    is_filler[kept] |= settled < 0
    last_kept = np.maximum(np.searchsorted(kept, frames, side="right") - 1, 0)
    stop = np.maximum(settled, settled[settled >= 0][0])[last_kept]
    best = np.where(path.is_filler, 0.0, likelihoods.pairs(frames, path.stop)) - path.gap
    gap = np.where(is_filler, 0.0, likelihoods.pairs(frames, stop)) - best
    return DecodedPath(stop, is_filler, np.minimum(gap, 0.0).astype(np.float32))


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
