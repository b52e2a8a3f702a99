"""Where page images come from: engraved pages, image files, pages of a PDF.

A source makes its page anew on every request, so a PDF of two hundred pages is never in memory as two hundred
images. Sizes are checked before anything is decoded.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
import pypdfium2
from PIL import Image, ImageOps

from fusili_mir.arrays import GreyImage
from fusili_mir.errors import InputError
from fusili_mir.pages.raster import MAX_PAGE_PX, Rasteriser, rasterise
from fusili_mir.pages.skew import deskew_page

__all__ = [
    "DeskewedPage",
    "EngravedPage",
    "ImagePage",
    "PageSource",
    "PdfPage",
    "find_page_sources",
]

_IMAGE_SUFFIXES = {".png", ".jpg", ".jpeg", ".tif", ".tiff", ".bmp", ".webp", ".pgm", ".ppm"}
_POINTS_PER_INCH = 72
_DARK = 64  # a page with a darker median is a negative, if some of it is light
_MOST_INK = 0.3  # largest share of a page that ink covers
_DAMAGED = (OSError, SyntaxError, EOFError, ValueError, TypeError)  # what Pillow raises for damaged files


class PageSource(Protocol):
    """A source of one page image."""

    def read(self) -> GreyImage:
        """Make the page: uint8 [shape=(height, width)], 0 is ink and 255 is paper."""
        ...


@dataclass(frozen=True)
class EngravedPage:
    """A page that we engraved."""

    svg: str
    rasteriser: Rasteriser = "auto"
    dpi: float | None = None

    def read(self) -> GreyImage:
        """Draw the page."""
        return rasterise(self.svg, self.rasteriser)


@dataclass(frozen=True)
class ImagePage:
    """One image of an image file; only TIFF files have several."""

    filename: Path
    index: int = 0

    def read(self) -> GreyImage:
        """Decode the image, rotated as its EXIF data say, with transparent parts as paper."""
        return _grey(self.original())

    def original(self) -> Image.Image:
        """Decode the image in its own colours, rotated as its EXIF data say."""
        with _open_image(self.filename) as image, _pillow_silenced():
            try:
                image.seek(self.index)
                _check_size(self.filename, *image.size)
                image.load()
                return ImageOps.exif_transpose(image)
            except InputError:
                raise
            except _DAMAGED as error:
                raise InputError(
                    f"{self.filename}: a damaged image ({error}); expected a whole one"
                ) from error


@dataclass(frozen=True)
class PdfPage:
    """One page of a PDF, drawn at a given resolution."""

    filename: Path
    index: int
    dpi: float

    def read(self) -> GreyImage:
        """Draw the page."""
        return _dark_on_light(np.asarray(self._draw(grayscale=True).convert("L")))

    def original(self) -> Image.Image:
        """Draw the page in colour."""
        return self._draw(grayscale=False).convert("RGB")

    def _draw(self, grayscale: bool) -> Image.Image:
        with _open_pdf(self.filename) as document:
            page = document[self.index]
            scale = self.dpi / _POINTS_PER_INCH
            _check_size(self.filename, *(int(side * scale) for side in page.get_size()))
            drawn: Image.Image = page.render(scale=scale, grayscale=grayscale).to_pil()
            return drawn


@dataclass(frozen=True)
class DeskewedPage:
    """A page whose skew is removed."""

    source: PageSource
    skew_deg: float

    def read(self) -> GreyImage:
        """Make the page and deskew it."""
        return deskew_page(self.source.read(), self.skew_deg)


def find_page_sources(
    filenames: str | Path | Sequence[str | Path], dpi: float = 200.0
) -> tuple[ImagePage | PdfPage, ...]:
    """List the pages in image files, PDFs and folders of images, in reading order.

    Parameters
    ----------
    filenames : str, Path or a sequence of them
        PNG, JPEG, TIFF (each of its images is a page), PDF, or folders of images. The images of a folder are
        sorted by the numbers in their names; its subfolders are ignored.
    dpi : float
        Resolution at which PDF pages are drawn.

    Returns
    -------
    tuple of page sources
        The pages, at least one.
    """
    if not 20 <= dpi <= 1200:
        raise InputError(f"dpi is {dpi:g}, expected 20 to 1200")
    given = [filenames] if isinstance(filenames, str | Path) else list(filenames)
    files = [file for filename in given for file in _files(Path(filename))]
    pages = tuple(page for file in files for page in _pages(file, dpi))
    if not pages:
        raise InputError("no page was given; expected image files, a PDF or a folder of images")
    return pages


def _files(path: Path) -> list[Path]:
    """Return the file itself, or the images of a folder in reading order."""
    if not path.is_dir():
        return [path]
    folder = path.resolve()
    images = [
        file
        for file in path.iterdir()
        if file.suffix.lower() in _IMAGE_SUFFIXES
        and not file.name.startswith(".")  # hidden files that other operating systems leave behind
        and file.is_file()
        and file.resolve().parent == folder
    ]
    if not images:
        raise InputError(
            f"{path}: a folder without images; expected PNG, JPEG or TIFF files in it "
            "(links to other folders are not followed)"
        )
    return sorted(images, key=lambda file: _reading_order(file.name))


def _reading_order(name: str) -> list[tuple[int, str]]:
    """Return a sort key that puts page-2 before page-10.

    >>> sorted(["page-10.png", "page-2.png"], key=_reading_order)
    ['page-2.png', 'page-10.png']
    """
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"([0-9]+)", name)]


def _pages(file: Path, dpi: float) -> Iterator[ImagePage | PdfPage]:
    try:
        with file.open("rb") as stream:
            start = stream.read(1024)
    except OSError as error:
        raise InputError(f"{file}: cannot be read ({error.strerror})") from error
    if not start:
        raise InputError(f"{file}: the file is empty; expected a score image, a PDF, MusicXML, MXL or MEI")
    if b"%PDF-" in start:
        with _open_pdf(file) as document:
            yield from (PdfPage(file, index, dpi) for index in range(len(document)))
    else:
        with _open_image(file) as image, _pillow_silenced():
            try:
                n_images = getattr(image, "n_frames", 1)
            except _DAMAGED as error:
                raise InputError(f"{file}: a damaged image ({error}); expected a whole one") from error
            yield from (ImagePage(file, index) for index in range(n_images))


@contextmanager
def _pillow_silenced() -> Iterator[None]:
    """Hide Pillow's warnings about large and damaged images: sizes are checked, errors are reported."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _open_image(filename: Path) -> Image.Image:
    """Open an image without decoding it."""
    try:
        with _pillow_silenced():
            return Image.open(filename)
    except Image.DecompressionBombError as error:
        raise InputError(
            f"{filename}: an image of far more than {MAX_PAGE_PX // 10**6} million pixels; "
            "scan it at 300 dpi or scale it down"
        ) from error
    except _DAMAGED as error:
        raise InputError(
            f"{filename}: not a score that can be read; expected MusicXML, MXL, MEI, PDF, PNG, JPEG or TIFF"
        ) from error


def _open_pdf(filename: Path) -> pypdfium2.PdfDocument:
    try:
        return pypdfium2.PdfDocument(filename)
    except pypdfium2.PdfiumError as error:
        if b"/Encrypt" in filename.read_bytes():
            raise InputError(f"{filename}: the PDF is encrypted; save a copy without a password") from error
        raise InputError(f"{filename}: the PDF is damaged or has no pages") from error


def _check_size(filename: Path, width_px: int, height_px: int) -> None:
    if width_px * height_px > MAX_PAGE_PX:
        raise InputError(
            f"{filename}: a page of {width_px} x {height_px} pixels, expected at most "
            f"{MAX_PAGE_PX // 10**6} million; scan it at 300 dpi, scale it down or lower the dpi"
        )


def _grey(image: Image.Image) -> GreyImage:
    """Convert any kind of image to grey ink on white paper."""
    if image.mode.startswith(("I", "F")):  # 16 or 32 bits per pixel: Pillow would clip, not scale
        values = np.asarray(image, dtype=np.float64)
        white = 65535.0 if values.max(initial=0.0) > 255 else 255.0
        return _dark_on_light(np.clip(values * (255.0 / white), 0, 255).astype(np.uint8))
    if "A" in image.getbands() or "transparency" in image.info:
        layers = image.convert("RGBA")
        paper = Image.new("RGBA", layers.size, "white")
        image = Image.alpha_composite(paper, layers)
    return _dark_on_light(np.asarray(image.convert("L")))


def _dark_on_light(image: GreyImage) -> GreyImage:
    """Invert white notes on black paper, as on some screens and microfilms."""
    is_negative = np.median(image) < _DARK and 0 < (image > 128).mean() < _MOST_INK
    return np.invert(image) if is_negative else image
