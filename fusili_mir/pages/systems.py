"""Systems on a deskewed page: staves joined by a vertical stroke.

Neighbouring staves belong together if a stroke runs from the bottom line of the upper one to the top line of
the lower one: the line at the left edge of the system, a bracket, or bar lines. Where a stroke has faded, the
system is completed to match the others on the page.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
from scipy import ndimage

from fusili_mir.arrays import Bool, Float32, GreyImage, Table
from fusili_mir.boxes import SYSTEM_DTYPE
from fusili_mir.pages.ink import ink_map, reduce_page
from fusili_mir.pages.staves import find_staves

__all__ = ["PageLayout", "find_systems"]


_WORK_SPACE_PX = 10  # strokes are searched on a page reduced to spaces of at least this size
_MIN_EDGE = 0.65  # darkness of the faintest part of the left line, relative to that of the staff lines
_MIN_BAR_LINE = 0.6  # the same for a bar line
_ABOVE_NOISE = 2.5  # the same for any stroke, as a multiple of the darkness of most columns
_MIN_OVERLAP = 0.5  # horizontal overlap of two staves of a system, as a share of the narrower one
_OSSIA_WIDTH = 0.5  # width below which a staff is an ossia, as a share of its neighbour


@dataclass(frozen=True)
class PageLayout:
    """What was found on one page; both arrays are empty for a page without music."""

    systems: Table  # (n_systems,) of SYSTEM_DTYPE, page 0, from top to bottom
    staves: Table  # (n_staves,) of STAFF_DTYPE, page 0, by system and staff


def find_systems(image: GreyImage) -> PageLayout:
    """Find the systems of a deskewed page.

    Parameters
    ----------
    image : np.ndarray [shape=(height, width)]
        The page, deskewed to within a tenth of a degree (see `fusili_mir.pages.skew`).

    Returns
    -------
    PageLayout
        The systems from top to bottom, each with its five-line staves. Ossia staves, which are short and
        indented, are left out.
    """
    staves = find_staves(image)
    staves = staves[~_is_ossia(staves)]
    if len(staves) == 0:
        return PageLayout(np.zeros(0, dtype=SYSTEM_DTYPE), staves)
    factor = max(1, int(staves["space_px"].min() / _WORK_SPACE_PX))
    ink = ink_map(reduce_page(image, factor))
    joined = np.array([_joins(ink, upper, lower, factor) for upper, lower in itertools.pairwise(staves)])
    joined = _complete(joined.astype(bool), staves)
    staves["system"] = np.concatenate(([0], np.cumsum(~joined)))
    systems = np.zeros(staves["system"][-1] + 1, dtype=SYSTEM_DTYPE)
    for system in range(len(systems)):
        members = staves["system"] == system
        staves["staff"][members] = np.arange(members.sum())
        systems[system] = _union(staves[members], system)
    return PageLayout(systems, staves)


def _union(staves: Table, system: int) -> tuple[float, ...]:
    return (
        0,
        system,
        len(staves),
        staves["x0"].min(),
        staves["y0"].min(),
        staves["x1"].max(),
        staves["y1"].max(),
        staves["space_px"].mean(),
    )


def _is_ossia(staves: Table) -> Bool:
    """Mark short staves above or below the inner part of a neighbour [shape=(n_staves,)]."""
    ossia = np.zeros(len(staves), dtype=bool)
    for i, staff in enumerate(staves):
        for other in staves[[j for j in (i - 1, i + 1) if 0 <= j < len(staves)]]:
            margin_px = 3 * other["space_px"]
            short = staff["x1"] - staff["x0"] < _OSSIA_WIDTH * (other["x1"] - other["x0"])
            inside = staff["x0"] > other["x0"] + margin_px and staff["x1"] < other["x1"] + margin_px
            gap_px = max(staff["y0"], other["y0"]) - min(staff["y1"], other["y1"])
            ossia[i] |= short and inside and gap_px < 8 * other["space_px"]
    return ossia


def _joins(ink: Float32, upper: Table, lower: Table, factor: int) -> bool:
    """Return whether strokes join one staff to the next: one at the left edge, or bar lines."""
    space_px = float(min(upper["space_px"], lower["space_px"])) / factor
    x0 = float(max(upper["x0"], lower["x0"])) / factor
    x1 = float(min(upper["x1"], lower["x1"])) / factor
    top, bottom = round(float(upper["y1"]) / factor), round(float(lower["y0"]) / factor)
    if x1 - x0 < _MIN_OVERLAP * min(upper["x1"] - upper["x0"], lower["x1"] - lower["x0"]) / factor:
        return False
    if bottom - top < space_px:
        return False
    left, right = max(0, round(x0 - 2.5 * space_px)), min(ink.shape[1], round(x1 + space_px))
    stroke = _strokes(ink[top:bottom, left:right], space_px) / max(_line_ink(ink, upper, factor), 1e-3)
    stroke[stroke < _ABOVE_NOISE * np.percentile(stroke, 80)] = 0
    inside = round(x0 - left + 0.6 * space_px)
    at_edge = float(stroke[:inside].max(initial=0))
    bar_lines = ndimage.binary_dilation(stroke[inside:] > _MIN_BAR_LINE, iterations=max(1, round(space_px)))
    n_bar_lines = ndimage.label(bar_lines)[1]
    return bool(at_edge > _MIN_EDGE or n_bar_lines >= 2 or (at_edge > _MIN_EDGE / 2 and n_bar_lines == 1))


def _strokes(gap: Float32, space_px: float) -> Float32:
    """Return the darkness of the faintest part of a stroke down each column of a gap [shape=(n_columns,)].

    The gap is cut into layers of about a staff space; a stroke is darker than both its sides in every layer and
    stays in nearly the same column.
    """
    layers = np.array_split(gap, max(2, round(len(gap) / space_px)), axis=0)
    dark = np.stack([layer.mean(axis=0) for layer in layers])  # (n_layers, n_columns)
    # The border of a skewed page is dark on one side only.
    side = max(1, round(0.8 * space_px))
    padded = np.pad(ndimage.minimum_filter1d(dark, side, axis=1), ((0, 0), (side, side)), mode="edge")
    dark -= np.maximum(np.maximum(padded[:, : -2 * side], padded[:, 2 * side :]), 0)
    lean = 1 + 2 * max(1, round(0.15 * space_px))
    return np.asarray(ndimage.maximum_filter1d(dark, lean, axis=1).min(axis=0))


def _line_ink(ink: Float32, staff: Table, factor: int) -> float:
    """Return the darkness of the lines of a staff in their darkest rows."""
    left, right = round(float(staff["x0"]) / factor), round(float(staff["x1"]) / factor)
    rows = np.linspace(staff["y0"], staff["y1"], 5) / factor
    found = [
        np.median(ink[max(0, int(row) - 1) : int(row) + 2, left:right], axis=1).max(initial=0.0)
        for row in rows
    ]
    return float(np.median(found))


def _complete(joined: Bool, staves: Table) -> Bool:
    """Join neighbouring systems that together resemble the others on the page.

    Parameters
    ----------
    joined : np.ndarray [shape=(n_staves - 1,)]
        Whether each staff is joined to the next.
    staves : np.ndarray [shape=(n_staves,), dtype=STAFF_DTYPE]
        The staves from top to bottom.

    Returns
    -------
    np.ndarray [shape=(n_staves - 1,)]
        `joined`, and also true inside a group of neighbours with the usual number of staves, no further apart
        than the staves of a system.
    """
    firsts = np.concatenate(([0], np.flatnonzero(~joined) + 1, [len(staves)]))
    sizes = np.diff(firsts)
    usual = int(np.bincount(sizes, weights=sizes).argmax())
    if usual == 1 or (sizes == usual).sum() < 2:
        return joined
    gaps = staves["y0"][1:] - staves["y1"][:-1]
    near = gaps <= 1.1 * gaps[joined].max()
    joined = joined.copy()
    for first in firsts[:-1]:
        inside = slice(first, first + usual - 1)  # the gaps of a system of the usual size
        starts_anew = first == 0 or not joined[first - 1]
        if starts_anew and first + usual in firsts and near[inside].all():
            joined[inside] = True
    return joined
