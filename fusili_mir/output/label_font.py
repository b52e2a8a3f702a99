"""The font of the words and numbers that overlays and other pictures carry."""

from __future__ import annotations

import functools

from PIL import ImageFont

from fusili_mir.errors import MissingExtraError

__all__ = ["label_font"]


@functools.lru_cache(maxsize=64)
def label_font(size_px: int) -> ImageFont.FreeTypeFont:
    """Return Pillow's own font, which sets text in the same way on every machine.

    Pillow's other way of setting text is there only if the system has the library FriBiDi.
    """
    font = ImageFont.load_default(size=size_px)
    if not isinstance(font, ImageFont.FreeTypeFont):
        raise MissingExtraError("this Pillow has no FreeType; install Pillow from PyPI")
    return font.font_variant(layout_engine=ImageFont.Layout.BASIC)
