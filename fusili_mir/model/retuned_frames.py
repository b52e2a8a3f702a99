"""What was heard of a recording that was read at another pitch, at times of the recording itself.

If the pitch is steady, all steps are longer or shorter by the same ratio. If it drifts, values are interpolated
between the two steps that are nearest in time, so that steps are even in the recording's own seconds.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from fusili_mir.arrays import Float32, Float64
from fusili_mir.audio.onset_map import OnsetMap
from fusili_mir.audio.pitch_curve import Retuning
from fusili_mir.audio.sound_envelope import SoundEnvelope
from fusili_mir.geometry import FrameGrid

__all__ = ["retuned_envelope", "retuned_frames", "retuned_onsets"]


_BLOCK_ROWS = 2**12


def retuned_frames(frames: Float32, frame_sec: float, retuning: Retuning) -> tuple[Float32, FrameGrid]:
    """Put frames on an even grid of the recording's own seconds.

    Parameters
    ----------
    frames : np.ndarray [shape=(M, d)]
        Unit vectors of the frames of what was read.
    frame_sec : float
        Time from one of them to the next, in seconds that were read.
    retuning : Retuning

    Returns
    -------
    frames : np.ndarray [shape=(M, d)]
        Unit vectors.
    grid : FrameGrid
    """
    step_sec = frame_sec / retuning.mean_ratio
    grid = FrameGrid(len(frames), step_sec, retuning.start_sec, retuning.duration_sec, retuning.start_sec)
    if retuning.is_steady:
        return frames, grid
    place = retuning.to_read_sec(grid.centre(np.arange(len(frames)))) / frame_sec - 0.5
    even = np.zeros_like(frames)
    for rows, values in _interpolated(frames, place):
        length = np.linalg.norm(values, axis=1, keepdims=True)
        even[rows] = values / np.maximum(length, np.finfo(np.float32).tiny)
    return even, grid


def retuned_envelope(envelope: SoundEnvelope, retuning: Retuning) -> SoundEnvelope:
    """Put the steps of an envelope, measured on what was read, on the recording's own seconds."""
    step_sec = envelope.step_sec / retuning.mean_ratio
    if retuning.is_steady:
        return replace(envelope, step_sec=step_sec)
    place = _places(len(envelope.rise), step_sec, envelope.step_sec, retuning)
    rise, level = np.zeros_like(envelope.rise), np.zeros_like(envelope.level)
    for result, values in ((rise, envelope.rise), (level, envelope.level)):
        for rows, some in _interpolated(values, place):
            result[rows] = some
    return replace(envelope, rise=rise, level=level, step_sec=step_sec)


def retuned_onsets(onsets: OnsetMap, retuning: Retuning) -> OnsetMap:
    """Put the steps of onset activations, heard in what was read, on the recording's own seconds."""
    step_sec = onsets.step_sec / retuning.mean_ratio
    if retuning.is_steady:
        return replace(onsets, step_sec=step_sec)
    place = _places(len(onsets), step_sec, onsets.step_sec, retuning)
    activation = np.zeros_like(onsets.activation)
    for rows, some in _interpolated(onsets.activation, place):
        activation[rows] = some
    return replace(onsets, activation=activation, step_sec=step_sec)


def _places(n_steps: int, step_sec: float, read_step_sec: float, retuning: Retuning) -> Float64:
    """Return where among the steps that were read those of the recording's own seconds lie."""
    seconds = retuning.start_sec + np.arange(n_steps) * step_sec
    return retuning.to_read_sec(seconds) / read_step_sec


def _interpolated(
    values: Float32 | npt.NDArray[np.float16], place: Float64
) -> Iterator[tuple[slice, Float32]]:
    """Yield values [shape=(n, ...)] at places between them [shape=(m,)], some rows at a time; not those of 0."""
    for start in range(0, len(place), _BLOCK_ROWS):
        some = place[start : start + _BLOCK_ROWS].clip(0, len(values) - 1)
        before = np.minimum(some.astype(np.int64), max(len(values) - 2, 0))
        share = (some - before).astype(np.float32).reshape(-1, *[1] * (values.ndim - 1))
        here, there = values[before], values[np.minimum(before + 1, len(values) - 1)]
        if here.any() or there.any():
            here, there = here.astype(np.float32), there.astype(np.float32)
            yield slice(start, start + len(some)), np.asarray((1 - share) * here + share * there)
