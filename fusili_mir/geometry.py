"""The grids of the two encoders: patch index <-> pixels of the segment, frame index <-> seconds.

Coordinates are continuous: patch 0 covers ``0 <= x < patch_width_px``, frame 0 covers ``0 <= t < frame_sec``. All
maps take scalars or arrays, and the centre of a cell always maps back to that cell.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fusili_mir.argument_kinds import checked
from fusili_mir.arrays import Float64, Int64
from fusili_mir.errors import InputError

__all__ = ["FrameGrid", "PatchGrid", "strip_height_px"]


@checked
@dataclass(frozen=True)
class PatchGrid:
    """The patches cut from one segment image, in row-major order.

    The encoder's class token is not a patch: patch 0 is the top-left cell. Patches need not be square: a patch
    of the small model is a column of one staff.
    """

    rows: int
    cols: int
    patch_width_px: float
    patch_height_px: float

    def __post_init__(self) -> None:
        if self.rows < 1 or self.cols < 1 or self.patch_width_px <= 0 or self.patch_height_px <= 0:
            raise InputError(
                f"a grid of {self.rows}x{self.cols} patches of {self.patch_width_px:g} x "
                f"{self.patch_height_px:g} pixels; expected at least one patch, of positive size"
            )

    def __len__(self) -> int:
        return self.rows * self.cols

    @property
    def width_px(self) -> float:
        """Total width of the columns, in pixels of the segment."""
        return self.cols * self.patch_width_px

    @property
    def height_px(self) -> float:
        """Total height of the rows, in pixels of the segment."""
        return self.rows * self.patch_height_px

    def centre(self, patch: npt.ArrayLike) -> tuple[Float64, Float64]:
        """Return the (x, y) centres of patches, in pixels of the segment.

        >>> x, y = PatchGrid(rows=2, cols=3, patch_width_px=16, patch_height_px=32).centre([0, 5])
        >>> x.tolist(), y.tolist()
        ([8.0, 40.0], [16.0, 48.0])
        """
        index = np.asarray(patch, dtype=np.int64)
        if np.any((index < 0) | (index >= len(self))):
            wrong = index[(index < 0) | (index >= len(self))].flat[0]
            raise InputError(
                f"patch {wrong} is outside the {self.rows}x{self.cols} grid (0..{len(self) - 1}); "
                "was the class token left in?"
            )
        row, col = np.divmod(index, self.cols)
        return (col + 0.5) * self.patch_width_px, (row + 0.5) * self.patch_height_px

    def index(self, x: npt.ArrayLike, y: npt.ArrayLike) -> Int64:
        """Return the patches that contain the places (x, y) of the segment; -1 for places outside the grid.

        >>> grid = PatchGrid(rows=2, cols=3, patch_width_px=16, patch_height_px=32)
        >>> grid.index(x=[8, 40, 48], y=[16, 48, 0]).tolist()
        [0, 5, -1]
        """
        col = np.floor(np.asarray(x, dtype=np.float64) / self.patch_width_px)
        row = np.floor(np.asarray(y, dtype=np.float64) / self.patch_height_px)
        inside = (col >= 0) & (col < self.cols) & (row >= 0) & (row < self.rows)
        return np.where(inside, np.nan_to_num(row * self.cols + col), -1).astype(np.int64)


@checked
@dataclass(frozen=True)
class FrameGrid:
    """The frames of a stretch of audio.

    `frame_sec` is the time from one frame to the next, `start_sec` the start of frame 0, and `audio_sec` the
    length of the audio, whose last frame may be incomplete. `audio_start_sec` is where the audio starts: not at 0
    if it is an excerpt whose times are those of the whole recording.
    """

    n_frames: int
    frame_sec: float
    start_sec: float = 0.0
    audio_sec: float | None = None
    audio_start_sec: float = 0.0

    def __post_init__(self) -> None:
        if self.n_frames < 1 or not self.frame_sec > 0:
            raise InputError(
                f"a grid of {self.n_frames} frames of {self.frame_sec:g} s; "
                "expected at least one, of positive length"
            )

    def __len__(self) -> int:
        return self.n_frames

    @property
    def duration_sec(self) -> float:
        """Total length of the frames."""
        return self.n_frames * self.frame_sec

    @property
    def end_sec(self) -> float:
        """End of the audio; if its length is unknown, all frames count as full."""
        if self.audio_sec is None:
            return max(self.start_sec, self.audio_start_sec) + self.duration_sec
        return self.audio_start_sec + self.audio_sec

    def within(self, seconds: npt.ArrayLike) -> Float64:
        """Clip times to the audio, from `audio_start_sec` to `end_sec`; NaN stays NaN.

        >>> FrameGrid(n_frames=5, frame_sec=0.5, audio_sec=2.25).within([-1.0, 2.0, 2.4]).tolist()
        [0.0, 2.0, 2.25]
        """
        return np.clip(np.asarray(seconds, dtype=np.float64), self.audio_start_sec, self.end_sec)

    def centre(self, frame: npt.ArrayLike) -> Float64:
        """Return the centres of frames, in seconds.

        >>> FrameGrid(n_frames=5, frame_sec=0.5).centre([0, 4]).tolist()
        [0.25, 2.25]
        """
        index = np.asarray(frame, dtype=np.int64)
        if np.any((index < 0) | (index >= self.n_frames)):
            wrong = index[(index < 0) | (index >= self.n_frames)].flat[0]
            raise InputError(f"frame {wrong} is outside the audio (0..{self.n_frames - 1})")
        return np.asarray(self.start_sec + (index + 0.5) * self.frame_sec, dtype=np.float64)

    def index(self, seconds: npt.ArrayLike) -> Int64:
        """Return the frames that contain the given seconds; -1 for times outside the audio.

        >>> FrameGrid(n_frames=5, frame_sec=0.5).index([0.0, 2.25, 2.5]).tolist()
        [0, 4, -1]
        """
        frame = np.floor((np.asarray(seconds, dtype=np.float64) - self.start_sec) / self.frame_sec)
        inside = (frame >= 0) & (frame < self.n_frames)
        return np.where(inside, np.nan_to_num(frame), -1).astype(np.int64)


def strip_height_px(space_px: float, margin_spaces: float) -> int:
    """Return the height of a staff strip: the four spaces of a staff plus a margin above and below.

    >>> strip_height_px(space_px=8, margin_spaces=6)
    128
    """
    return round((4 + 2 * margin_spaces) * space_px)
