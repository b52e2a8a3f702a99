"""Degradation: seeded draws, their effect on a page, and where places move."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fusili_mir.errors import InputError
from fusili_training.rendering.degrade import MAX_ROTATION_DEG, Degradation


def page_with_dot() -> np.ndarray:
    page = np.full((300, 400), 255, dtype=np.uint8)
    page[60:64, 320:324] = 0  # centre (322, 62)
    return page


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def test_the_default_leaves_a_page_as_it_is() -> None:
    page = page_with_dot()
    assert np.array_equal(Degradation().apply(page, rng()), page)


def test_strength_zero_leaves_a_page_as_it_is() -> None:
    page = page_with_dot()
    assert np.array_equal(Degradation.draw(rng(), 0.0).apply(page, rng()), page)


def test_the_same_seed_gives_the_same_page_and_another_seed_another() -> None:
    recipe = Degradation.draw(rng(3))
    assert recipe == Degradation.draw(rng(3))
    assert recipe != Degradation.draw(rng(4))
    page = page_with_dot()
    assert np.array_equal(recipe.apply(page, rng(5)), recipe.apply(page, rng(5)))
    assert not np.array_equal(recipe.apply(page, rng(5)), recipe.apply(page, rng(6)))


@given(st.integers(0, 10_000), st.floats(0, 1))
def test_drawn_recipes_stay_within_their_strength(seed: int, strength: float) -> None:
    recipe = Degradation.draw(rng(seed), strength)
    assert abs(recipe.rotation_deg) <= strength * MAX_ROTATION_DEG
    assert recipe.blur_px <= 1.2 * strength
    assert recipe.noise <= 0.08 * strength
    assert recipe.light <= 0.5 * strength


@pytest.mark.parametrize("degrees", [-3.0, 1.3])
def test_a_dot_goes_where_the_recipe_says(degrees: float) -> None:
    recipe = Degradation(rotation_deg=degrees, blur_px=1.0)
    dark = 255.0 - recipe.apply(page_with_dot(), rng())
    rows, columns = np.indices(dark.shape) + 0.5
    centre = (columns * dark).sum() / dark.sum(), (rows * dark).sum() / dark.sum()
    assert np.allclose(centre, recipe.to_degraded(322, 62, width_px=400, height_px=300), atol=0.05)


def test_a_positive_rotation_is_counter_clockwise_as_seen() -> None:
    x, y = Degradation(rotation_deg=3.0).to_degraded([100, 300], [150, 150], width_px=400, height_px=300)
    assert x[0] < x[1]
    assert y[0] > y[1]


@given(st.floats(-3, 3), st.floats(0, 400), st.floats(0, 300))
def test_there_and_back_is_where_one_was(degrees: float, x: float, y: float) -> None:
    recipe = Degradation(rotation_deg=degrees)
    there = recipe.to_degraded(x, y, width_px=400, height_px=300)
    assert np.allclose(recipe.to_clean(*there, width_px=400, height_px=300), (x, y), atol=1e-9)


def test_noise_has_the_stated_spread() -> None:
    grey = np.full((300, 300), 128, dtype=np.uint8)
    spoilt = Degradation(noise=0.05).apply(grey, rng())
    assert spoilt.std() == pytest.approx(0.05 * 255, rel=0.03)
    assert spoilt.mean() == pytest.approx(128, abs=0.3)


def test_light_takes_the_stated_share_at_the_darkest_place_only() -> None:
    white = np.full((300, 400), 255, dtype=np.uint8)
    spoilt = Degradation(light=0.4).apply(white, rng())
    assert spoilt.min() == pytest.approx(0.6 * 255, abs=1)
    assert spoilt.max() == 255


def test_blur_keeps_the_ink_and_spreads_it() -> None:
    page = page_with_dot()
    spoilt = Degradation(blur_px=1.0).apply(page, rng())
    assert (255.0 - spoilt).sum() == pytest.approx((255.0 - page).sum(), rel=0.05)
    assert (spoilt < 250).sum() > (page < 250).sum()


def test_losing_ink_thins_a_stroke_and_gaining_thickens_it() -> None:
    page = page_with_dot()
    ink = [(255.0 - Degradation(ink=share).apply(page, rng())).sum() for share in (0.4, 0.0, -0.4)]
    assert ink[0] < ink[1] < ink[2]


@pytest.mark.parametrize(
    "bad", [{"blur_px": -1.0}, {"noise": 2.0}, {"light": float("nan")}, {"jpeg_quality": 0}, {"paper": -0.1}]
)
def test_a_recipe_out_of_range_is_refused(bad: dict[str, float]) -> None:
    (name,) = bad
    with pytest.raises(InputError, match=name):
        Degradation(**bad)  # type: ignore[arg-type]


def test_a_strength_out_of_range_is_refused() -> None:
    with pytest.raises(InputError, match=r"strength 1\.5"):
        Degradation.draw(rng(), 1.5)
