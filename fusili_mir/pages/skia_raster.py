"""Drawing an engraved page with skia, which is fast enough for training.

skia's SVG reader does not support CSS, so Verovio's CSS is first turned into attributes.
"""

from __future__ import annotations

import contextlib
import locale
from collections.abc import Iterator

import numpy as np
import skia
from lxml import etree
from PIL import Image

from fusili_mir.arrays import GreyImage
from fusili_mir.errors import InputError

__all__ = ["draw"]

_SVG = "{http://www.w3.org/2000/svg}"


def draw(page: etree._Element, width_px: int, height_px: int) -> GreyImage:
    """Draw an SVG of `width_px` x `height_px` pixels, as `fusili_mir.pages.raster.rasterise` does.

    The page must have no text, and is changed.
    """
    _write_out_css(page)
    with _decimal_points():
        drawing = skia.SVGDOM.MakeFromStream(skia.MemoryStream(etree.tostring(page), copyData=True))
    if drawing is None:
        raise InputError("skia cannot read the SVG; expected a page of an Engraving")
    surface = skia.Surface(width_px, height_px)
    with surface as canvas:
        canvas.clear(skia.ColorWHITE)
        drawing.setContainerSize(skia.Size(width_px, height_px))
        drawing.render(canvas)
    rgba = surface.makeImageSnapshot().toarray(colorType=skia.ColorType.kRGBA_8888_ColorType)
    return np.asarray(Image.fromarray(rgba).convert("L"))


def _write_out_css(page: etree._Element) -> None:
    """Stroke elements that have a stroke width, and remove those that the style sheet hides."""
    for element in list(page.iter(f"{_SVG}*")):
        if element.get("stroke-width") is not None:
            element.set("stroke", "black")
        if "placeholder" in (element.get("class") or "").split():
            parent = element.getparent()
            if parent is not None:
                parent.remove(element)


@contextlib.contextmanager
def _decimal_points() -> Iterator[None]:
    """Let C libraries read 0.5 as a half, even in a program that has chosen a locale with decimal commas."""
    if locale.localeconv()["decimal_point"] == ".":
        yield
        return
    chosen = locale.setlocale(locale.LC_NUMERIC)
    locale.setlocale(locale.LC_NUMERIC, "C")
    try:
        yield
    finally:
        locale.setlocale(locale.LC_NUMERIC, chosen)
