"""A comb of five teeth that detects staff lines in vertical slices of a page.

A slice is a few staff spaces wide. The ink that most of its cells share, row by row, keeps staff lines and loses
note heads, stems and letters.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from PIL import Image
from scipy import ndimage

from fusili_mir.arrays import Float32, Float64, Int64

__all__ = [
    "CELLS_PER_SLICE",
    "MIN_SPACE_PX",
    "TEETH",
    "PageSlices",
    "at_rows",
    "comb_response",
    "contrast",
    "cut_slices",
    "likely_spaces",
]


MIN_SPACE_PX = 4.0
_MAX_SPACE_PX = 48.0
_FAINT = 0.15  # ink of a thin blurred line
_CELL = 0.75  # width of a cell, in spaces
CELLS_PER_SLICE = 6
TEETH = np.arange(-2, 3)


@dataclass(frozen=True)
class PageSlices:
    """A page reduced to vertical cells, narrower than a staff space, and to slices of several cells."""

    space_px: float
    ink: Float32  # (height, width)
    cells: Float32  # (height, n_cells): mean ink of each row of each cell
    slices: Float32  # (height, n_slices): ink that nearly all cells of a slice share

    @property
    def cell_px(self) -> float:
        """Width of a cell, in pixels."""
        return float(self.ink.shape[1] / self.cells.shape[1])


def cut_slices(ink: Float32, space_px: float) -> PageSlices:
    """Cut a page into slices for staves of one size; `ink` comes from `fusili_mir.pages.ink.ink_map`."""
    height, width = ink.shape
    n_slices = max(1, round(width / (_CELL * space_px * CELLS_PER_SLICE)))
    n_cells = n_slices * CELLS_PER_SLICE
    cells = np.asarray(Image.fromarray(ink).resize((n_cells, height), Image.Resampling.BOX))
    grouped = cells.reshape(height, n_slices, CELLS_PER_SLICE)
    return PageSlices(space_px, ink, cells, np.partition(grouped, 1, axis=2)[:, :, 1])


def likely_spaces(ink: Float32) -> list[float]:
    """Return the distances in pixels at which lines repeat, the most likely one first."""
    height, width = ink.shape
    slices = cut_slices(ink, max(3.0, width / 192)).slices
    # Ignore grain, count faint lines as much as black beams, and sharp edges more than broad shapes.
    grain = float(np.median(np.abs(slices - np.median(slices))))
    edges = np.diff(np.tanh(np.maximum(slices - 3 * grain, 0) / _FAINT), axis=0)
    padded = 1 << (height + 5 * int(_MAX_SPACE_PX)).bit_length()
    power = (np.abs(np.fft.rfft(edges, n=padded, axis=0)) ** 2).sum(axis=1)
    echo = np.fft.irfft(power)[: 4 * int(_MAX_SPACE_PX) + 2]
    spaces = np.geomspace(MIN_SPACE_PX, min(_MAX_SPACE_PX, height / 5), 256)
    on, off = (
        np.interp(np.outer(lags, spaces), np.arange(len(echo)), echo).sum(axis=0)
        for lags in ([1, 2, 3, 4], [0.5, 1.5, 2.5, 3.5])
    )
    strength = (on - off) / max(float(echo[0]), 1e-9)
    peaks = np.flatnonzero((strength == ndimage.maximum_filter1d(strength, 9)) & (strength > 0.02))
    peaks = peaks[np.argsort(-strength[peaks])]
    return [float(spaces[peak]) for peak in peaks if strength[peak] > 0.15 * strength[peaks[0]]]


def at_rows(values: Float32 | Float64, rows: Float64, columns: Int64) -> Float64:
    """Interpolate an array at fractional rows; rows beyond the page repeat its border.

    >>> at_rows(np.array([[0.0], [1.0], [2.0]]), np.array([0.5, 7.0]), np.array([0, 0])).tolist()
    [0.5, 2.0]
    """
    rows = np.clip(rows, 0, len(values) - 1)
    low = np.minimum(rows.astype(np.int64), max(len(values) - 2, 0))
    part = rows - low
    high = np.minimum(low + 1, len(values) - 1)
    return np.asarray((1 - part) * values[low, columns] + part * values[high, columns])


def contrast(slices: Float32, rows: Float64, columns: Int64, space_px: float) -> Float64:
    """Return the ink at some rows minus the mean of the ink half a space above and below them."""
    above, below = (at_rows(slices, rows + side * space_px / 2, columns) for side in (-1, 1))
    return np.asarray(at_rows(slices, rows, columns) - (above + below) / 2)


def comb_response(slices: Float32, space_px: float) -> Float64:
    """Return the strength of five lines around each row of each slice [shape=(height, n_slices)]."""
    height, n_slices = slices.shape
    rows = np.arange(height, dtype=np.float64)[:, None]
    columns = np.arange(n_slices)
    lines = contrast(slices, rows, columns, space_px)
    loose = ndimage.maximum_filter1d(lines, 1 + 2 * max(1, round(0.1 * space_px)), axis=0)
    teeth = np.stack([at_rows(loose, rows + tooth * space_px, columns) for tooth in TEETH])
    weakest = np.partition(teeth, 2, axis=0)[:3].mean(axis=0)
    # Where the loose teeth respond alike on several rows, the exact ones decide.
    exact = np.mean([at_rows(lines, rows + tooth * space_px, columns) for tooth in TEETH], axis=0)
    on_page = (rows >= 2 * space_px - 1) & (rows <= height - 2 * space_px)
    return np.where(on_page, 0.9 * weakest + 0.1 * exact, 0.0)
