"""A legend below a picture of a page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from PIL import Image, ImageDraw

from fusili_mir.output.label_font import label_font

__all__ = ["LegendEntry", "add_legend"]


@dataclass(frozen=True)
class LegendEntry:
    """What one or several colours mean."""

    colours: tuple[tuple[int, int, int], ...]
    text: str


def add_legend(image: Image.Image, title: str, entries: Sequence[LegendEntry], font_px: int) -> Image.Image:
    """Add a strip with a title and a legend below a picture, whose pixels keep their places.

    Parameters
    ----------
    image : PIL.Image.Image
    title : str
    entries : sequence of LegendEntry
    font_px : int
        Size of the font; smaller if a line would be wider than the picture.

    Returns
    -------
    PIL.Image.Image
        A picture of the same width.
    """
    margin_px = font_px
    room_px = max(image.width - 2 * margin_px, 1)
    font_px = _fitting(font_px, room_px, [title, *(entry.text for entry in entries)])
    font = label_font(font_px)
    line_px = round(1.6 * font_px)
    swatch_px = round(0.9 * font_px)
    widths = [
        len(entry.colours) * (swatch_px + font_px / 4) + font.getlength(entry.text) + 1.5 * font_px
        for entry in entries
    ]
    rows = _rows(widths, room_px)
    height_px = round((1 + max(rows, default=-1) + 1) * line_px + line_px)
    strip = Image.new("RGB", (image.width, height_px), "white")
    paint = ImageDraw.Draw(strip)
    paint.line((0, 0, image.width, 0), fill=(160, 160, 160))
    paint.text((margin_px, line_px), title, fill="black", font=font, anchor="lm")
    x, previous = float(margin_px), -1
    for entry, width, row in zip(entries, widths, rows, strict=True):
        x, previous = (x if row == previous else float(margin_px)), row
        y, at = (row + 2) * line_px, x
        for colour in entry.colours:
            paint.rectangle((at, y - swatch_px / 2, at + swatch_px, y + swatch_px / 2), fill=colour)
            at += swatch_px + font_px / 4
        paint.text((at + font_px / 4, y), entry.text, fill="black", font=font, anchor="lm")
        x += width
    whole = Image.new("RGB", (image.width, image.height + height_px), "white")
    whole.paste(image, (0, 0))
    whole.paste(strip, (0, image.height))
    return whole


def _fitting(font_px: int, room_px: float, texts: Sequence[str]) -> int:
    """Return the largest size, up to `font_px` and at least 8, at which every text fits, with its colours."""
    longest = max(label_font(font_px).getlength(text) for text in texts) + 4 * font_px
    return max(8, min(font_px, int(font_px * room_px / longest)))


def _rows(widths: Sequence[float], room_px: float) -> list[int]:
    """Return the row of each entry, from left to right and from top to bottom.

    >>> _rows([60, 30, 50], room_px=100)
    [0, 0, 1]
    """
    rows, row, used = [], 0, 0.0
    for width in widths:
        if used and used + width > room_px:
            row, used = row + 1, 0.0
        rows.append(row)
        used += width
    return rows
