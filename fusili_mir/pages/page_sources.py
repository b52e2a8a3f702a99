"""Where page images come from: engraved pages, image files, pages of a PDF, images in memory.

A source makes its page anew on every request, so a PDF of two hundred pages is never in memory as two hundred
images. Sizes are checked before anything is decoded.
"""

from __future__ import annotations

import itertools
import os
import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageOps, UnidentifiedImageError

from fusili_mir.arrays import GreyImage
from fusili_mir.boundary import check_regular, printable, reading
from fusili_mir.brought_files import is_sound, refuse_project
from fusili_mir.errors import InputError, option
from fusili_mir.library_noise import libraries_silenced
from fusili_mir.limits import check_limit
from fusili_mir.pages.heif import HEIF_SUFFIXES, is_heif, prepare_heif
from fusili_mir.pages.page_ranges import parse_page_range, split_page_range
from fusili_mir.pages.page_size import check_page_size
from fusili_mir.pages.pdf_process import count_pdf_pages, draw_pdf_page
from fusili_mir.pages.pixels import dark_on_light, grey_pixels, image_of_array
from fusili_mir.pages.raster import Rasteriser, rasterise
from fusili_mir.pages.skew import deskew_page
from fusili_mir.scores.score_formats import SCORE_FORMATS
from fusili_mir.short_repr import short_repr

__all__ = [
    "IMAGE_SUFFIXES",
    "DeskewedPage",
    "EngravedPage",
    "GivenPage",
    "ImageLike",
    "ImagePage",
    "PageSource",
    "PdfPage",
    "find_page_sources",
    "is_image",
]

ImageLike: TypeAlias = str | os.PathLike[str] | Image.Image | npt.NDArray[Any]
"""A page, or several in one file: a file, a folder, a PIL image, or an array of pixels."""

IMAGE_SUFFIXES = {
    *(".png", ".jpg", ".jpeg", ".jpe", ".jfif", ".jp2", ".tif", ".tiff", ".bmp", ".gif", ".webp", ".avif"),
    *(".pbm", ".pgm", ".ppm", ".pnm"),
    *HEIF_SUFFIXES,
}
"""How the names of image files end."""

_NEW_SUBFILE_TYPE, _REDUCED_OR_MASK = 254, 0b101  # a tag of TIFF, and its bits for thumbnails and masks
_WHOLE, _DAMAGED = "expected a whole image", "a damaged image"
_A_SCORE = f"expected a score image, a PDF, or {SCORE_FORMATS}"


class PageSource(Protocol):
    """A source of one page image."""

    def read(self) -> GreyImage:
        """Make the page: uint8 [shape=(height, width)], 0 is ink and 255 is paper."""
        ...


@short_repr
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

    @property
    def name(self) -> str:
        """Name of the file."""
        return str(self.filename)

    def read(self) -> GreyImage:
        """Decode the image, rotated as its EXIF data say, with transparent parts as paper."""
        return grey_pixels(self.original(), self.name)

    def original(self) -> Image.Image:
        """Decode the image in its own colours, rotated as its EXIF data say."""
        with (
            _open_image(self.filename) as image,
            _pillow_silenced(),
            reading(self.filename, _WHOLE, _DAMAGED),
        ):
            image.seek(self.index)
            check_page_size(printable(self.filename), *image.size)
            image.load()
            return ImageOps.exif_transpose(image)


@dataclass(frozen=True, eq=False)
class GivenPage:
    """An image in memory."""

    image: Image.Image = field(repr=False)
    name: str

    def read(self) -> GreyImage:
        """Convert the image, with transparent parts as paper."""
        return grey_pixels(self.image, self.name)

    def original(self) -> Image.Image:
        """Return the image in its own colours."""
        return self.image


@dataclass(frozen=True)
class PdfPage:
    """One page of a PDF, drawn at a given resolution."""

    filename: Path
    index: int
    dpi: float

    @property
    def name(self) -> str:
        """Name of the file."""
        return str(self.filename)

    def read(self) -> GreyImage:
        """Draw the page."""
        return dark_on_light(draw_pdf_page(self.filename, self.index, self.dpi, grey=True))

    def original(self) -> Image.Image:
        """Draw the page in colour."""
        return Image.fromarray(draw_pdf_page(self.filename, self.index, self.dpi, grey=False))


@dataclass(frozen=True)
class DeskewedPage:
    """A page whose skew is removed."""

    source: PageSource
    skew_deg: float

    def read(self) -> GreyImage:
        """Make the page and deskew it."""
        return deskew_page(self.source.read(), self.skew_deg)


def find_page_sources(
    given: ImageLike | Sequence[ImageLike], dpi: float = 200.0, pages: str | None = None
) -> tuple[ImagePage | PdfPage | GivenPage, ...]:
    """List the pages in image files, PDFs, folders of images and images in memory, in reading order.

    Parameters
    ----------
    given : str, Path, PIL.Image.Image, np.ndarray, or a sequence of them
        PNG, JPEG, TIFF (each of its images is a page), PDF, or folders of images. The images of a folder are
        sorted by the numbers in their names; its subfolders are ignored. ``scan.pdf#3-7`` is a part of a file or
        folder. A PIL image, or an array as `fusili_mir.pages.pixels.image_of_array` takes it.
    dpi : float
        Resolution at which PDF pages are drawn.
    pages : str, optional
        Range of all these pages to use, such as "3-7" or "1,3-5", counted from 1; by default all.

    Returns
    -------
    tuple of page sources
        The pages, at least one.
    """
    if not isinstance(dpi, int | float) or not 20 <= dpi <= 1200:
        raise InputError(f"dpi is {dpi}, expected 20 to 1200")
    chosen = None if pages is None else parse_page_range(pages)
    several = list(given) if isinstance(given, list | tuple) else [given]
    found = tuple(page for number, each in enumerate(several) for page in _open(each, number, dpi))
    if not found:
        raise InputError("no page was given; expected image files, a PDF or a folder of images")
    first = several[0]
    name = str(first) if isinstance(first, str | os.PathLike) and len(several) == 1 else "the score"
    if chosen is not None:
        found = chosen.select(found, name)
    check_limit("pages", len(found), printable(name), f"choose some of them ({option('--pages', 'pages')})")
    return found


def is_image(given: Any) -> bool:
    """Return whether something is an image in memory: a PIL image or an array of pixels."""
    if isinstance(given, Image.Image):
        return True
    return hasattr(given, "__array__") and not np.isscalar(given) and np.ndim(given) in (2, 3)


def _open(given: Any, number: int, dpi: float) -> Iterator[ImagePage | PdfPage | GivenPage]:
    """List the pages of one thing that was given."""
    if isinstance(given, str | os.PathLike):
        name = os.fspath(given)
        if not name:
            raise InputError("an empty name; expected that of a score image, a PDF or a folder of images")
        path, chosen = split_page_range(name)
        pages = tuple(page for file in _files(path) for page in _pages(file, dpi))
        yield from pages if chosen is None else chosen.select(pages, str(path))
    elif isinstance(given, Image.Image):
        yield from _given_pages(given, number)
    elif is_image(given):
        name = f"image {number + 1}"
        image = image_of_array(given, name)
        check_page_size(name, *image.size)
        yield GivenPage(image, name)
    elif hasattr(given, "__array__") and not np.isscalar(given):
        image_of_array(given, f"image {number + 1}")  # raises an error that says what its shape is
    else:
        raise InputError(
            f"score image {number + 1}: {type(given).__name__}, expected a file, a folder, an image or an array"
        )


def _given_pages(image: Image.Image, number: int) -> Iterator[GivenPage]:
    """List the pages of a PIL image; one that is opened from a TIFF may have several."""
    name = str(getattr(image, "filename", "")) or f"image {number + 1}"
    check_page_size(name, *image.size)
    with _pillow_silenced(), reading(name, _WHOLE, _DAMAGED):
        for index in _images_of(image, name):
            if image.format == "TIFF":
                image.seek(index)
            image.load()
            yield GivenPage(ImageOps.exif_transpose(image), name)


def _files(path: Path) -> list[Path]:
    """Return the file itself, or the images of a folder in reading order."""
    with reading(path, _A_SCORE):  # a name may be too long for the system
        if not path.is_dir():
            return [path]
    folder = path.resolve()
    images = [
        file
        for file in path.iterdir()
        if file.suffix.lower() in IMAGE_SUFFIXES
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
    check_regular(file, _A_SCORE)
    with reading(file, _A_SCORE), file.open("rb") as stream:
        start = stream.read(1024)
    if not start:
        raise InputError(f"{file}: the file is empty; {_A_SCORE}")
    if b"%PDF-" in start:
        yield from (PdfPage(file, index, dpi) for index in range(count_pdf_pages(file)))
    else:
        with _open_image(file) as image, _pillow_silenced():
            with reading(file, _WHOLE, _DAMAGED):
                indices = _images_of(image, str(file))
            yield from (ImagePage(file, index) for index in indices)


def _images_of(image: Image.Image, name: str) -> list[int]:
    """Return which images of a file are pages: all of a TIFF but thumbnails and masks; otherwise the first.

    Photographs of some cameras hold further pictures, and animations are not scores.
    """
    if image.format != "TIFF":
        return [0]
    indices: list[int] = []
    for index in itertools.count():  # not `n_frames`, which looks for all of them, however many there are
        try:
            image.seek(index)
        except EOFError:
            break
        check_limit("pages", index + 1, printable(name), "divide the file")
        kind = getattr(image, "tag_v2", {}).get(_NEW_SUBFILE_TYPE, 0)
        if not int(kind) & _REDUCED_OR_MASK:
            indices.append(index)
    return indices or [0]


@contextmanager
def _pillow_silenced() -> Iterator[None]:
    """Hide what Pillow and libtiff say of large and damaged images: sizes are checked, errors are reported.

    Its own limit, which no variable raises, is lifted meanwhile: every size is checked before pixels are read.
    """
    most_px, Image.MAX_IMAGE_PIXELS = Image.MAX_IMAGE_PIXELS, None
    try:
        with libraries_silenced(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        Image.MAX_IMAGE_PIXELS = most_px


def _open_image(filename: Path) -> Image.Image:
    """Open an image without decoding it."""
    expected = f"expected PDF, PNG, JPEG, TIFF, or {SCORE_FORMATS}"
    with reading(f"{filename}: not a score", expected), _pillow_silenced():
        if is_heif(filename):
            prepare_heif(filename)
        try:
            return Image.open(filename)
        except UnidentifiedImageError as error:
            refuse_project(filename)
            found = "a recording, not a score" if is_sound(filename) else "not a score that can be read"
            raise InputError(f"{printable(filename)}: {found}; {expected}") from error
