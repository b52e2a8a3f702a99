"""Pixels of any kind as grey ink on white paper: colour, 1 bit, 16 bits, floats, transparency, arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image

from fusili_mir.arrays import GreyImage
from fusili_mir.errors import InputError

__all__ = ["dark_on_light", "grey_pixels", "image_of_array", "on_paper"]

_DARK = 64  # a page with a darker median is a negative, if some of it is light
_MOST_INK = 0.3  # largest share of a page that ink covers
_BAND_ROWS = 256
_CHANNELS = (1, 2, 3, 4)  # grey, grey with alpha, RGB, RGBA


def grey_pixels(image: Image.Image, name: str = "the image") -> GreyImage:
    """Convert an image to grey ink on white paper; transparent parts are paper.

    Parameters
    ----------
    image : PIL.Image.Image
    name : str
        Name used in messages.

    Returns
    -------
    np.ndarray [shape=(height, width)], uint8
    """
    return dark_on_light(np.asarray(on_paper(image, name).convert("L")))


def on_paper(image: Image.Image, name: str = "the image") -> Image.Image:
    """Return an image with 8 bits per channel and without transparency, in its own colours on white paper."""
    image = _eight_bits(image, name)
    if "A" in image.getbands() or "a" in image.getbands() or "transparency" in image.info:
        layers = image.convert("RGBA")
        image = Image.alpha_composite(Image.new("RGBA", layers.size, "white"), layers)
    return image


def _eight_bits(image: Image.Image, name: str) -> Image.Image:
    """Scale an image of 16 or 32 bits per pixel to 8 bits, which Pillow would clip; return others unchanged."""
    if image.mode.startswith(("I", "F")):
        return Image.fromarray(_scaled(np.asarray(image), name))
    if image.mode == "La":  # premultiplied, which Pillow converts to LA only
        return image.convert("LA")
    return image.getchannel("L") if image.mode == "LAB" else image


def image_of_array(array: npt.ArrayLike, name: str = "the image") -> Image.Image:
    """Convert an array to an image.

    Parameters
    ----------
    array : np.ndarray [shape=(height, width), (height, width, channels) or (channels, height, width)]
        Grey, grey with alpha, RGB or RGBA, whatever the type: bool (true is white), integers up to 255 or 65535,
        floats up to 1, 255 or 65535.
    name : str
        Name used in messages.

    Returns
    -------
    PIL.Image.Image
        The image with 8 bits per channel.

    Examples
    --------
    >>> image = image_of_array(np.array([[0.0, 0.5], [1.0, 1.0]]))
    >>> np.asarray(image).tolist()
    [[0, 128], [255, 255]]
    """
    try:
        pixels: npt.NDArray[Any] = np.asarray(array)
    except (ValueError, TypeError, RuntimeError) as error:
        raise InputError(f"{name}: an image that is not an array ({type(array).__name__})") from error
    shape = pixels.shape
    if pixels.ndim == 3 and shape[2] not in _CHANNELS and shape[0] in _CHANNELS:
        pixels = np.moveaxis(pixels, 0, 2)  # channels first, as in torch
    if pixels.ndim == 2:
        pixels = pixels[:, :, None]
    if pixels.ndim != 3 or pixels.shape[2] not in _CHANNELS or 0 in shape:
        raise InputError(
            f"{name}: an array of shape {shape}, expected (height, width) or (height, width, channels) with up "
            "to 4 channels; give several pages as a list"
        )
    scaled = _scaled(pixels, name)
    return Image.fromarray(np.ascontiguousarray(scaled[:, :, 0] if scaled.shape[2] == 1 else scaled))


def dark_on_light(image: GreyImage) -> GreyImage:
    """Invert white notes on black paper, as on some screens and microfilms."""
    is_negative = np.median(image) < _DARK and 0 < (image > 128).mean() < _MOST_INK
    return np.invert(image) if is_negative else image


def _scaled(pixels: npt.NDArray[Any], name: str) -> npt.NDArray[np.uint8]:
    """Scale values to 0..255; what is white follows from the type and the largest value."""
    if pixels.dtype == np.uint8:
        return pixels
    if pixels.dtype.kind == "b":
        return pixels.astype(np.uint8) * np.uint8(255)
    if pixels.dtype.kind not in "iuf":
        raise InputError(f"{name}: pixels of type {pixels.dtype}, expected integers, floats or bool")
    low, high = (float(value) for value in (pixels.min(initial=0), pixels.max(initial=0)))
    whites = (1.0, 255.0, 65535.0) if pixels.dtype.kind == "f" else (255.0, 65535.0)
    white = next((white for white in whites if high <= white * (1 + 1e-6)), None)
    if not low >= -1e-6 * (white or 1.0) or white is None:  # NaN is not, either
        raise InputError(
            f"{name}: pixels from {low:g} to {high:g}, expected 0 (black) to 255 or 65535 (white), or floats "
            "from 0 to 1"
        )
    scaled = np.empty(pixels.shape, np.uint8)
    for top in range(
        0, len(pixels), _BAND_ROWS
    ):  # in bands: floats of all pixels would take eight times as much
        band = pixels[top : top + _BAND_ROWS] * (255.0 / white)
        scaled[top : top + _BAND_ROWS] = np.clip(np.rint(band), 0, 255)
    return scaled
