"""The frames of a recording that was read at another pitch, at times of the recording itself."""

from __future__ import annotations

import numpy as np

from fusili_mir.arrays import Float32
from fusili_mir.audio.pitch_curve import Retuning
from fusili_mir.geometry import FrameGrid

__all__ = ["retuned_frames"]


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
        The same frames if the pitch is steady: each is then longer or shorter by the same ratio. If it drifts,
        frames are interpolated between the two that are nearest in time.
    grid : FrameGrid
    """
    ratio = retuning.ratio
    n_frames = len(frames)
    if ratio is None:
        ratio = float(retuning.to_read_sec(retuning.end_sec)) / retuning.duration_sec
    grid = FrameGrid(
        n_frames, frame_sec / ratio, retuning.start_sec, retuning.duration_sec, retuning.start_sec
    )
    if retuning.ratio is not None:
        return frames, grid
    position = retuning.to_read_sec(grid.centre(np.arange(n_frames))) / frame_sec - 0.5
    position = position.clip(0, n_frames - 1)
    before = np.minimum(position.astype(np.int64), max(n_frames - 2, 0))
    share = (position - before).astype(np.float32)[:, None]
    between = (1 - share) * frames[before] + share * frames[np.minimum(before + 1, n_frames - 1)]
    length = np.linalg.norm(between, axis=1, keepdims=True)
    return np.asarray(between / np.maximum(length, np.finfo(np.float32).tiny), dtype=np.float32), grid
