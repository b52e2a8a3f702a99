"""The tempo of a recording over its score, as numbers and as a picture."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import partitura as pt
from PIL import Image, ImageDraw

from fusili_mir.alignment.performance import NoteAlignment, anchors_from_alignment
from fusili_mir.errors import InputError
from fusili_mir.output.label_font import label_font

__all__ = ["TEMPO_DTYPE", "draw_tempo_curve", "tempo_curve"]

_FIELDS: list[tuple[str, Any]] = [("onset_beat", "f8"), ("onset_sec", "f8"), ("beats_per_minute", "f8")]
TEMPO_DTYPE = np.dtype(_FIELDS)
"""One span of a recording: where it begins, in beats and in seconds, and its tempo."""

_WIDTH_PX, _HEIGHT_PX = 1000, 320
_LEFT_PX, _RIGHT_PX, _TOP_PX, _BOTTOM_PX = 60, 20, 20, 40


def tempo_curve(
    alignment: NoteAlignment, score_data: pt.score.ScoreLike, span_beat: float = 1.0
) -> npt.NDArray[np.void]:
    """Measure the tempo from onset to onset.

    Parameters
    ----------
    alignment : list of dict
        Alignment returned by `align_score`.
    score_data : partitura.score.Score
        Score returned with the alignment.
    span_beat : float
        Minimum length of score over which a tempo is measured.

    Returns
    -------
    np.ndarray of `TEMPO_DTYPE`
        The start of each span, in beats and seconds, and its beats per minute.
    """
    anchors = anchors_from_alignment(alignment, score_data, span_beat)
    if len(anchors) < 2:
        raise InputError(f"an alignment of {len(anchors)} onset, expected at least two to measure a tempo")
    steps = np.diff(anchors, axis=0)
    curve = np.zeros(len(steps), TEMPO_DTYPE)
    curve["onset_beat"], curve["onset_sec"] = anchors[:-1, 0], anchors[:-1, 1]
    curve["beats_per_minute"] = 60 * steps[:, 0] / np.maximum(steps[:, 1], 1e-3)
    return curve


def draw_tempo_curve(curve: npt.NDArray[np.void]) -> Image.Image:
    """Draw a tempo curve: beats from left to right, beats per minute upwards."""
    image = Image.new("RGB", (_WIDTH_PX, _HEIGHT_PX), "white")
    paint = ImageDraw.Draw(image)
    font = label_font(12)
    beat, tempo = curve["onset_beat"], curve["beats_per_minute"]
    top = 20 * np.ceil((tempo.max() + 1) / 20)
    bottom = 20 * np.floor(tempo.min() / 20)
    x = np.interp(beat, [beat[0], max(beat[-1], beat[0] + 1)], [_LEFT_PX, _WIDTH_PX - _RIGHT_PX])
    y = np.interp(tempo, [bottom, top], [_HEIGHT_PX - _BOTTOM_PX, _TOP_PX])
    for mark in np.linspace(bottom, top, 5):
        height = float(np.interp(mark, [bottom, top], [_HEIGHT_PX - _BOTTOM_PX, _TOP_PX]))
        paint.line([(_LEFT_PX, height), (_WIDTH_PX - _RIGHT_PX, height)], fill=(225, 225, 225))
        paint.text((_LEFT_PX - 6, height), f"{mark:.0f}", fill="black", font=font, anchor="rm")
    for column in range(0, len(beat), max(1, len(beat) // 12)):
        place = (float(x[column]), _HEIGHT_PX - _BOTTOM_PX + 6)
        paint.text(place, f"{beat[column]:g}", fill="black", font=font, anchor="mt")
    paint.text((_LEFT_PX, 4), "beats per minute", fill="black", font=font)
    paint.text((_WIDTH_PX - _RIGHT_PX, _HEIGHT_PX - 4), "beat", fill="black", font=font, anchor="rb")
    corners = [(float(px), float(py)) for px, py in zip(x, y, strict=True)]
    paint.line(corners, fill=(0, 114, 178), width=2, joint="curve")
    return image
