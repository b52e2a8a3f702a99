"""Overlays for people to look at: what was found on a page."""

from __future__ import annotations

import numpy as np
from PIL import Image, ImageDraw

from fusili_mir.argument_kinds import checked
from fusili_mir.arrays import Table
from fusili_mir.errors import InputError
from fusili_mir.output.label_font import label_font
from fusili_mir.pages.pages import Pages

__all__ = ["draw_overlay"]

_SYSTEM = (0, 114, 178)
_MEASURE = (0, 158, 115)
_REPEAT = (213, 94, 0)
_ARROW_SPACES = 1.5
# Staves take turns; the palette is safe for colour-blind people (Okabe and Ito).
_STAVES = ((213, 94, 0), (204, 121, 167), (86, 180, 233), (230, 159, 0))


@checked
def draw_overlay(pages: Pages, page: int) -> Image.Image:
    """Draw the systems, staves, measures and note heads of a page over its image.

    Parameters
    ----------
    pages : Pages
    page : int

    Returns
    -------
    PIL.Image.Image
        The page, faded, with systems in blue, measures in green with their numbers, repeats and endings in
        orange, and each staff and its note heads in a colour of its own.
    """
    if not 0 <= page < len(pages.images):
        raise InputError(f"{pages.filename}: there is no page {page}; expected 0 to {len(pages.images) - 1}")
    grey = pages.images[page]
    faded = (127 + grey.astype(np.uint16) // 2).astype(np.uint8)
    image = Image.fromarray(faded).convert("RGB")
    paint = ImageDraw.Draw(image, "RGBA")
    space_px = float(np.mean(pages.systems["space_px"])) if len(pages.systems) else 10.0
    label = label_font(max(8, round(1.6 * space_px)))
    line_px = max(1, round(space_px / 6))
    for system in _on_page(pages.systems, page):
        x0, y0, x1, y1 = _corners(system, margin_px=space_px)
        paint.rectangle((x0, y0, x1, y1), fill=(*_SYSTEM, 16), outline=_SYSTEM, width=line_px)
        paint.text((x0 - space_px / 2, y0), str(system["system"] + 1), fill=_SYSTEM, font=label, anchor="rt")
    for staff in _on_page(pages.staves, page):
        x0, y0, x1, y1 = _corners(staff)
        paint.line((x0, y0, x0, y1), fill=_colour(staff), width=3 * line_px)
        paint.line((x1, y0, x1, y1), fill=_colour(staff), width=3 * line_px)
    for measure in _on_page(pages.measures, page):
        x0, y0, x1, y1 = _corners(measure)
        paint.rectangle((x0, y0, x1, y1), outline=_MEASURE, width=line_px)
        begins_repeat = pages.repeats is not None and measure["measure"] in pages.repeats.begins
        beside_px = line_px + (_ARROW_SPACES * space_px if begins_repeat else 0)  # the arrow of the sign
        paint.text(
            (x0 + beside_px, y0 - line_px), str(measure["number"]), fill=_MEASURE, font=label, anchor="lb"
        )
    _draw_repeats(paint, pages, page, space_px)
    for note in _on_page(pages.notes, page):
        paint.rectangle(_corners(note), fill=(*_colour(note), 150), outline=_colour(note))
    return image


def _draw_repeats(paint: ImageDraw.ImageDraw, pages: Pages, page: int, space_px: float) -> None:
    """Draw the repeat signs as thick lines with an arrow, and the endings as brackets with their numbers."""
    if pages.repeats is None:
        return
    label = label_font(max(8, round(1.6 * space_px)))
    line_px = max(2, round(space_px / 3))
    for measure in _on_page(pages.measures, page):
        index = int(measure["measure"])
        x0, y0, x1, y1 = _corners(measure)
        for x, way, marked in ((x0, 1, pages.repeats.begins), (x1, -1, pages.repeats.ends)):
            if index in marked:
                paint.line((x, y0, x, y1), fill=_REPEAT, width=line_px)
                tip, above = x + way * _ARROW_SPACES * space_px, y0 - 0.75 * space_px
                paint.polygon(((x, y0 - 1.5 * space_px), (x, y0), (tip, above)), fill=_REPEAT)
        for ending in pages.repeats.endings:
            if ending.first <= index < ending.stop:
                top = y0 - 2.5 * space_px
                paint.line((x0, top, x1, top), fill=_REPEAT, width=line_px)
                if index == ending.first:
                    numbers = ", ".join(map(str, ending.numbers))
                    paint.line((x0, top, x0, y0), fill=_REPEAT, width=line_px)
                    paint.text((x0 + line_px, top), f"{numbers}.", fill=_REPEAT, font=label, anchor="lb")


def _on_page(boxes: Table, page: int) -> Table:
    rows: Table = boxes[boxes["page"] == page]
    return rows


def _corners(row: np.void, margin_px: float = 0.0) -> tuple[float, float, float, float]:
    x0, y0, x1, y1 = (float(row[name]) for name in ("x0", "y0", "x1", "y1"))
    return x0 - margin_px, y0 - margin_px, x1 + margin_px, y1 + margin_px


def _colour(row: np.void) -> tuple[int, int, int]:
    return _STAVES[int(row["staff"]) % len(_STAVES)]
