"""The similarity matrix as a picture, with the path over it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw, ImageFont

from fusili_mir.alignment.results import Alignment
from fusili_mir.arrays import Float32
from fusili_mir.decoding.similarity import CourseSimilarity, pool_frames

__all__ = ["draw_similarity"]

_Axis: TypeAlias = Callable[[float], float]

_WIDTH_PX, _HEIGHT_PX = 1200, 800  # largest size of the matrix in the picture
_LEFT_PX, _BOTTOM_PX, _MARGIN_PX = 70, 40, 14
# Dark blue over green to yellow, of even lightness steps (Viridis).
_COLOURS = np.array(
    [(68, 1, 84), (59, 82, 139), (33, 145, 140), (94, 201, 98), (253, 231, 37)], dtype=np.float64
)
_PATH = (255, 60, 60)
_FILLER = (255, 170, 170)


def draw_similarity(alignment: Alignment) -> Image.Image:
    """Draw the similarity of score and recording, and the path.

    Parameters
    ----------
    alignment : Alignment

    Returns
    -------
    PIL.Image.Image
        Seconds from left to right; the score in playing order from top to bottom, with measure numbers where
        they are known. The path is red, pale where something else than the score is heard.
    """
    course, n_frames = alignment.similarity.course, len(alignment.grid)
    by_frame = -(-n_frames // _WIDTH_PX)
    by_stop = -(-len(course) // _HEIGHT_PX)
    matrix = _pooled(alignment.similarity, by_frame, by_stop).T  # (n_stop_groups, n_frame_groups)
    cell_width = max(1, min(_WIDTH_PX // matrix.shape[1], 16))
    cell_height = max(1, min(_HEIGHT_PX // matrix.shape[0], 16))
    body = Image.fromarray(_coloured(matrix)).resize(
        (matrix.shape[1] * cell_width, matrix.shape[0] * cell_height), Image.Resampling.NEAREST
    )
    picture = Image.new(
        "RGB", (_LEFT_PX + body.width + _MARGIN_PX, _MARGIN_PX + body.height + _BOTTOM_PX), "white"
    )
    picture.paste(body, (_LEFT_PX, _MARGIN_PX))
    paint = ImageDraw.Draw(picture)

    def x_of(frame: float) -> float:
        return _LEFT_PX + frame / by_frame * cell_width

    def y_of(stop: float) -> float:
        return _MARGIN_PX + stop / by_stop * cell_height

    _draw_path(paint, alignment, by_frame, x_of, y_of)
    _draw_seconds(paint, alignment, x_of, _MARGIN_PX + body.height)
    _draw_measures(paint, alignment, y_of)
    return picture


def _pooled(similarity: CourseSimilarity, by_frame: int, by_stop: int) -> Float32:
    return replace(similarity, frames=pool_frames(similarity.frames, by_frame)).pooled(by_stop)


def _coloured(matrix: Float32) -> npt.NDArray[np.uint8]:
    """Colour a matrix from its 2nd to its 99.5th percentile [shape=(rows, columns, 3)]."""
    low, high = np.percentile(matrix, [2.0, 99.5])
    level = np.clip((matrix - low) / max(high - low, 1e-6), 0.0, 1.0) * (len(_COLOURS) - 1)
    steps = np.arange(len(_COLOURS))
    channels = [np.interp(level, steps, _COLOURS[:, channel]) for channel in range(3)]
    return np.stack(channels, axis=-1).astype(np.uint8)


def _draw_path(
    paint: ImageDraw.ImageDraw, alignment: Alignment, by_frame: int, x_of: _Axis, y_of: _Axis
) -> None:
    path = alignment.path
    for frame in range(0, len(path.stop) - by_frame, by_frame):
        ends = (frame, frame + by_frame)
        line = [(x_of(end + 0.5), y_of(float(path.stop[end]) + 0.5)) for end in ends]
        paint.line(line, fill=_FILLER if path.is_filler[frame] else _PATH, width=2)


def _draw_seconds(paint: ImageDraw.ImageDraw, alignment: Alignment, x_of: _Axis, top_px: int) -> None:
    grid = alignment.grid
    step_sec = next(
        (step for step in (1, 2, 5, 10, 20, 30, 60, 120, 300, 600) if grid.end_sec / step <= 12), 1800
    )
    font = ImageFont.load_default(size=12)
    for second in range(0, int(grid.end_sec) + 1, step_sec):
        x = x_of((second - grid.start_sec) / grid.frame_sec)
        paint.line([(x, top_px), (x, top_px + 4)], fill="black")
        paint.text((x, top_px + 6), f"{second} s", fill="black", font=font, anchor="mt")


def _draw_measures(paint: ImageDraw.ImageDraw, alignment: Alignment, y_of: _Axis) -> None:
    """Mark where measures begin, as many as there is room for; with images alone, systems."""
    course = alignment.similarity.course
    font = ImageFont.load_default(size=12)
    if alignment.played is None:
        system = alignment.axis.columns["system"][course.columns]
        first = np.concatenate(([0], np.flatnonzero(np.diff(system)) + 1))
        marks = [(int(stop), f"system {system[stop] + 1}") for stop in first]
    else:
        measures = alignment.played.measures
        first = np.searchsorted(course.start[:-1], measures["start_beat"] - 1e-6)
        marks = [(int(stop), f"m. {number}") for stop, number in zip(first, measures["number"], strict=True)]
    lowest = -np.inf
    for stop, text in marks:
        y = y_of(stop)
        if y >= lowest + 14:
            paint.line([(_LEFT_PX - 4, y), (_LEFT_PX, y)], fill="black")
            paint.text((_LEFT_PX - 6, y), text, fill="black", font=font, anchor="rm")
            lowest = y
