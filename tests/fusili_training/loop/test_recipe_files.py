import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

from fusili_mir.errors import InputError
from fusili_training.backbones.clip_clap import ClipClapOptions
from fusili_training.data.augmentation import Augmentation
from fusili_training.loop.recipe_files import find_recipe, list_recipes, read_recipe, recipe_from_dict

# alpha, local similarity, pieces, mutations of each row of the paper's two tables
TABLE_ROWS = {
    "table1-random-baseline": (0.0, None, "random", "none"),
    "table1-random-fusili": (0.5, "fusili", "random", "none"),
    "table1-random-negative-mutations": (0.5, "fusili", "random", "negative"),
    "table1-random-positive-mutations": (0.5, "fusili", "random", "positive"),
    "table1-same-piece-baseline": (0.0, None, "same", "none"),
    "table1-same-piece-fusili": (0.5, "fusili", "same", "none"),
    "table1-same-piece-negative-mutations": (0.5, "fusili", "same", "negative"),
    "table1-same-piece-positive-mutations": (0.5, "fusili", "same", "positive"),
    "table2-hybrid-fusili": (0.5, "fusili", "same", "positive"),
    "table2-hybrid-cosine": (0.5, "cosine", "same", "positive"),
    "table2-global": (0.0, None, "same", "positive"),
    "table2-local-fusili": (1.0, "fusili", "same", "positive"),
    "table2-local-cosine": (1.0, "cosine", "same", "positive"),
}


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("name", TABLE_ROWS)
def test_the_rows_of_the_tables_are_what_the_paper_says(name: str) -> None:
    recipe = read_recipe(name)
    alpha, similarity, pieces, mutations = TABLE_ROWS[name]
    assert recipe.name == name
    assert recipe.loss.alpha == alpha
    assert similarity is None or recipe.loss.local_similarity == similarity
    assert (recipe.data.pieces, recipe.data.mutations) == (pieces, mutations)


@pytest.mark.parametrize("name", TABLE_ROWS)
def test_all_rows_share_the_papers_training(name: str) -> None:
    recipe = read_recipe(name)
    assert recipe.model.backbone == "clip-clap"
    assert recipe.model.initial_scale == pytest.approx(1 / 0.07)
    assert recipe.model.max_scale == 100
    assert recipe.loss.sinkhorn_iterations == 20
    assert recipe.data.batch_size == 128
    assert recipe.training.epochs == 20
    assert (recipe.optimiser.head_rate, recipe.optimiser.encoder_rate) == (2e-4, 2e-5)
    assert recipe.optimiser.weight_decay == 0.01
    assert recipe.data.validation == "originals"


@pytest.mark.parametrize("name", TABLE_ROWS)
def test_all_rows_are_wired_as_the_released_code(name: str) -> None:
    options = ClipClapOptions(**read_recipe(name).model.backbone_options)
    assert options.local_before_norm
    assert options.normalise_windows
    assert options.audio_in_eval_mode


def test_every_shipped_recipe_can_be_read() -> None:
    names = list_recipes()
    assert len([name for name in names if name.startswith("table")]) == 13
    assert {read_recipe(name).name for name in names} == set(names)


@pytest.mark.parametrize(("name", "alpha"), [("global", 0.0), ("hybrid", 0.5), ("local", 1.0)])
def test_the_recipes_of_small_squares_differ_in_alpha_alone(name: str, alpha: float) -> None:
    recipe = read_recipe(f"small-squares-{name}")
    assert recipe.loss == replace(read_recipe("small-squares-hybrid").loss, alpha=alpha)
    assert recipe.data == read_recipe("small-squares-hybrid").data
    assert recipe.model.backbone_options["square_px"] == 224
    assert recipe.loss.supervision == "global"


def test_the_dense_recipe_is_supervised_locally() -> None:
    recipe = read_recipe("small-dense")
    assert recipe.loss.supervision == "local"
    assert recipe.model.note_heads


def test_the_small_recipes_state_how_pairs_are_augmented() -> None:
    base = find_recipe("small-dense").parent / "base" / "small.toml"
    stated = tomllib.loads(base.read_text(encoding="utf-8"))["augmentation"]
    assert stated == read_recipe("small-dense").as_dict()["augmentation"]
    assert read_recipe("small-dense").augmentation == Augmentation()


def test_a_part_of_the_augmentation_can_be_overridden() -> None:
    recipe = read_recipe("small-dense", ["augmentation.audio.gain_db=3", "augmentation.image.ink=0"])
    assert recipe.augmentation.audio == replace(Augmentation().audio, gain_db=3.0)
    assert recipe.augmentation.image == replace(Augmentation().image, ink=0.0)
    with pytest.raises(InputError, match=r"unknown key augmentation.image.inc; did you mean ink\?"):
        read_recipe("small-dense", ["augmentation.image.inc=0"])


def test_a_recipe_states_only_what_differs_from_the_one_it_extends(tmp_path: Path) -> None:
    write(tmp_path, "base.toml", "seed = 3\n[loss]\nalpha = 0.25\nlocal_similarity = 'cosine'\n")
    recipe = read_recipe(write(tmp_path, "mine.toml", "extends = 'base.toml'\n[loss]\nalpha = 1\n"))
    assert (recipe.name, recipe.seed) == ("mine", 3)
    assert (recipe.loss.alpha, recipe.loss.local_similarity) == (1.0, "cosine")


def test_recipes_that_extend_each_other_are_refused(tmp_path: Path) -> None:
    write(tmp_path, "a.toml", "extends = 'b.toml'")
    path = write(tmp_path, "b.toml", "extends = 'a.toml'")
    with pytest.raises(InputError, match=r"extends itself"):
        read_recipe(path)


def test_overrides_come_last_and_are_read_as_toml(tmp_path: Path) -> None:
    path = write(tmp_path, "mine.toml", "[loss]\nalpha = 0.5\n[model]\nbackbone = 'small'\n")
    recipe = read_recipe(
        path,
        [
            "loss.alpha=0",
            "data.folder=somewhere/else",
            "training.compile=true",
            "model.backbone_options.stem_channels=[4, 8, 8]",
        ],
    )
    assert recipe.loss.alpha == 0
    assert recipe.data.folder == "somewhere/else"
    assert recipe.training.compile is True
    assert recipe.model.backbone_options == {"stem_channels": (4, 8, 8)}


@pytest.mark.parametrize(
    ("override", "message"),
    [
        (
            "loss.alhpa=0.5",
            r"unknown key loss.alhpa; did you mean alpha\? \[loss\] has alpha, local_similarity",
        ),
        ("optimizer.rate=1", "unknown key optimizer; did you mean optimiser"),
        ("loss.alpha=2", r"alpha is 2.0; expected a weight within \[0, 1\]"),
        ("loss.alpha='a lot'", "loss.alpha is 'a lot'; expected a number"),
        (
            "loss.local_similarity=dtw",
            "loss.local_similarity is 'dtw'; expected one of fusili, cosine, softmax",
        ),
        ("data.batch_size=1.5", "data.batch_size is 1.5; expected a whole number"),
        ("training.compile=1", "training.compile is 1; expected true or false"),
        ("loss=3", "loss is 3; expected a table"),
        ("loss.alpha", "override 'loss.alpha'; expected section.key=value"),
    ],
)
def test_a_wrong_override_is_named_with_what_was_expected(override: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_recipe("small-hybrid", [override])


def test_a_file_that_is_no_toml_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"is not a TOML file"):
        read_recipe(write(tmp_path, "mine.toml", "alpha: 0.5"))


def test_an_unknown_recipe_is_answered_with_names_like_it() -> None:
    with pytest.raises(InputError, match=r"there is no recipe small-hybird; .*small-hybrid"):
        find_recipe("small-hybird")


def test_a_recipe_survives_as_plain_values() -> None:
    recipe = read_recipe("small-dense", ["model.backbone_options.image_dilations=[1]"])
    assert recipe_from_dict(recipe.as_dict(), "memory") == recipe
