from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import pytest
import torch
from example_melodies import TINY_MODEL

from fusili_mir.errors import InputError
from fusili_training.loop.checkpoint import Checkpoint, Progress, save_checkpoint
from fusili_training.loop.recipe import Recipe, WeightsOptions
from fusili_training.loop.starting_model import build_starting_model
from fusili_training.model.model import FusiliModel, ModelOptions

OPTIONS = ModelOptions(backbone="small", backbone_options=TINY_MODEL)


def test_the_seed_decides_the_weights() -> None:
    first, second, other = (build_starting_model(Recipe("x", seed=s, model=OPTIONS)) for s in (1, 1, 2))
    assert torch.equal(first.image_head.weight, second.image_head.weight)
    assert not torch.equal(first.image_head.weight, other.image_head.weight)


def test_a_run_can_begin_with_the_model_of_another(tmp_path: Path) -> None:
    earlier = build_starting_model(Recipe("x", seed=1, model=OPTIONS))
    path = tmp_path / "best.pt"
    save_checkpoint(Checkpoint(Recipe("x", model=OPTIONS), Progress(), earlier.state_dict()), path)
    later = build_starting_model(
        Recipe("y", seed=2, model=OPTIONS, weights=WeightsOptions(checkpoint=str(path)))
    )
    torch.testing.assert_close(later.state_dict(), earlier.state_dict(), rtol=0, atol=0)


def test_prototypes_may_begin_on_a_model_that_pooled_by_means(tmp_path: Path) -> None:
    earlier = build_starting_model(Recipe("x", seed=1, model=OPTIONS)).state_dict()
    path = tmp_path / "best.pt"
    save_checkpoint(Checkpoint(Recipe("x", model=OPTIONS), Progress(), earlier), path)
    pooled = replace(OPTIONS, pooling="prototypes")

    def begin(trained: Literal["all", "global heads"], options: ModelOptions = pooled) -> FusiliModel:
        weights = WeightsOptions(checkpoint=str(path), trained=trained)
        return build_starting_model(Recipe("y", seed=2, model=options, weights=weights))

    later = begin("global heads")
    state = later.state_dict()
    torch.testing.assert_close({name: state[name] for name in earlier}, earlier, rtol=0, atol=0)
    assert {name.split(".")[0] for name in state.keys() - earlier.keys()} == {"pooling"}
    trained = {name for name, parameter in later.named_parameters() if parameter.requires_grad}
    assert trained == {"logit_scale_global", "pooling.projection.weight"}
    with pytest.raises(InputError, match=r"best.pt does not fit the model: it lacks pooling"):
        begin("all")

    save_checkpoint(Checkpoint(Recipe("y", model=pooled), Progress(), state), path)
    again = begin("global heads").state_dict()
    torch.testing.assert_close(again, state, rtol=0, atol=0)
    with pytest.raises(InputError, match=r"it has pooling.\w+, which the model lacks"):
        begin("global heads", OPTIONS)


def test_a_pooling_of_another_size_begins_anew(tmp_path: Path) -> None:
    pooled = replace(OPTIONS, pooling="prototypes")
    earlier = build_starting_model(Recipe("x", seed=1, model=pooled)).state_dict()
    earlier["pooling.centres"] = torch.zeros(2, 7)  # as that of an earlier version
    path = tmp_path / "best.pt"
    save_checkpoint(Checkpoint(Recipe("x", model=pooled), Progress(), earlier), path)
    weights = WeightsOptions(checkpoint=str(path), trained="global heads")
    later = build_starting_model(Recipe("y", seed=2, model=pooled, weights=weights)).state_dict()
    own = build_starting_model(Recipe("y", seed=2, model=pooled)).state_dict()
    for name, value in later.items():
        expected = own if name.startswith("pooling.") else earlier
        torch.testing.assert_close(value, expected[name], rtol=0, atol=0)


@pytest.mark.parametrize("key", ["clip", "clap", "checkpoint"])
def test_a_missing_weights_file_is_named_with_the_way_out(key: str) -> None:
    missing: dict[str, Any] = {key: "nowhere.pt"}
    recipe = Recipe("x", model=OPTIONS, weights=WeightsOptions(**missing))
    with pytest.raises(InputError, match=rf"weights.{key} is nowhere.pt, but there is no such file; .*"):
        build_starting_model(recipe)


def test_weights_of_clip_do_not_fit_the_small_model(tmp_path: Path) -> None:
    torch.save({"visual.proj": torch.zeros(2, 2)}, tmp_path / "clip.pt")
    recipe = Recipe("x", model=OPTIONS, weights=WeightsOptions(clip=str(tmp_path / "clip.pt")))
    with pytest.raises(InputError, match="is for the clip-clap backbone"):
        build_starting_model(recipe)
