"""Pages of a score as pictures that a browser shows.

Engraved pages are vector graphics and stay sharp at any size; their text is drawn as outlines, so that it looks
the same in all browsers. Image files that a browser can show, and that are not large, stay as they are; all
others become PNG if they are black on white, otherwise JPEG.
"""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
from lxml import etree
from PIL import Image

from fusili_mir.pages.original_pages import original_image, rgb_image
from fusili_mir.pages.page_sources import DeskewedPage, EngravedPage, ImagePage
from fusili_mir.pages.pages import Pages
from fusili_mir.pages.text_outlines import outline_text
from fusili_mir.viewer.embedded import Embedded

__all__ = ["PICTURE_TYPES", "page_picture"]

_AS_THEY_ARE = {".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".webp": "image/webp"}
PICTURE_TYPES = frozenset({*_AS_THEY_ARE.values(), "image/svg+xml"})
"""Media types of the pictures of a page."""

_MOST_BYTES = 600_000  # of a file that stays as it is
_MOST_PIXELS = 5_000_000  # of a picture: staff lines of a page of A4 are still two or three pixels wide
_MOST_GREY = 0.08  # share of pixels between black and white up to which a page is black on white
_GREYS = 16
_EXIF_ORIENTATION = 0x0112


def page_picture(pages: Pages, page: int) -> Embedded:
    """Return the picture of a page as the user knows it; places refer to its original size in pixels."""
    source = pages.images.source(page)
    if isinstance(source, DeskewedPage):
        source = source.source
    if isinstance(source, EngravedPage):
        return Embedded(_with_outlines(source.svg), "image/svg+xml", is_packed=True)
    if isinstance(source, ImagePage):
        unchanged = _unchanged(source.filename)
        if unchanged is not None:
            return unchanged
    return _drawn(original_image(pages, page))


def _with_outlines(svg: str) -> bytes:
    page = etree.fromstring(svg.encode(), etree.XMLParser(huge_tree=True))
    outline_text(page)
    return etree.tostring(page, encoding="utf-8")


def _unchanged(filename: Path) -> Embedded | None:
    """Return the content of an image file, unless it is large, turned, or a browser may not know its format."""
    media_type = _AS_THEY_ARE.get(filename.suffix.lower())
    if media_type is None or filename.stat().st_size > _MOST_BYTES:
        return None
    with Image.open(filename) as image:
        is_plain = (
            image.get_format_mimetype() == media_type
            and image.mode in ("1", "L", "P", "RGB")
            and getattr(image, "n_frames", 1) == 1
            and image.width * image.height <= _MOST_PIXELS
            and "transparency" not in image.info
            and image.getexif().get(_EXIF_ORIENTATION, 1) == 1
        )
    return Embedded(filename.read_bytes(), media_type) if is_plain else None


def _drawn(image: Image.Image) -> Embedded:
    image = rgb_image(image)
    shrink = (image.width * image.height / _MOST_PIXELS) ** 0.5
    if shrink > 1:
        size = (max(1, round(image.width / shrink)), max(1, round(image.height / shrink)))
        image = image.resize(size, Image.Resampling.LANCZOS)
    grey = image.convert("L")
    counts = np.asarray(grey.histogram())
    stream = io.BytesIO()
    if counts[48:208].sum() <= _MOST_GREY * counts.sum() and not _is_coloured(image):
        levels = np.asarray(grey, np.uint16) * (_GREYS - 1) // 255
        few = Image.fromarray(levels.astype(np.uint8), "P")
        few.putpalette([value * 255 // (_GREYS - 1) for value in range(_GREYS) for _ in "rgb"])
        few.save(stream, "PNG", optimize=True, bits=4)
        return Embedded(stream.getvalue(), "image/png")
    (image if _is_coloured(image) else grey).save(stream, "JPEG", quality=80, progressive=True, optimize=True)
    return Embedded(stream.getvalue(), "image/jpeg")


def _is_coloured(image: Image.Image) -> bool:
    small = np.asarray(image.resize((64, 64), Image.Resampling.BOX), np.int16)
    return bool((small.max(axis=2) - small.min(axis=2)).max() > 24)
