"""Segments: the pieces of score that go through the image encoder at once.

A segment is an image composed of rectangles of pages. Each rectangle is only shifted and scaled, so places map
exactly between the segment and the page, in both directions.

Two shapes are cut here. `system_strip` is one system (or a part of it) as printed, scaled to one staff size.
`staff_strips` is the same music with each staff normalised separately and placed below the previous one: its five
lines always lie in the same rows, whatever the distance between the staves on the page.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from PIL import Image

from fusili_mir.argument_kinds import checked
from fusili_mir.arrays import Bool, Float64, GreyImage, Int64, Table
from fusili_mir.errors import InputError
from fusili_mir.geometry import strip_height_px
from fusili_mir.short_repr import short_repr

__all__ = ["Box", "Piece", "Segment", "cut_segment", "staff_strips", "system_strip"]

_PAPER = 255


@dataclass(frozen=True)
class Box:
    """A rectangle, ``x0 <= x < x1`` and ``y0 <= y < y1``, in pixels."""

    x0: float
    y0: float
    x1: float
    y1: float

    def __post_init__(self) -> None:
        if not (self.x0 < self.x1 and self.y0 < self.y1):
            raise InputError(f"an empty box: x {self.x0:g} to {self.x1:g}, y {self.y0:g} to {self.y1:g}")

    def holds(self, x: Float64, y: Float64) -> Bool:
        """Return which places lie in the box."""
        return (self.x0 <= x) & (x < self.x1) & (self.y0 <= y) & (y < self.y1)

    def map_to(self, other: Box, x: Float64, y: Float64) -> tuple[Float64, Float64]:
        """Map places in this box to the corresponding places in another box."""
        return (
            other.x0 + (x - self.x0) * ((other.x1 - other.x0) / (self.x1 - self.x0)),
            other.y0 + (y - self.y0) * ((other.y1 - other.y0) / (self.y1 - self.y0)),
        )


@dataclass(frozen=True)
class Piece:
    """A rectangle of a page, and where it lies in the segment.

    The box in the segment has integer coordinates. The box on the page is what it shows; where that extends
    beyond the page, the segment shows paper.
    """

    page: int
    on_page: Box
    in_segment: Box


@checked
@short_repr
@dataclass(frozen=True)
class Segment:
    """A piece of score as the image encoder sees it.

    Attributes
    ----------
    width_px, height_px : int
        Size of the image.
    pieces : tuple of Piece
        Rectangles that it shows, in reading order. They may overlap on the page, but not in the segment.
    """

    width_px: int
    height_px: int
    pieces: tuple[Piece, ...]

    def to_page(self, x: npt.ArrayLike, y: npt.ArrayLike) -> tuple[Int64, Float64, Float64]:
        """Map places in the segment to (page, x, y); page -1 and NaN where the segment shows nothing.

        >>> piece = Piece(page=0, on_page=Box(100, 200, 300, 240), in_segment=Box(0, 0, 400, 80))
        >>> page, x, y = Segment(width_px=400, height_px=80, pieces=(piece,)).to_page(10, 20)
        >>> int(page), float(x), float(y)
        (0, 105.0, 210.0)
        """
        x, y = np.broadcast_arrays(np.asarray(x, np.float64), np.asarray(y, np.float64))
        page = np.full(x.shape, -1, np.int64)
        page_x, page_y = np.full(x.shape, np.nan), np.full(x.shape, np.nan)
        for piece in self.pieces:
            here = piece.in_segment.holds(x, y)
            mapped = piece.in_segment.map_to(piece.on_page, x, y)
            page = np.where(here, piece.page, page)
            page_x, page_y = np.where(here, mapped[0], page_x), np.where(here, mapped[1], page_y)
        return page, page_x, page_y

    def from_page(self, page: npt.ArrayLike, x: npt.ArrayLike, y: npt.ArrayLike) -> tuple[Float64, Float64]:
        """Map places (page, x, y) to (x, y) in the segment; NaN where the segment does not show them.

        A place that two pieces show (between two staves) maps to the piece whose middle is nearer.

        >>> piece = Piece(page=0, on_page=Box(100, 200, 300, 240), in_segment=Box(0, 0, 400, 80))
        >>> x, y = Segment(width_px=400, height_px=80, pieces=(piece,)).from_page(0, [105, 99], 210)
        >>> x.tolist(), y.tolist()
        ([10.0, nan], [20.0, nan])
        """
        page, x, y = np.broadcast_arrays(
            np.asarray(page, np.int64), np.asarray(x, np.float64), np.asarray(y, np.float64)
        )
        segment_x, segment_y = np.full(x.shape, np.nan), np.full(x.shape, np.nan)
        nearest = np.full(x.shape, np.inf)
        for piece in self.pieces:
            distance = np.abs(y - (piece.on_page.y0 + piece.on_page.y1) / 2)
            here = (page == piece.page) & piece.on_page.holds(x, y) & (distance < nearest)
            mapped = piece.on_page.map_to(piece.in_segment, x, y)
            segment_x, segment_y = np.where(here, mapped[0], segment_x), np.where(here, mapped[1], segment_y)
            nearest = np.where(here, distance, nearest)
        return segment_x, segment_y


@checked
def cut_segment(segment: Segment, images: Sequence[GreyImage]) -> GreyImage:
    """Make the image of a segment.

    Parameters
    ----------
    segment : Segment
        Layout of the segment.
    images : sequence of np.ndarray [shape=(height, width)]
        The page images.

    Returns
    -------
    np.ndarray [shape=(segment.height_px, segment.width_px)], uint8
        The image, with paper (255) where the segment shows nothing.
    """
    canvas = Image.new("L", (segment.width_px, segment.height_px), _PAPER)
    beyond = [piece.page for piece in segment.pieces if piece.page >= len(images)]
    if beyond:
        raise InputError(f"the segment shows page {beyond[0]} of {len(images)}, counted from 0")
    for piece in segment.pieces:
        target = piece.in_segment
        size = (round(target.x1 - target.x0), round(target.y1 - target.y0))
        source, box = _with_paper_around(images[piece.page], piece.on_page)
        shown = Image.fromarray(source).resize(
            size, Image.Resampling.BILINEAR, box=(box.x0, box.y0, box.x1, box.y1)
        )
        canvas.paste(shown, (round(target.x0), round(target.y0)))
    return np.asarray(canvas)


@checked
def system_strip(
    systems: Table,
    system: int,
    space_px: float,
    margin_spaces: float = 4.0,
    x_range: tuple[float, float] | None = None,
) -> Segment:
    """Lay out one system as printed, scaled to one staff size.

    Parameters
    ----------
    systems : np.ndarray of `SYSTEM_DTYPE`
        Systems of the pages.
    system : int
        Index of the system.
    space_px : float
        Distance between the staff lines in the segment.
    margin_spaces : float
        Margin above the first and below the last staff, in staff spaces.
    x_range : (float, float), optional
        Part of the system, in pixels of the page; by default all of it.

    Returns
    -------
    Segment
        The segment, with one piece.
    """
    _check_size(space_px, margin_spaces)
    row = _rows_of(systems, system)[0]
    x0, x1 = x_range or (float(row["x0"]), float(row["x1"]))
    scale = space_px / float(row["space_px"])
    width_px = max(1, round((x1 - x0) * scale))
    height_px = max(1, round((float(row["y1"]) - float(row["y0"])) * scale + 2 * margin_spaces * space_px))
    return Segment(width_px, height_px, (_piece(row, x0, scale, scale, Box(0, 0, width_px, height_px)),))


@checked
def staff_strips(
    systems: Table,
    staves: Table,
    system: int,
    space_px: float,
    margin_spaces: float = 6.0,
    x_range: tuple[float, float] | None = None,
) -> Segment:
    """Lay out the staves of one system below each other, each scaled to one staff size.

    The middle line of every staff lies in the middle of its strip, and the columns of all staves line up.

    Parameters
    ----------
    systems, staves : np.ndarray of `SYSTEM_DTYPE`, `STAFF_DTYPE`
        Systems and staves of the pages.
    system : int
        Index of the system.
    space_px : float
        Distance between the staff lines in the segment.
    margin_spaces : float
        Margin above and below each staff, in staff spaces.
    x_range : (float, float), optional
        Part of the system, in pixels of the page; by default all of it.

    Returns
    -------
    Segment
        The segment, with one piece per staff, all of the same height.
    """
    _check_size(space_px, margin_spaces)
    system_row = _rows_of(systems, system)[0]
    x0, x1 = x_range or (float(system_row["x0"]), float(system_row["x1"]))
    x_scale = space_px / float(system_row["space_px"])
    width_px = max(1, round((x1 - x0) * x_scale))
    strip_px = strip_height_px(space_px, margin_spaces)
    pieces = tuple(
        _piece(
            staff,
            x0,
            x_scale,
            space_px / float(staff["space_px"]),
            Box(0, index * strip_px, width_px, (index + 1) * strip_px),
        )
        for index, staff in enumerate(_rows_of(staves, system))
    )
    return Segment(width_px, strip_px * len(pieces), pieces)


def _check_size(space_px: float, margin_spaces: float) -> None:
    if not (0 < space_px < np.inf and 0 <= margin_spaces < np.inf):
        raise InputError(
            f"staff spaces of {space_px:g} px and margins of {margin_spaces:g} of them; expected positive sizes"
        )


def _rows_of(boxes: Table, system: int) -> Table:
    fields = boxes.dtype.names or ()
    lacking = [name for name in ("page", "system", "space_px", "x0", "y0", "x1", "y1") if name not in fields]
    if lacking:
        raise InputError(f"a table without the field {lacking[0]}; expected the systems or staves of Pages")
    rows: Table = boxes[boxes["system"] == system]
    if not len(rows):
        raise InputError(f"there is no system {system}; the score has {len(np.unique(boxes['system']))}")
    return rows


def _piece(row: np.void, x0: float, x_scale: float, y_scale: float, target: Box) -> Piece:
    """Show in `target`, exactly to scale, the part of the page that starts at `x0` and is centred on `row`."""
    middle = (float(row["y0"]) + float(row["y1"])) / 2
    half_height = (target.y1 - target.y0) / y_scale / 2
    on_page = Box(x0, middle - half_height, x0 + (target.x1 - target.x0) / x_scale, middle + half_height)
    return Piece(int(row["page"]), on_page, target)


def _with_paper_around(image: GreyImage, box: Box) -> tuple[GreyImage, Box]:
    """Return the part of a page around a box, padded with paper beyond the page, and the box within it."""
    left, top = int(np.floor(box.x0)) - 1, int(np.floor(box.y0)) - 1
    right, bottom = int(np.ceil(box.x1)) + 1, int(np.ceil(box.y1)) + 1
    part = image[max(top, 0) : max(bottom, 0), max(left, 0) : max(right, 0)]
    outside = (
        (max(-top, 0), bottom - max(top, 0) - part.shape[0]),
        (max(-left, 0), right - max(left, 0) - part.shape[1]),
    )
    if part.size == 0:
        part = np.full((bottom - top, right - left), _PAPER, np.uint8)
    elif any(max(sides) for sides in outside):
        part = np.pad(part, outside, constant_values=_PAPER)
    return part, Box(box.x0 - left, box.y0 - top, box.x1 - left, box.y1 - top)
