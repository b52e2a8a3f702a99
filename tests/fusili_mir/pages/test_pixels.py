from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image, ImageCms

from fusili_mir.errors import InputError
from fusili_mir.pages.pixels import grey_pixels, image_of_array, on_paper

RAMP = np.tile(np.linspace(250, 5, 60).astype(np.uint8), (40, 1))


def grey(array: object) -> np.ndarray:
    return grey_pixels(image_of_array(array))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("array", "tolerance"),
    [
        (RAMP, 0),
        (RAMP[:, :, None], 0),
        (np.stack([RAMP] * 3, axis=2), 0),
        (np.stack([RAMP] * 3), 0),  # channels first
        (RAMP.astype(np.int64), 0),
        (RAMP.astype(np.uint16) * 257, 0),
        (RAMP.astype(np.float32) / 255, 0),
        (RAMP.astype(np.float64), 0),
        (RAMP.astype(np.float64) * 257, 0),
        (np.stack([RAMP / 255.0] * 3).astype(np.float16), 1),
        (np.dstack([np.zeros((40, 60, 3), np.uint8), 255 - RAMP]), 1),  # black ink, the paper transparent
        (np.dstack([RAMP, np.full_like(RAMP, 255)]), 0),
    ],
)
def test_every_kind_of_array_becomes_the_same_grey(array: np.ndarray, tolerance: int) -> None:
    found = grey(array)
    assert found.dtype == np.uint8
    assert np.abs(found.astype(int) - RAMP).max() <= tolerance


@given(st.integers(0, 255))
def test_sixteen_bits_are_scaled_and_not_clipped(value: int) -> None:
    page = np.full((4, 4), 65535, np.uint16)
    page[0, 0] = value * 257
    assert np.asarray(image_of_array(page))[0, 0] == value


def test_true_is_white() -> None:
    page = np.ones((20, 20), bool)
    page[3] = False
    assert np.array_equal(grey(page), np.where(page, 255, 0))
    assert np.array_equal(grey(~page), np.where(page, 255, 0))  # true as ink: a negative


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.zeros(5), r"an array of shape \(5,\), expected \(height, width\)"),
        (np.zeros((12, 50, 50)), "give several pages as a list"),
        (np.zeros((2, 5, 5, 3)), "give several pages as a list"),
        (np.zeros((0, 5)), "an array of shape"),
        (np.full((5, 5), np.nan), "pixels from nan to nan, expected 0"),
        (np.array([[-1.0, 1.0]]), "pixels from -1 to 1, expected 0"),
        (np.array([[0, 70_000]]), "pixels from 0 to 70000, expected 0"),
        (np.array([["a"]]), "pixels of type <U1"),
        (np.zeros((5, 5), complex), "pixels of type complex128"),
        ([[1.0], [1.0, 2.0]], "an image that is not an array"),
    ],
)
def test_an_array_that_is_not_an_image_is_one_line(array: object, message: str) -> None:
    with pytest.raises(InputError, match=message) as error:
        image_of_array(array)  # type: ignore[arg-type]
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("mode", ["L", "RGB", "RGBA", "P", "LA", "CMYK", "YCbCr", "HSV", "PA", "RGBa", "La"])
def test_every_mode_of_pillow_becomes_the_same_grey(mode: str) -> None:
    image = Image.fromarray(RAMP)
    for step in {"P": ("P",), "PA": ("P", "PA"), "RGBa": ("RGBA", "RGBa"), "La": ("LA", "La")}.get(
        mode, ("RGB", mode)
    ):
        image = image.convert(step)
    assert np.abs(grey_pixels(image).astype(int) - RAMP).max() <= 4


@pytest.mark.parametrize(
    "array", [RAMP.astype(np.int32) * 257, RAMP.astype(np.float32) / 255, RAMP.astype(np.uint16) * 257]
)
def test_wide_modes_of_pillow_are_scaled(array: np.ndarray) -> None:
    image = Image.fromarray(array)
    assert image.mode in ("I", "F", "I;16")
    assert np.array_equal(grey_pixels(image), RAMP)


def test_of_the_colours_of_lab_the_lightness_counts() -> None:
    profiles = ImageCms.createProfile("sRGB"), ImageCms.createProfile("LAB")
    image = ImageCms.profileToProfile(Image.fromarray(RAMP).convert("RGB"), *profiles, outputMode="LAB")
    assert image is not None
    found = grey_pixels(image)
    assert (np.diff(found[0].astype(int)) <= 0).all()
    assert found[0, 0] > 240
    assert found[0, -1] < 15


def test_an_image_keeps_its_colours_on_paper() -> None:
    red = Image.new("RGBA", (4, 4), (255, 0, 0, 128))
    assert on_paper(red).convert("RGB").getpixel((0, 0)) == (255, 127, 127)
    wide = Image.fromarray(RAMP.astype(np.float32) / 255)
    assert np.array_equal(np.asarray(on_paper(wide)), RAMP)
