"""A comb of five teeth that sees staff lines in the upright strips of a page.

Strips are a few staff spaces wide. The ink that most columns of a strip share, row by row, keeps staff lines
and loses note heads, stems and letters.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from PIL import Image
from scipy import ndimage

from fusili_mir.arrays import Float32, Float64, Int64

__all__ = [
    "CELLS_A_STRIP",
    "MIN_SPACE_PX",
    "TEETH",
    "UprightStrips",
    "at_rows",
    "comb_response",
    "contrast",
    "cut_strips",
    "likely_spaces",
]


MIN_SPACE_PX = 4.0
_MAX_SPACE_PX = 48.0
_FAINT = 0.15  # ink of a thin blurred line
_CELL = 0.75  # width of a cell, in spaces
CELLS_A_STRIP = 6
TEETH = np.arange(-2, 3)


@dataclass(frozen=True)
class UprightStrips:
    """A page reduced to cells of a part of a staff space and strips of some cells."""

    space_px: float
    ink: Float32  # (height, width)
    cells: Float32  # (height, n_cells): mean ink of each row of each cell
    strips: Float32  # (height, n_strips): ink that nearly all cells of a strip share

    @property
    def cell_px(self) -> float:
        """Width of a cell."""
        return self.ink.shape[1] / self.cells.shape[1]


def cut_strips(ink: Float32, space_px: float) -> UprightStrips:
    """Cut a page into strips for staves of one size; `ink` is that of `fusili_mir.pages.ink.ink_map`."""
    height, width = ink.shape
    n_strips = max(1, round(width / (_CELL * space_px * CELLS_A_STRIP)))
    n_cells = n_strips * CELLS_A_STRIP
    cells = np.asarray(Image.fromarray(ink).resize((n_cells, height), Image.Resampling.BOX))
    grouped = cells.reshape(height, n_strips, CELLS_A_STRIP)
    return UprightStrips(space_px, ink, cells, np.partition(grouped, 1, axis=2)[:, :, 1])


def likely_spaces(ink: Float32) -> list[float]:
    """Return the distances at which lines repeat, the most likely one first, in pixels."""
    height, width = ink.shape
    strips = cut_strips(ink, max(3.0, width / 192)).strips
    # Grain must not count, faint lines as much as black beams, and sharp edges more than broad shapes.
    grain = float(np.median(np.abs(strips - np.median(strips))))
    edges = np.diff(np.tanh(np.maximum(strips - 3 * grain, 0) / _FAINT), axis=0)
    padded = 1 << (height + 5 * int(_MAX_SPACE_PX)).bit_length()
    power = (np.abs(np.fft.rfft(edges, n=padded, axis=0)) ** 2).sum(axis=1)
    echo = np.fft.irfft(power)[: 4 * int(_MAX_SPACE_PX) + 2]
    spaces = np.geomspace(MIN_SPACE_PX, min(_MAX_SPACE_PX, height / 5), 256)
    on, off = (
        np.interp(np.outer(lags, spaces), np.arange(len(echo)), echo).sum(axis=0)
        for lags in ([1, 2, 3, 4], [0.5, 1.5, 2.5, 3.5])
    )
    score = (on - off) / max(float(echo[0]), 1e-9)
    peaks = np.flatnonzero((score == ndimage.maximum_filter1d(score, 9)) & (score > 0.02))
    peaks = peaks[np.argsort(-score[peaks])]
    return [float(spaces[peak]) for peak in peaks if score[peak] > 0.15 * score[peaks[0]]]


def at_rows(values: Float32 | Float64, rows: Float64, columns: Int64) -> Float64:
    """Read an array at fractional rows; rows beyond the page read its border."""
    rows = np.clip(rows, 0, len(values) - 1)
    low = np.minimum(rows.astype(np.int64), max(len(values) - 2, 0))
    part = rows - low
    high = np.minimum(low + 1, len(values) - 1)
    return np.asarray((1 - part) * values[low, columns] + part * values[high, columns])


def contrast(strips: Float32, rows: Float64, columns: Int64, space_px: float) -> Float64:
    """Return the ink at some rows against that half a space above and below."""
    above, below = (at_rows(strips, rows + side * space_px / 2, columns) for side in (-1, 1))
    return np.asarray(at_rows(strips, rows, columns) - (above + below) / 2)


def comb_response(strips: Float32, space_px: float) -> Float64:
    """Return how well five lines around each row of each strip are seen [shape=(height, n_strips)]."""
    height, n_strips = strips.shape
    rows = np.arange(height, dtype=np.float64)[:, None]
    columns = np.arange(n_strips)
    lines = contrast(strips, rows, columns, space_px)
    loose = ndimage.maximum_filter1d(lines, 1 + 2 * max(1, round(0.1 * space_px)), axis=0)
    teeth = np.stack([at_rows(loose, rows + tooth * space_px, columns) for tooth in TEETH])
    weakest = np.partition(teeth, 2, axis=0)[:3].mean(axis=0)
    # What the loose teeth see on several rows alike is decided by the exact ones.
    exact = np.mean([at_rows(lines, rows + tooth * space_px, columns) for tooth in TEETH], axis=0)
    on_page = (rows >= 2 * space_px - 1) & (rows <= height - 2 * space_px)
    return np.where(on_page, 0.9 * weakest + 0.1 * exact, 0.0)
