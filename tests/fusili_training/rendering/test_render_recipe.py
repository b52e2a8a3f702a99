from __future__ import annotations

from pathlib import Path

import pytest

from fusili_mir.errors import InputError
from fusili_training.backbones.small import SmallOptions
from fusili_training.rendering.render_recipe import RenderRecipe, SegmentOptions, load_render_recipe
from fusili_training.sound.expression import Expression

RECIPES = Path(__file__).parents[3] / "training" / "recipes" / "render"


def _load(text: str, folder: Path) -> RenderRecipe:
    path = folder / "recipe.toml"
    path.write_text(text)
    return load_render_recipe(path)


def test_what_a_recipe_does_not_name_keeps_its_default(tmp_path: Path) -> None:
    recipe = _load("seed = 7\n[segment]\nmax_width_px = 512\n[audio]\nkeyboard_programs = [0, 6]", tmp_path)
    assert recipe.seed == 7
    assert recipe.segment == SegmentOptions(max_width_px=512)
    assert recipe.audio.keyboard_programs == (0, 6)
    assert recipe.expression == RenderRecipe().expression


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("sead = 1", "unknown key sead"),
        ("[segment]\nwidth = 3", r"unknown key segment\.width"),
        ("[segment]\nshape = 'round'", "square, staff_strips"),
        ("[segment]\nside_px = 'big'", r"segment\.side_px is 'big'"),
        ("[engraving]\nfonts = ['Comic']", "Leipzig"),
        ("[page]\nprinted = -1", "printed is -1.*expected 0 to 1"),
        ("[page.defects]\nink = 2", r"defects\.ink is 2.*expected 0 to 1"),
        ("[page.defects]\nholes = 1", r"unknown key page\.defects\.holes"),
        ("[audio]\nsinging = 1.5", "singing is 1.5; expected 0 to 1"),
        ("layouts = {organ = 1.0}", "organ"),
        ("layouts_per_piece = 0", "at least 1"),
        ("seed", "not a TOML file"),
    ],
)
def test_mistakes_are_named_in_one_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        _load(text, tmp_path)
    assert "\n" not in str(caught.value)


def test_the_strips_that_come_with_the_project_are_what_the_small_model_takes() -> None:
    recipe = load_render_recipe(RECIPES / "strips.toml")
    assert recipe == RenderRecipe()
    assert recipe.segment.strip_height_px == SmallOptions().strip_px
    assert recipe.segment.space_px == SmallOptions().staff_space_px
    assert recipe.audio.sample_rate_hz == SmallOptions().sample_rate_hz


def test_the_squares_that_come_with_the_project_are_the_papers() -> None:
    recipe = load_render_recipe(RECIPES / "squares.toml")
    assert (recipe.segment.shape, recipe.segment.side_px, recipe.segment.n_measures) == ("square", 224, 8)
    assert recipe.segment.alone
    assert recipe.segment.cut_long
    assert (recipe.audio.sample_rate_hz, recipe.audio.lead_sec) == (48_000, 0.0)
    assert recipe.expression == Expression(marks=1.0)  # at the written tempo, without rubato
    assert recipe.mutation.mutants
