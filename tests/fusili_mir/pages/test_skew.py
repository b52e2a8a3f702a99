"""Skew: the angle found, the deskewed page, and the maps between original and deskewed pages."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from fusili_mir.pages.skew import MAX_SKEW_DEG, Skew, deskew_page, estimate_skew, paper_grey

ANGLES = st.floats(-MAX_SKEW_DEG, MAX_SKEW_DEG)
PLACES = st.floats(-1e4, 1e4)


def ruled_page(height_px: int = 900, width_px: int = 700) -> np.ndarray:
    page = np.full((height_px, width_px), 255, dtype=np.uint8)
    for top in range(120, height_px - 200, 130):
        for line in range(5):
            page[top + 8 * line, 60 : width_px - 60] = 0
    return page


def turned(page: np.ndarray, degrees: float) -> np.ndarray:
    image = Image.fromarray(page).rotate(degrees, Image.Resampling.BICUBIC, fillcolor=255)
    return np.asarray(image)


@pytest.mark.parametrize("degrees", [-4.6, -1.37, -0.1, 0.0, 0.04, 2.5, 5.0])
def test_the_angle_of_a_turned_page_is_found_to_a_fiftieth_of_a_degree(degrees: float) -> None:
    assert estimate_skew(turned(ruled_page(), degrees)) == pytest.approx(degrees, abs=0.02)


def test_the_angle_is_found_under_grain_and_uneven_light() -> None:
    page = turned(ruled_page(), 1.7).astype(np.float64)
    page *= np.linspace(0.5, 1.0, page.shape[1])
    page += np.random.default_rng(0).normal(0, 15, page.shape)
    assert estimate_skew(np.clip(page, 0, 255).astype(np.uint8)) == pytest.approx(1.7, abs=0.05)


@pytest.mark.parametrize(
    "page",
    [
        np.full((400, 300), 255, dtype=np.uint8),
        np.zeros((400, 300), dtype=np.uint8),
        np.random.default_rng(0).integers(180, 256, (600, 400), dtype=np.uint8),
        np.full((1, 1), 255, dtype=np.uint8),
        np.full((3, 800), 255, dtype=np.uint8),
    ],
    ids=["white", "black", "grain", "one pixel", "three rows"],
)
def test_a_page_without_lines_has_no_skew(page: np.ndarray) -> None:
    assert estimate_skew(page) == 0.0


@given(ANGLES, PLACES, PLACES)
def test_the_maps_are_inverse_to_each_other(degrees: float, x: float, y: float) -> None:
    skew = Skew(degrees, 700, 900)
    assert np.allclose(skew.to_original(*skew.to_deskewed(x, y)), (x, y), atol=1e-7)
    assert np.allclose(skew.to_deskewed(*skew.to_original(x, y)), (x, y), atol=1e-7)


@given(ANGLES)
def test_the_centre_of_the_page_stays_where_it_is(degrees: float) -> None:
    assert np.allclose(Skew(degrees, 701, 900).to_deskewed(350.5, 450), (350.5, 450))


def test_a_page_turned_counter_clockwise_has_its_right_end_higher() -> None:
    x, y = Skew(3.0, 1000, 1000).to_original([100, 900], [500, 500])
    assert y[1] < y[0]
    assert np.hypot(x[1] - x[0], y[1] - y[0]) == pytest.approx(800)


@pytest.mark.parametrize("degrees", [-4.0, 0.7, 3.1])
def test_a_dot_lands_where_the_map_says(degrees: float) -> None:
    page = np.full((400, 600), 255, dtype=np.uint8)
    page[100:103, 500:503] = 0  # centre (501.5, 101.5)
    dark = 255.0 - deskew_page(page, degrees)
    rows, columns = np.indices(dark.shape) + 0.5
    centre = (columns * dark).sum() / dark.sum(), (rows * dark).sum() / dark.sum()
    assert np.allclose(centre, Skew(degrees, 600, 400).to_deskewed(501.5, 101.5), atol=0.05)


def test_turning_and_deskewing_gives_the_page_back() -> None:
    page = ruled_page()
    again = deskew_page(turned(page, 2.0), 2.0)
    inner = np.s_[200:700, 150:550]
    assert np.corrcoef(page[inner].ravel(), again[inner].ravel())[0, 1] > 0.9


def test_corners_are_filled_with_paper() -> None:
    page = np.full((300, 300), 200, dtype=np.uint8)
    assert paper_grey(page) == 200
    assert (deskew_page(page, 4.0) == 200).all()


def test_a_page_without_skew_is_left_untouched() -> None:
    page = ruled_page()
    assert deskew_page(page, 0.0) is page
