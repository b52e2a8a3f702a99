"""Overlays for people to look at: when each place on a page sounds."""

from __future__ import annotations

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from fusili_mir.alignment.results import Alignment

__all__ = ["draw_times"]

_LINE = (0, 114, 178)
_HEADS = ((213, 94, 0), (0, 158, 115))  # for even and odd seconds (Okabe and Ito)


def draw_times(alignment: Alignment, page: int) -> Image.Image:
    """Draw the seconds of a recording over a page of its score.

    Parameters
    ----------
    alignment : Alignment
    page : int

    Returns
    -------
    PIL.Image.Image
        The page, faded, with a line through the system at the place that is reached at each full second. If
        the notes are known, their heads have one of two colours, by the second in which they begin.
    """
    pages = alignment.pages
    faded = (127 + pages.images[page].astype(np.uint16) // 2).astype(np.uint8)
    image = Image.fromarray(faded).convert("RGB")
    paint = ImageDraw.Draw(image, "RGBA")
    for note in alignment.notes:
        if note["page"] == page and np.isfinite(note["onset_sec"]):
            colour = _HEADS[int(note["onset_sec"]) % 2]
            corners = tuple(float(note[name]) for name in ("x0", "y0", "x1", "y1"))
            paint.rectangle(corners, fill=(*colour, 150), outline=colour)
    _draw_seconds(paint, alignment, page)
    return image


def _draw_seconds(paint: ImageDraw.ImageDraw, alignment: Alignment, page: int) -> None:
    grid = alignment.grid
    seconds = np.arange(max(0.0, np.ceil(grid.start_sec)), grid.end_sec)
    frame = np.minimum(((seconds - grid.start_sec) / grid.frame_sec).astype(np.int64), len(grid) - 1)
    heard = ~alignment.path.is_filler[frame]
    for system in alignment.pages.systems[alignment.pages.systems["page"] == page]:
        space_px = float(system["space_px"])
        top_px, bottom_px = float(system["y0"]) - 2 * space_px, float(system["y1"]) + space_px
        font = ImageFont.load_default(size=max(8, round(1.5 * space_px)))
        free_px = -np.inf  # there is room for a label from here on
        here = heard & (alignment.frames["system"][frame] == system["system"])
        for second, x in zip(seconds[here], alignment.frames["x"][frame[here]].tolist(), strict=True):
            paint.line((x, top_px, x, bottom_px), fill=(*_LINE, 150), width=2)
            half_px = font.getlength(f"{second:.0f}") / 2
            if x - half_px >= free_px:
                paint.text((x, top_px), f"{second:.0f}", fill=_LINE, font=font, anchor="mb")
                free_px = x + half_px + space_px / 2
