"""Checkpoints of both layouts, and what is known about their models."""

import hashlib
from pathlib import Path
from typing import Any

import pytest
import torch
from example_models import TINY_CLIP_CLAP

from fusili_export.checkpoints import load_trained
from fusili_export.wrappers import TowerGraph
from fusili_mir.errors import InputError
from fusili_training.loop.checkpoint import Checkpoint, Progress, save_checkpoint
from fusili_training.loop.recipe import DataOptions, LossOptions, Recipe, WeightsOptions
from fusili_training.model.model import FusiliModel, ModelOptions
from fusili_training.model.weights import RELEASED_KEYS

TINY_SMALL = {"width": 16, "embedding_dim": 8, "stem_channels": (4, 4, 4), "audio_dilations": (1,)}


def write_ours(path: Path, alpha: float = 0.5, validation: dict[str, float] | None = None) -> FusiliModel:
    recipe = Recipe(
        "tiny",
        model=ModelOptions("small", TINY_SMALL, initial_scale=10.0),
        loss=LossOptions(alpha=alpha),
        weights=WeightsOptions(checkpoint="/home/someone/earlier.pt"),
        data=DataOptions(folder="/home/someone/pairs"),
    )
    torch.manual_seed(0)
    model = FusiliModel(recipe.model)
    with torch.no_grad():
        model.logit_scale_global.fill_(1.0)
    save_checkpoint(Checkpoint(recipe, Progress(7, validation=validation or {}), model.state_dict()), path)
    return model.eval()


def write_released(path: Path, **changes: Any) -> FusiliModel:
    torch.manual_seed(0)
    model = FusiliModel(ModelOptions("clip-clap", TINY_CLIP_CLAP))
    theirs = {ours: released for released, ours in RELEASED_KEYS.items()}
    state = {
        theirs[prefix] + name.removeprefix(prefix): value
        for name, value in model.state_dict().items()
        for prefix in theirs
        if name.startswith(prefix)
    }
    content = {
        "epoch": 19,
        "model_state_dict": state,
        "optimizer_state_dict": {"state": {}, "param_groups": []},
        "val_loss": 1.25,
    }
    torch.save(content | changes, path)
    return model.eval()


def test_ours_bring_their_recipe_without_the_folders_of_the_machine(tmp_path: Path) -> None:
    path = tmp_path / "best.pt"
    written = write_ours(path, validation={"joint": 0.75})
    trained = load_trained(path)
    torch.testing.assert_close(dict(trained.model.state_dict()), dict(written.state_dict()))
    assert not trained.model.training
    assert (trained.name, trained.heads, trained.recipe["steps"]) == ("tiny", "local", 7)
    assert trained.recipe["model"]["backbone"] == "small"
    assert trained.recipe["data"]["folder"] == "pairs"
    assert "someone" not in str(trained.recipe)
    assert trained.data_folder == "/home/someone/pairs"
    assert trained.quality == {"validation": {"joint": 0.75}}
    assert trained.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    assert trained.scale == pytest.approx(10)


def test_without_a_local_loss_patches_and_frames_go_through_the_global_heads(tmp_path: Path) -> None:
    written = write_ours(tmp_path / "best.pt", alpha=0.0)
    trained = load_trained(tmp_path / "best.pt")
    assert trained.heads == "global"
    assert trained.scale == pytest.approx(2.7182818)
    assert trained.quality == {}
    waveforms = 0.1 * torch.randn(2, 6400)
    with torch.no_grad():
        frames, pooled = TowerGraph(trained.model, "audio", trained.heads)(waveforms)
        tokens = written.audio(waveforms)
        expected = torch.nn.functional.normalize(written.audio.project_global(tokens.local), dim=-1)
    torch.testing.assert_close(frames, expected)
    torch.testing.assert_close(pooled.norm(dim=-1), torch.ones(2))
    assert load_trained(tmp_path / "best.pt", heads="local").heads == "local"


def test_a_model_that_pools_by_prototypes_has_local_heads_only(tmp_path: Path) -> None:
    path = tmp_path / "best.pt"
    options = ModelOptions("small", TINY_SMALL, pooling="prototypes")
    recipe = Recipe("tiny", model=options)
    save_checkpoint(Checkpoint(recipe, Progress(), FusiliModel(options).state_dict()), path)
    assert load_trained(path).heads == "local"
    with pytest.raises(InputError, match="pools by prototypes, so it has no global heads"):
        load_trained(path, heads="global")


def test_checkpoints_of_the_released_code_are_recognised(tmp_path: Path) -> None:
    path = tmp_path / "epoch_19.pt"
    written = write_released(path)
    trained = load_trained(path, released_model=ModelOptions("clip-clap", TINY_CLIP_CLAP))
    torch.testing.assert_close(dict(trained.model.state_dict()), dict(written.state_dict()))
    assert (trained.name, trained.heads, trained.data_folder) == ("epoch_19", "local", "")
    assert trained.recipe == {"layout": "the paper's released code", "epoch": 19, "loss": {"alpha": 0.5}}
    assert trained.quality == {"validation_loss": 1.25}
    images = torch.rand(1, 1, 224, 224)
    with torch.no_grad():
        patches, _ = TowerGraph(trained.model, "image", "local")(images)
    assert patches.shape == (1, 49, 16)  # no class token


@pytest.mark.parametrize(
    ("lacking", "heads", "alpha"),
    [
        (("proj_img.", "proj_audio.", "logit_scale_local"), "global", 0.0),  # the baseline
        (("logit_scale_global",), "local", 1.0),
    ],
)
def test_released_checkpoints_have_only_the_weights_that_their_loss_trains(
    tmp_path: Path, lacking: tuple[str, ...], heads: str, alpha: float
) -> None:
    path = tmp_path / "best_val.ckpt"
    written = write_released(path)
    content = torch.load(path, weights_only=True)
    state = content["model_state_dict"]
    content["model_state_dict"] = {k: v for k, v in state.items() if not k.startswith(lacking)}
    assert len(content["model_state_dict"]) < len(state)
    torch.save(content, path)
    trained = load_trained(path, released_model=ModelOptions("clip-clap", TINY_CLIP_CLAP))
    assert (trained.heads, trained.recipe["loss"]["alpha"]) == (heads, alpha)
    torch.testing.assert_close(trained.model.image.state_dict(), written.image.state_dict())
    if heads == "global":
        with pytest.raises(InputError, match="trained without local heads"):
            load_trained(path, "local", ModelOptions("clip-clap", TINY_CLIP_CLAP))


def test_other_files_are_refused_with_what_they_lack(tmp_path: Path) -> None:
    path = tmp_path / "other.pt"
    torch.save({"model_state_dict": {"image_model.visual.proj": torch.zeros(2)}}, path)
    with pytest.raises(InputError, match=r"it has no recipe.*no weights audio_model.model.audio_branch"):
        load_trained(path)
    with pytest.raises(InputError, match="there is no weights file"):
        load_trained(tmp_path / "none.pt")


def test_a_released_checkpoint_of_another_size_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "epoch_19.pt"
    write_released(path)
    with pytest.raises(InputError, match=r"has shape \(32,\); expected \(64,\)"):
        load_trained(path, released_model=ModelOptions("clip-clap", TINY_CLIP_CLAP | {"image_width": 64}))
