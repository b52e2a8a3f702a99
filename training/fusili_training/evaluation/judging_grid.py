"""The grids on which predictions are judged: the model's own, or one of the paper's size.

The paper's grid has at most 7 columns per segment and frames of 20 / 256 s. A model with finer columns is judged
on it by the most similar of its columns in each cell, a model with other frames by the frame at the middle of
each of the paper's. (The published audio encoder gives 64 different frames in 20 s, each four times.)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fusili_mir.arrays import Float32, Int64
from fusili_mir.errors import InputError
from fusili_mir.geometry import FrameGrid, PatchGrid

__all__ = ["PAPER_COLUMNS", "PAPER_FRAME_SEC", "JudgingGrid"]

PAPER_COLUMNS = 7
PAPER_FRAME_SEC = 20 / 256


@dataclass(frozen=True, eq=False)
class JudgingGrid:
    """The cells and frames that are judged, and the model's columns and frames that belong to each.

    Attributes
    ----------
    patches : PatchGrid
        The N cells.
    frames : FrameGrid
        The M frames.
    first_column : np.ndarray of int [shape=(cols,)]
        First of the model's columns in each column of cells.
    own_frame : np.ndarray of int [shape=(M,)]
        The model's frame at each of the M frames.
    """

    patches: PatchGrid
    frames: FrameGrid
    first_column: Int64
    own_frame: Int64

    @classmethod
    def own(cls, patches: PatchGrid, frames: FrameGrid) -> JudgingGrid:
        """Return the grid that judges a model on its own patches and frames."""
        return cls(patches, frames, np.arange(patches.cols), np.arange(len(frames)))

    @classmethod
    def paper(cls, patches: PatchGrid, frames: FrameGrid) -> JudgingGrid:
        """Return the grid that judges a model on cells and frames of the paper's size."""
        n_frames = max(1, int(np.floor(frames.duration_sec / PAPER_FRAME_SEC + 1e-6)))
        middle_sec = (np.arange(n_frames) + 0.5) * PAPER_FRAME_SEC
        own_frame = np.minimum(np.floor(middle_sec / frames.frame_sec), len(frames) - 1).astype(np.int64)
        cols = min(PAPER_COLUMNS, patches.cols)
        cell = np.floor((np.arange(patches.cols) + 0.5) * cols / patches.cols)
        cells = PatchGrid(patches.rows, cols, patches.width_px / cols, patches.patch_height_px)
        return cls(
            cells,
            FrameGrid(n_frames, PAPER_FRAME_SEC, frames.start_sec),
            np.searchsorted(cell, np.arange(cols)).astype(np.int64),
            own_frame,
        )

    def similarity(self, own: Float32) -> Float32:
        """Convert the model's similarities [shape=(own patches, own frames)] to this grid [shape=(N, M)]."""
        if own.ndim != 2 or len(own) % self.patches.rows or own.shape[1] <= self.own_frame.max():
            raise InputError(
                f"a similarity matrix of shape {own.shape}; expected {self.patches.rows} rows of patches and "
                f"more than {self.own_frame.max()} frames"
            )
        return self.merge_columns(own[:, self.own_frame])

    def merge_columns(self, similarity: Float32) -> Float32:
        """Take the most similar column of each cell: (own patches, any frames) -> (N, the same frames)."""
        n_patches, n_frames = similarity.shape
        by_row = similarity.reshape(self.patches.rows, n_patches // self.patches.rows, n_frames)
        cells = np.maximum.reduceat(by_row, self.first_column, axis=1)
        return np.asarray(cells.reshape(len(self.patches), n_frames), dtype=np.float32)
