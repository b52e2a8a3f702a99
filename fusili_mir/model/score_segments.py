"""Cutting a whole score into segments, such that exactly one column covers every place of every system.

A system is a row of columns as wide as the encoder's patches. A segment shows as many columns as fit into it.
Where a system needs several segments, they overlap, and each overlap is divided at its middle, where both show
enough context to the left and right.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fusili_mir.arrays import Bool, Float32, GreyImage, Table
from fusili_mir.errors import InputError
from fusili_mir.model.manifest import ImageSpec
from fusili_mir.pages.score_axis import COLUMN_DTYPE
from fusili_mir.pages.segments import Box, Piece, Segment, cut_segment, staff_strips

if TYPE_CHECKING:  # partitura, which pages need, is slow to import
    from fusili_mir.pages.pages import Pages

__all__ = ["ScoreSegment", "cut_image", "halve_systems", "segment_pages"]

_ROUNDING_PX = 1e-3  # of places on pages of some thousand pixels, in float32
_MAX_COLUMNS = 1024  # in a segment of any width; a printed system has about 200
_MAX_OVERLAP_COLUMNS = 128
_SQUARE_MARGIN_SPACES = 3.0
_PRINTED_SYSTEM_SPACES = 120.0  # wider systems are shown in parts


@dataclass(frozen=True)
class ScoreSegment:
    """A segment, and which of its columns count.

    Attributes
    ----------
    segment : Segment
        The segment, a whole number of columns wide.
    n_strips : int
        Number of staff strips, one below the other; 1 for squares.
    keep_from : int
        First of its columns that counts.
    columns : np.ndarray of `COLUMN_DTYPE` [shape=(n,)]
        Where the columns that count lie on the page.
    rows_shown : np.ndarray [shape=(rows,)], bool
        Rows of patches that show part of the system.
    """

    segment: Segment
    n_strips: int
    keep_from: int
    columns: Table
    rows_shown: Bool


@dataclass(frozen=True)
class _Window:
    """The columns of a system that one segment shows, and which of them it keeps."""

    start: int
    stop: int
    keep_from: int
    keep_to: int


def segment_pages(pages: Pages, spec: ImageSpec) -> tuple[ScoreSegment, ...]:
    """Cut all systems of a score into segments for a bundle.

    Parameters
    ----------
    pages : Pages
    spec : ImageSpec
        Specification of the bundle's image graph.

    Returns
    -------
    tuple of ScoreSegment
        Segments in reading order; their columns that count, concatenated, are the score axis.
    """
    if not len(pages.systems):
        raise InputError(f"{pages.filename}: no systems on its pages; expected printed music")
    cut = _squares if spec.segment == "square" else _strips
    return tuple(segment for system in pages.systems for segment in cut(pages, system, spec))


def halve_systems(pages: Pages, spec: ImageSpec) -> tuple[ScoreSegment, ...]:
    """Cut the halves of each system for a bundle: left, middle and right, which overlap.

    Parameters
    ----------
    pages : Pages
    spec : ImageSpec
        Specification of the bundle's image graph.

    Returns
    -------
    tuple of ScoreSegment
        Segments in reading order; all their columns count. None for squares, which overlap already.
    """
    if spec.segment == "square":
        return ()
    halves = []
    for system in pages.systems:
        (*_, last) = _windows(system, _strip_column_px(system, spec), spec)
        quarter = last.stop // 4
        if quarter:
            starts = (0, quarter, last.stop - 2 * quarter)
            windows = [_Window(start, start + 2 * quarter, start, start + 2 * quarter) for start in starts]
            halves += [_strip(pages, system, window, spec) for window in windows]
    return tuple(halves)


def cut_image(segment: ScoreSegment, images: Sequence[GreyImage]) -> Float32:
    """Make the image of a segment.

    Parameters
    ----------
    segment : ScoreSegment
    images : sequence of np.ndarray [shape=(height, width)]
        The page images.

    Returns
    -------
    np.ndarray [shape=(n_strips, height, width)], float32
        0 is ink, 1 is paper.
    """
    image = cut_segment(segment.segment, images)
    shades = np.asarray(image / np.float32(255), np.float32)
    return shades.reshape(segment.n_strips, -1, image.shape[1])


def _strips(pages: Pages, system: np.void, spec: ImageSpec) -> Iterator[ScoreSegment]:
    for window in _windows(system, _strip_column_px(system, spec), spec):
        yield _strip(pages, system, window, spec)


def _strip_column_px(system: np.void, spec: ImageSpec) -> float:
    """Return how wide a column is on the page."""
    if spec.space_px is None or spec.margin_spaces is None:
        raise InputError("staff strips need space_px and margin_spaces")
    return spec.patch_width_px * float(system["space_px"]) / spec.space_px


def _strip(pages: Pages, system: np.void, window: _Window, spec: ImageSpec) -> ScoreSegment:
    column_px = _strip_column_px(system, spec)
    assert spec.space_px is not None  # noqa: S101
    assert spec.margin_spaces is not None  # noqa: S101
    x0 = float(system["x0"])
    x_range = (x0 + window.start * column_px, x0 + window.stop * column_px)
    segment = staff_strips(
        pages.systems, pages.staves, int(system["system"]), spec.space_px, spec.margin_spaces, x_range
    )
    return ScoreSegment(
        segment,
        len(segment.pieces),
        window.keep_from - window.start,
        _columns(system, column_px, window),
        np.ones(1, bool),
    )


def _squares(pages: Pages, system: np.void, spec: ImageSpec) -> Iterator[ScoreSegment]:
    """Show a system, or parts of it, as printed, at half height as in training."""
    if spec.width_px is None:
        raise InputError("squares need width_px")
    margin_spaces = _SQUARE_MARGIN_SPACES if spec.margin_spaces is None else spec.margin_spaces
    margin_px = margin_spaces * float(system["space_px"])
    y0, y1 = float(system["y0"]) - margin_px, float(system["y1"]) + margin_px
    scale = min(_square_scale(system, spec), spec.height_px / (y1 - y0))
    # Beyond the margins the square shows paper, not the next system.
    height_px = min(spec.height_px, math.ceil((y1 - y0) * scale - 1e-6))
    top_px = (spec.height_px - height_px) // 2
    row_px = np.arange(spec.rows + 1) * spec.patch_height_px
    rows_shown = (row_px[:-1] < top_px + height_px) & (row_px[1:] > top_px)
    column_px = spec.patch_width_px / scale  # on the page
    x0 = float(system["x0"])
    for window in _windows(system, column_px, spec):
        width_px = (window.stop - window.start) * spec.patch_width_px
        on_page = Box(x0 + window.start * column_px, y0, x0 + window.stop * column_px, y0 + height_px / scale)
        piece = Piece(int(system["page"]), on_page, Box(0, top_px, width_px, top_px + height_px))
        yield ScoreSegment(
            Segment(width_px, spec.height_px, (piece,)),
            1,
            window.keep_from - window.start,
            _columns(system, column_px, window),
            rows_shown,
        )


def _square_scale(system: np.void, spec: ImageSpec) -> float:
    """Return the pixels of the square per pixel of the page, as far as the width decides."""
    space_px = float(system["space_px"])
    if spec.space_px is not None:
        return spec.space_px / space_px
    width_px = min(float(system["x1"]) - float(system["x0"]), _PRINTED_SYSTEM_SPACES * space_px)
    return (spec.width_px or spec.height_px) / width_px


def _windows(system: np.void, column_px: float, spec: ImageSpec) -> list[_Window]:
    """Divide the columns of a system, each `column_px` wide on the page, among segments."""
    width_px = float(system["x1"]) - float(system["x0"]) - _ROUNDING_PX
    n_columns = max(1, math.ceil(width_px / column_px))
    most = _MAX_COLUMNS if spec.width_px is None else spec.width_px // spec.patch_width_px
    overlap = min(most // 2, _MAX_OVERLAP_COLUMNS)
    last = max(0, n_columns - most)
    starts = [*range(0, last, most - overlap), last]
    stops = [min(start + most, n_columns) for start in starts]
    seams = [(start + stop) // 2 for start, stop in zip(starts[1:], stops[:-1], strict=True)]
    return [_Window(*window) for window in zip(starts, stops, [0, *seams], [*seams, n_columns], strict=True)]


def _columns(system: np.void, column_px: float, window: _Window) -> Table:
    numbers = np.arange(window.keep_from, window.keep_to)
    columns = np.empty(len(numbers), COLUMN_DTYPE)
    for name in ("page", "system", "y0", "y1"):
        columns[name] = system[name]
    columns["x0"] = float(system["x0"]) + numbers * column_px
    columns["x1"] = float(system["x0"]) + (numbers + 1) * column_px
    return columns
