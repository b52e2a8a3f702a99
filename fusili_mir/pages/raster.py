"""Turning an engraved page (SVG in pixels) into a grey image.

resvg is always available; skia-python is several times faster and is used if it can be imported (it needs the
system's libEGL and libGL). Both draw the same page at the same place, up to anti-aliasing. Text is drawn as
outlines, so neither depends on the fonts of the machine.
"""

from __future__ import annotations

import functools
import io
import re
from types import ModuleType
from typing import Literal, TypeAlias

import numpy as np
import resvg_py
from lxml import etree
from PIL import Image

from fusili_mir.arrays import GreyImage
from fusili_mir.errors import InputError, MissingExtraError
from fusili_mir.pages.page_size import check_page_size
from fusili_mir.pages.text_outlines import outline_text

__all__ = ["Rasteriser", "page_size_px", "rasterise"]

Rasteriser: TypeAlias = Literal["auto", "resvg", "skia"]

_SIZE = re.compile(r'<svg[^>]*?\bviewBox="0 0 (\d+) (\d+)"')


def rasterise(svg: str, rasteriser: Rasteriser = "auto") -> GreyImage:
    """Draw one page of an engraving.

    Parameters
    ----------
    svg : str
        The page, as an SVG whose ``viewBox`` is its size in pixels.
    rasteriser : "auto", "resvg" or "skia"
        Library that draws it; "auto" is skia if it is installed.

    Returns
    -------
    np.ndarray [shape=(height, width)], uint8
        0 is ink, 255 is paper.
    """
    width_px, height_px = page_size_px(svg)
    check_page_size("an engraved page", width_px, height_px, "choose a lower resolution or other breaks")
    page = etree.fromstring(svg.encode(), etree.XMLParser(huge_tree=True))
    outline_text(page)
    if rasteriser == "resvg" or (rasteriser == "auto" and _skia_raster() is None):
        return _draw_with_resvg(page)
    skia_raster = _skia_raster()
    if skia_raster is None:
        raise MissingExtraError(
            "skia-python cannot be imported; install fusili-mir[train] and the system's libEGL and libGL, "
            "or choose the resvg rasteriser"
        )
    image: GreyImage = skia_raster.draw(page, width_px, height_px)
    return image


def page_size_px(svg: str) -> tuple[int, int]:
    """Return (width, height) of a page, in pixels.

    >>> page_size_px('<svg viewBox="0 0 1400 1980"></svg>')
    (1400, 1980)
    """
    size = _SIZE.search(svg)
    if size is None:
        raise InputError("the SVG has no viewBox in pixels; expected a page of an Engraving")
    return int(size[1]), int(size[2])


def _draw_with_resvg(page: etree._Element) -> GreyImage:
    svg = etree.tostring(page, encoding="unicode")
    png = resvg_py.svg_to_bytes(svg_string=svg, background="white", skip_system_fonts=True)
    with Image.open(io.BytesIO(bytes(png))) as image:
        return np.asarray(image.convert("L"))


@functools.cache
def _skia_raster() -> ModuleType | None:
    """Return our module around skia, or None if skia or a system library that it needs is missing."""
    try:
        from fusili_mir.pages import skia_raster
    except ImportError as error:
        if isinstance(error.__cause__, KeyboardInterrupt):  # the user's Ctrl-C, as modules in C++ report it
            raise KeyboardInterrupt from error
        return None
    return skia_raster
