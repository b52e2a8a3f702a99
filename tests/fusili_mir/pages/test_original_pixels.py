from __future__ import annotations

import numpy as np
import pytest

from fusili_mir.boxes import MEASURE_DTYPE
from fusili_mir.pages.original_pixels import (
    box_corners_in_original,
    boxes_to_original,
    places_to_deskewed,
    places_to_original,
)
from fusili_mir.pages.skew import Skew

SKEWS = (Skew(0.0, 400, 300), Skew(2.0, 400, 300))


def test_each_place_is_turned_by_the_skew_of_its_page() -> None:
    page, x, y = np.array([0, 1, 2]), 10.0, np.array([20.0, 20.0, 20.0])
    found_x, found_y = places_to_original(SKEWS, page, x, y)
    turned_x, turned_y = SKEWS[1].to_original(10.0, 20.0)
    assert found_x == pytest.approx([10.0, float(turned_x), 10.0])  # the third page has no skew
    assert found_y == pytest.approx([20.0, float(turned_y), 20.0])


def test_places_come_back() -> None:
    rng = np.random.default_rng(0)
    page, x, y = rng.integers(2, size=50), rng.uniform(0, 400, 50), rng.uniform(0, 300, 50)
    there = places_to_original(SKEWS, page, x, y)
    assert np.allclose(places_to_deskewed(SKEWS, page, *there), (x, y), atol=1e-9)


def test_a_box_becomes_the_upright_box_around_its_turned_corners() -> None:
    measures = np.zeros(2, MEASURE_DTYPE)
    measures["page"], measures["number"] = [0, 1], "7"
    measures["x0"], measures["x1"], measures["y0"], measures["y1"] = 100, 300, 140, 160  # around the centre
    turned = boxes_to_original(SKEWS, measures)
    assert turned[0] == measures[0]
    # A page that is turned counter-clockwise by 2 degrees: its lines rise to the right.
    corners = box_corners_in_original(SKEWS, measures)[1]
    assert corners[1, 1] < corners[0, 1]
    half_width = 100 * np.cos(np.deg2rad(2)) + 10 * np.sin(np.deg2rad(2))
    half_height = 10 * np.cos(np.deg2rad(2)) + 100 * np.sin(np.deg2rad(2))
    assert [turned["x0"][1], turned["x1"][1]] == pytest.approx([200 - half_width, 200 + half_width], abs=1e-3)
    assert [turned["y0"][1], turned["y1"][1]] == pytest.approx(
        [150 - half_height, 150 + half_height], abs=1e-3
    )
    assert turned["number"].tolist() == ["7", "7"]


def test_a_table_without_rows_and_a_box_that_is_unknown_stay_as_they_are() -> None:
    assert len(boxes_to_original(SKEWS, np.zeros(0, MEASURE_DTYPE))) == 0
    unknown = np.zeros(1, MEASURE_DTYPE)
    unknown["page"], unknown["x0"], unknown["y0"], unknown["x1"], unknown["y1"] = -1, *[np.nan] * 4
    assert np.isnan(boxes_to_original(SKEWS, unknown)["x0"]).all()
