"""Pages as the user knows them: in their own colours and pixels, neither grey nor deskewed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from PIL import Image

from fusili_mir.pages.page_sources import DeskewedPage, EngravedPage, PageSource
from fusili_mir.pages.pages import Pages
from fusili_mir.pages.pixels import on_paper
from fusili_mir.pages.raster import page_size_px

__all__ = ["PageOrigin", "original_image", "original_size_px", "page_origin", "rgb_image"]


@dataclass(frozen=True)
class PageOrigin:
    """Where a page comes from.

    Attributes
    ----------
    filename : Path or None
        File of the image or PDF; None for an engraved page and for an image that was given in memory.
    index : int
        Number of the page within its file, from 0.
    dpi : float or None
        Pixels per inch, if known.
    """

    filename: Path | None
    index: int
    dpi: float | None


def original_image(pages: Pages, page: int) -> Image.Image:
    """Return a page as it is in its file, rotated as its EXIF data say: the image that all results refer to.

    A page of a PDF is drawn in colour, an engraved page is grey.
    """
    source = _source(pages, page)
    original = getattr(source, "original", None)
    image: Image.Image = Image.fromarray(source.read()) if original is None else original()
    return image


def original_size_px(pages: Pages, page: int) -> tuple[int, int]:
    """Return the width and height of a page, without drawing or decoding it where they are known."""
    source = _source(pages, page)
    if pages.skews:
        return pages.skews[page].width_px, pages.skews[page].height_px
    if isinstance(source, EngravedPage):
        return page_size_px(source.svg)
    height_px, width_px = pages.images[page].shape
    return width_px, height_px


def page_origin(pages: Pages, page: int) -> PageOrigin:
    """Return where a page comes from."""
    source = _source(pages, page)
    filename, dpi = getattr(source, "filename", None), getattr(source, "dpi", None)
    if dpi is None and filename is not None:
        dpi = _stated_dpi(Path(filename))
    return PageOrigin(
        None if filename is None else Path(filename),
        int(getattr(source, "index", page)),
        None if dpi is None else float(dpi),
    )


def rgb_image(image: Image.Image) -> Image.Image:
    """Convert any kind of image to 8-bit colours, with transparent parts as white paper."""
    return on_paper(image).convert("RGB")


def _source(pages: Pages, page: int) -> PageSource:
    source = pages.images.source(page)
    return source.source if isinstance(source, DeskewedPage) else source


def _stated_dpi(filename: Path) -> float | None:
    """Return the resolution that an image file states; many state none."""
    try:
        with Image.open(filename) as image:
            stated = image.info.get("dpi")
            dpi = float(stated[0]) if stated else 0.0
    except (OSError, ValueError, TypeError, ZeroDivisionError):
        return None
    return round(dpi, 2) if 20 <= dpi <= 4800 else None
