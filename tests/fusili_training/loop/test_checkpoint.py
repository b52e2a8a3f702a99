import resource
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from example_melodies import TINY_MODEL

from fusili_mir.errors import InputError, OutputError
from fusili_training.data.augmentation import Augmentation
from fusili_training.loop.checkpoint import (
    Checkpoint,
    Progress,
    load_checkpoint,
    load_trained_model,
    save_checkpoint,
)
from fusili_training.loop.optimiser import build_optimiser
from fusili_training.loop.recipe import Recipe
from fusili_training.model.model import FusiliModel, ModelOptions
from fusili_training.model.weights import load_state_dict


def recipe(**sizes: Any) -> Recipe:
    return Recipe("x", model=ModelOptions(backbone="small", backbone_options=TINY_MODEL | sizes))


def checkpoint(step: int = 7) -> Checkpoint:
    torch.manual_seed(0)
    model = FusiliModel(recipe().model)
    optimiser = build_optimiser(model, recipe().optimiser)
    states = [{"cpu": torch.get_rng_state()}]
    return Checkpoint(
        recipe(),
        Progress(step, 1, 2, -1.5, 1, {"loss": 0.5}),
        model.state_dict(),
        optimiser.state_dict(),
        states,
    )


@pytest.fixture
def small_disk() -> Iterator[None]:
    """Let no file grow beyond 4 kB."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_all_of_a_checkpoint_comes_back(tmp_path: Path) -> None:
    saved = checkpoint()
    save_checkpoint(saved, tmp_path / "last.pt")
    loaded = load_checkpoint(tmp_path / "last.pt")
    assert (loaded.recipe, loaded.progress) == (saved.recipe, saved.progress)
    torch.testing.assert_close(loaded.model, saved.model, rtol=0, atol=0)
    assert saved.optimiser is not None
    assert loaded.optimiser is not None
    assert loaded.optimiser["param_groups"] == saved.optimiser["param_groups"]
    assert torch.equal(loaded.random_states[0]["cpu"], saved.random_states[0]["cpu"])
    assert [file.name for file in tmp_path.iterdir()] == ["last.pt"]


def test_the_keys_of_an_older_recipe_are_read_under_their_present_names(tmp_path: Path) -> None:
    save_checkpoint(checkpoint(), tmp_path / "last.pt")
    content = torch.load(tmp_path / "last.pt")
    del content["recipe"]["model"]["class_token_in_similarity"]
    del content["recipe"]["loss"]["local_similarity"]
    content["recipe"]["model"]["class_token_in_score"] = False
    content["recipe"]["loss"]["local_score"] = "cosine"
    torch.save(content, tmp_path / "older.pt")
    loaded = load_checkpoint(tmp_path / "older.pt").recipe
    assert not loaded.model.class_token_in_similarity
    assert loaded.loss.local_similarity == "cosine"


def test_a_recipe_without_an_augmentation_was_augmented_as_ever(tmp_path: Path) -> None:
    save_checkpoint(checkpoint(), tmp_path / "last.pt")
    content = torch.load(tmp_path / "last.pt")
    assert content["recipe"].pop("augmentation")["audio"]["direct_to_room_db"] == [0.0, 20.0]
    torch.save(content, tmp_path / "older.pt")
    assert load_checkpoint(tmp_path / "older.pt").recipe.augmentation == Augmentation()


def test_the_trained_model_can_be_built_from_its_checkpoint_alone(tmp_path: Path) -> None:
    saved = checkpoint()
    save_checkpoint(saved, tmp_path / "best.pt")
    model, loaded = load_trained_model(tmp_path / "best.pt")
    assert not model.training
    assert loaded.recipe.model.backbone == "small"
    torch.testing.assert_close(dict(model.state_dict()), dict(saved.model), rtol=0, atol=0)


def test_the_weights_can_be_read_as_those_of_any_torch_file(tmp_path: Path) -> None:
    save_checkpoint(checkpoint(), tmp_path / "last.pt")
    assert "logit_scale_local" in load_state_dict(tmp_path / "last.pt")


@pytest.mark.usefixtures("small_disk")
def test_a_full_disk_gives_one_line_and_leaves_no_debris(tmp_path: Path) -> None:
    with pytest.raises(
        OutputError, match=r"cannot be written \(File too large\); there was none before"
    ) as caught:
        save_checkpoint(checkpoint(), tmp_path / "last.pt")
    assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_leaves_the_checkpoint_before(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    path = tmp_path / "last.pt"
    save_checkpoint(checkpoint(step=1), path)
    content = path.read_bytes()
    request.getfixturevalue("small_disk")
    with pytest.raises(OutputError, match=r"the previous checkpoint is intact: free some space and resume"):
        save_checkpoint(checkpoint(step=2), path)
    assert path.read_bytes() == content
    assert [file.name for file in tmp_path.iterdir()] == ["last.pt"]


def test_a_checkpoint_of_another_shape_is_named_with_both_shapes(tmp_path: Path) -> None:
    path = tmp_path / "last.pt"
    save_checkpoint(checkpoint(), path)
    wider = FusiliModel(recipe(width=48).model)
    with pytest.raises(
        InputError, match=r"last.pt does not fit the model: .* has shape \(.*32.*\); expected \(.*48.*\)"
    ):
        load_checkpoint(path).restore_model(wider, path)


def test_global_heads_of_another_shape_may_begin_anew(tmp_path: Path) -> None:
    path = tmp_path / "best.pt"
    saved = checkpoint()
    save_checkpoint(saved, path)
    model = FusiliModel(recipe().model)
    head: Any = model.image.global_head
    head[0] = torch.nn.Linear(64, 32)
    own = head[0].weight.clone()
    with pytest.raises(InputError, match=r"does not fit the model: image.global_head.0.weight"):
        load_checkpoint(path).restore_model(model, path)
    load_checkpoint(path).restore_model(model, path, new_heads=True)
    state = model.state_dict()
    assert state["image.global_head.0.weight"].equal(own)
    for name in ("image.global_head.2.weight", "audio.global_head.0.weight", "image_head.weight"):
        assert state[name].equal(saved.model[name])


def test_a_checkpoint_of_another_backbone_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "last.pt"
    save_checkpoint(checkpoint(), path)
    deeper = FusiliModel(
        ModelOptions(backbone="small", backbone_options=TINY_MODEL | {"audio_dilations": (1, 1, 1)})
    )
    with pytest.raises(InputError, match=r"does not fit the model: it lacks audio.blocks.2"):
        load_checkpoint(path).restore_model(deeper, path)


def test_a_model_for_use_cannot_be_trained_on(tmp_path: Path) -> None:
    full = checkpoint()
    path = tmp_path / "best.pt"
    save_checkpoint(Checkpoint(full.recipe, full.progress, full.model), path)
    optimiser = build_optimiser(FusiliModel(recipe().model), recipe().optimiser)
    with pytest.raises(InputError, match=r"holds a model only"):
        load_checkpoint(path).restore_optimiser(optimiser, path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"format": 2}, "format 2; expected a checkpoint of format 1"),
        ({"a": 1}, "not a checkpoint of fusili-mir"),
    ],
)
def test_another_file_is_refused(tmp_path: Path, content: dict[str, int], message: str) -> None:
    torch.save(content, tmp_path / "last.pt")
    with pytest.raises(InputError, match=message):
        load_checkpoint(tmp_path / "last.pt")


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"there is no weights file"):
        load_checkpoint(tmp_path / "last.pt")
