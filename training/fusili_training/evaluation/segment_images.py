"""Segments for a bundle, cut from page images: whole systems as squares or as staff strips."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from PIL import Image

from fusili_mir.arrays import GreyImage, Table
from fusili_mir.boxes import MEASURE_DTYPE
from fusili_mir.model.bundle import ImageSpec
from fusili_mir.pages.segments import Box, Piece, Segment, cut_segment, staff_strips
from fusili_mir.pages.square_segments import square_segment
from fusili_mir.pages.systems import find_systems
from fusili_training.truth import TruthArray

__all__ = ["SIDE_PX", "SegmentImage", "fit_square", "place_truth", "strips_of_image", "system_segment"]

SIDE_PX = 224  # side of the paper's squares


@dataclass(frozen=True, eq=False)
class SegmentImage:
    """An image as a bundle takes it: strips of `strip_height_px` below each other, or one square."""

    image: GreyImage
    strip_height_px: int


def system_segment(systems: Table, staves: Table, system: int, spec: ImageSpec | None) -> Segment:
    """Lay out a whole system as the bundle takes it; in a square it lies in the middle, to scale.

    Parameters
    ----------
    systems, staves : np.ndarray of `SYSTEM_DTYPE`, `STAFF_DTYPE`
    system : int
    spec : ImageSpec, optional
        Images that the bundle takes; None: the paper's squares.
    """
    if spec is not None and spec.space_px is not None and spec.margin_spaces is not None:
        return staff_strips(systems, staves, system, spec.space_px, spec.margin_spaces)
    (row,) = systems[systems["system"] == system]
    measure = np.zeros(1, MEASURE_DTYPE)
    for name in ("page", "system", "x0", "y0", "x1", "y1"):
        measure[name] = row[name]
    return square_segment(systems, measure, 0, 0, SIDE_PX if spec is None else spec.height_px)


def place_truth(truth: TruthArray, segment: Segment, page: int) -> TruthArray:
    """Map note heads from pixels of a page to pixels of a segment, without the heads that it does not show."""
    placed = truth.copy()
    shown = np.zeros(len(truth), dtype=bool)
    for row, head in enumerate(placed):
        piece = _piece_at(segment, page, (head["x0"] + head["x1"]) / 2, (head["y0"] + head["y1"]) / 2)
        if piece is not None:
            x, y = piece.on_page.map_to(
                piece.in_segment, np.array([head["x0"], head["x1"]]), np.array([head["y0"], head["y1"]])
            )
            head["x0"], head["x1"] = x
            head["y0"], head["y1"] = y
            shown[row] = True
    return np.asarray(placed[shown])


def _piece_at(segment: Segment, page: int, x: float, y: float) -> Piece | None:
    """Return the piece that shows a place; if several do, the one whose middle is nearest."""
    place = np.asarray(x, np.float64), np.asarray(y, np.float64)
    holding = [piece for piece in segment.pieces if piece.page == page and piece.on_page.holds(*place).all()]
    return min(holding, key=lambda piece: abs(y - (piece.on_page.y0 + piece.on_page.y1) / 2), default=None)


def fit_square(image: GreyImage, side_px: int = SIDE_PX) -> SegmentImage:
    """Scale an image to fit into a square, in its middle; an image of that size stays as it is."""
    height_px, width_px = image.shape
    if (height_px, width_px) != (side_px, side_px):
        scale = side_px / max(height_px, width_px)
        width, height = max(1, round(width_px * scale)), max(1, round(height_px * scale))
        left, top = (side_px - width) // 2, (side_px - height) // 2
        piece = Piece(0, Box(0, 0, width_px, height_px), Box(left, top, left + width, top + height))
        image = cut_segment(Segment(side_px, side_px, (piece,)), [image])
    return SegmentImage(image, side_px)


def strips_of_image(image: GreyImage, spec: ImageSpec) -> SegmentImage | None:
    """Cut an image of some measures into staff strips; None if no staves are found.

    Systems below each other are laid end to end, padded with paper where one has fewer staves.
    """
    layout = find_systems(image)
    if not len(layout.systems):
        return None
    segments = [
        system_segment(layout.systems, layout.staves, int(number), spec)
        for number in layout.systems["system"]
    ]
    return SegmentImage(_end_to_end([cut_segment(segment, [image]) for segment in segments]), spec.height_px)


def _end_to_end(images: Sequence[GreyImage]) -> GreyImage:
    height_px = max(image.shape[0] for image in images)
    canvas = Image.new("L", (sum(image.shape[1] for image in images), height_px), 255)
    left = 0
    for image in images:
        canvas.paste(Image.fromarray(image), (left, 0))
        left += image.shape[1]
    return np.asarray(canvas)
