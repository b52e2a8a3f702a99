"""What divides the music of a page: bar lines with their repeat signs, and the brackets of endings."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fusili_mir.arrays import GreyImage, Table
from fusili_mir.pages.bar_lines import find_bar_lines
from fusili_mir.pages.endings import find_endings
from fusili_mir.pages.ink import evenly_lit, reduce_page
from fusili_mir.pages.sign_network import SPACE_PX
from fusili_mir.pages.systems import PageLayout

__all__ = ["PageSigns", "find_signs"]

_LENGTHS = ("x0", "y0", "x1", "y1", "space_px")


@dataclass(frozen=True)
class PageSigns:
    """The signs of one page, by system, from left to right."""

    bar_lines: Table  # of BAR_LINE_DTYPE
    endings: Table  # of ENDING_DTYPE


def find_signs(image: GreyImage, layout: PageLayout) -> PageSigns:
    """Find the bar lines and endings of a deskewed page.

    Parameters
    ----------
    image : np.ndarray [shape=(height, width)]
        The page.
    layout : PageLayout
        Its systems and staves.

    Returns
    -------
    PageSigns
    """
    spaces = layout.systems["space_px"]
    factor = max(1, int(spaces.min() / SPACE_PX)) if len(spaces) else 1
    ink = evenly_lit(reduce_page(image, factor))
    systems, staves = _scaled(layout.systems, 1 / factor), _scaled(layout.staves, 1 / factor)
    bar_lines = find_bar_lines(ink, systems, staves)
    endings = find_endings(ink, systems, staves, bar_lines)
    bar_lines["x"] *= factor
    return PageSigns(bar_lines, _scaled(endings, factor))


def _scaled(boxes: Table, factor: float) -> Table:
    scaled = boxes.copy()
    for name in set(_LENGTHS) & set(boxes.dtype.names or ()):
        scaled[name] = boxes[name] * np.float32(factor)
    return scaled
