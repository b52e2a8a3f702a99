"""The similarity matrix as a picture, with the path over it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw

from fusili_mir.alignment.results import Alignment
from fusili_mir.arrays import Float32
from fusili_mir.decoding.similarity import CourseSimilarity, pool_frames
from fusili_mir.output.label_font import label_font

__all__ = ["ScoreLabel", "draw_similarity", "score_labels"]

_Axis: TypeAlias = Callable[[float], float]

_WIDTH_PX, _HEIGHT_PX = 1200, 800  # largest size of the matrix in the picture
_LEFT_PX, _TOP_PX, _BOTTOM_PX, _RIGHT_PX = 150, 34, 58, 14  # room for titles, labels and the legend
_LABEL_PX = 14  # smallest distance between two labels
_LEGEND_PX = 430
# Dark blue through green to yellow, in even steps of lightness (Viridis).
_COLOURS = np.array(
    [(68, 1, 84), (59, 82, 139), (33, 145, 140), (94, 201, 98), (253, 231, 37)], dtype=np.float64
)
_PATH = (255, 60, 60)
_FILLER = (255, 170, 170)


@dataclass(frozen=True)
class ScoreLabel:
    """A label beside the score axis, at a stop of the course."""

    stop: int
    text: str


def score_labels(alignment: Alignment) -> list[ScoreLabel]:
    """Label where measures, or with images alone systems, begin along the course of an alignment.

    Parameters
    ----------
    alignment : Alignment

    Returns
    -------
    list of ScoreLabel
        Labels in playing order. `stop` is the first stop of the measure or system; those without a stop begin
        where the next one does.
    """
    course = alignment.similarity.course
    if alignment.played is None:
        system = alignment.axis.columns["system"][course.columns[course.first[:-1]]]  # of each stop
        names = alignment.axis.system_names()
        begins = np.flatnonzero(np.diff(system, prepend=-1) != 0)
        return [ScoreLabel(int(stop), names[int(system[stop])]) for stop in begins]
    measures = alignment.played.measures
    begins = np.searchsorted(course.start[:-1], measures["start_beat"] - 1e-6)
    return [
        ScoreLabel(int(stop), f"measure {number}")
        for stop, number in zip(begins, measures["number"], strict=True)
    ]


def draw_similarity(alignment: Alignment) -> Image.Image:
    """Draw the similarity of score and recording, and the path.

    Parameters
    ----------
    alignment : Alignment

    Returns
    -------
    PIL.Image.Image
        Seconds from left to right; the score in playing order from top to bottom, with measure numbers where
        they are known, otherwise with pages and systems. The path is red, pale where something other than the
        score is heard. The legend is at the top.
    """
    course, n_frames = alignment.similarity.course, len(alignment.grid)
    by_frame = -(-n_frames // _WIDTH_PX)
    by_stop = -(-len(course) // _HEIGHT_PX)
    matrix = _pooled(alignment.similarity, by_frame, by_stop).T  # (n_stop_groups, n_frame_groups)
    low, high = (float(value) for value in np.percentile(matrix, [2.0, 99.5]))
    cell_width = max(1, min(_WIDTH_PX // matrix.shape[1], 16))
    cell_height = max(1, min(_HEIGHT_PX // matrix.shape[0], 16))
    body = Image.fromarray(_coloured((matrix - low) / max(high - low, 1e-6))).resize(
        (matrix.shape[1] * cell_width, matrix.shape[0] * cell_height), Image.Resampling.NEAREST
    )
    least_width = _LEFT_PX + _LEGEND_PX + _RIGHT_PX
    picture = Image.new(
        "RGB",
        (max(_LEFT_PX + body.width + _RIGHT_PX, least_width), _TOP_PX + body.height + _BOTTOM_PX),
        "white",
    )
    picture.paste(body, (_LEFT_PX, _TOP_PX))
    paint = ImageDraw.Draw(picture)

    def x_of(frame: float) -> float:
        return float(_LEFT_PX + frame / by_frame * cell_width)

    def y_of(stop: float) -> float:
        return float(_TOP_PX + stop / by_stop * cell_height)

    _draw_path(paint, alignment, by_frame, x_of, y_of)
    _draw_seconds(paint, alignment, x_of, _TOP_PX + body.height)
    _draw_labels(paint, score_labels(alignment), y_of)
    _draw_titles(picture, body)
    _draw_legend(picture, low, high)
    return picture


def _pooled(similarity: CourseSimilarity, by_frame: int, by_stop: int) -> Float32:
    return replace(similarity, frames=pool_frames(similarity.frames, by_frame)).pooled(by_stop)


def _coloured(shares: Float32) -> npt.NDArray[np.uint8]:
    """Colour values from 0 (low) to 1 (high), (rows, columns) -> (rows, columns, 3)."""
    place = np.clip(shares, 0.0, 1.0) * (len(_COLOURS) - 1)
    steps = np.arange(len(_COLOURS))
    channels = [np.interp(place, steps, _COLOURS[:, channel]) for channel in range(3)]
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
    first_sec = max(grid.start_sec, grid.audio_start_sec)
    steps_sec = (1, 2, 5, 10, 20, 30, 60, 120, 300, 600)
    step_sec = next((step for step in steps_sec if (grid.end_sec - first_sec) / step <= 12), 1800)
    font = label_font(12)
    for second in range(int(-(-first_sec // step_sec)) * step_sec, int(grid.end_sec) + 1, step_sec):
        x = x_of((second - grid.start_sec) / grid.frame_sec)
        paint.line([(x, top_px), (x, top_px + 4)], fill="black")
        paint.text((x, top_px + 6), f"{second} s", fill="black", font=font, anchor="mt")


def _draw_labels(paint: ImageDraw.ImageDraw, labels: list[ScoreLabel], y_of: _Axis) -> None:
    """Write labels beside the score axis, as many as there is room for."""
    font = label_font(12)
    lowest = -np.inf
    for label in labels:
        y = y_of(label.stop)
        if y >= lowest + _LABEL_PX:
            paint.line([(_LEFT_PX - 4, y), (_LEFT_PX, y)], fill="black")
            paint.text((_LEFT_PX - 6, y), label.text, fill="black", font=font, anchor="rm")
            lowest = y


def _draw_titles(picture: Image.Image, body: Image.Image) -> None:
    """Write the titles of the axes."""
    font = label_font(14)
    paint = ImageDraw.Draw(picture)
    middle_px = _LEFT_PX + body.width / 2
    paint.text((middle_px, picture.height - 6), "time in the recording", fill="black", font=font, anchor="mb")
    title = "score, in playing order"
    width_px = round(font.getlength(title)) + 4
    upright = Image.new("RGB", (width_px, 20), "white")
    ImageDraw.Draw(upright).text((width_px / 2, 10), title, fill="black", font=font, anchor="mm")
    turned = upright.rotate(90, expand=True)
    picture.paste(turned, (4, max(_TOP_PX, _TOP_PX + (body.height - turned.height) // 2)))


def _draw_legend(picture: Image.Image, low: float, high: float) -> None:
    """Explain the colours and lines above the matrix."""
    font = label_font(12)
    paint = ImageDraw.Draw(picture)
    y, x = _TOP_PX / 2, float(_LEFT_PX)
    shares = np.linspace(0.0, 1.0, 80, dtype=np.float32)[None].repeat(10, axis=0)
    for text, bar in ((f"similarity {low:.2f}", False), (f"{high:.2f}", True)):
        if bar:
            picture.paste(Image.fromarray(_coloured(shares)), (round(x), round(y) - 5))
            x += shares.shape[1] + 6
        paint.text((x, y), text, fill="black", font=font, anchor="lm")
        x += font.getlength(text) + 6
    for colour, text in ((_PATH, "path"), (_FILLER, "not in the score")):
        x += 18
        paint.line([(x, y), (x + 24, y)], fill=colour, width=3)
        paint.text((x + 30, y), text, fill="black", font=font, anchor="lm")
        x += 30 + font.getlength(text)
