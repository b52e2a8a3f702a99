"""Reading weights: all known layouts, and no file that would run code."""

import pickle
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor

from fusili_mir.errors import InputError
from fusili_training.model.model import FusiliModel, ModelOptions
from fusili_training.model.weights import (
    CLAP_KEYS,
    CLIP_KEYS,
    RELEASED_KEYS,
    is_released_checkpoint,
    load_clap_weights,
    load_clip_weights,
    load_released_checkpoint,
    load_state_dict,
    read_checkpoint,
)

OPTIONS = ModelOptions(
    "clip-clap",
    {
        "embedding_dim": 8,
        "image_width": 16,
        "image_layers": 1,
        "image_heads": 1,
        "audio_width": 8,
        "audio_depths": (1, 1, 1, 1),
        "audio_heads": (1, 1, 1, 1),
    },
)


@pytest.fixture(scope="module")
def trained() -> FusiliModel:
    torch.manual_seed(1)
    return FusiliModel(OPTIONS)


@pytest.fixture
def fresh() -> FusiliModel:
    torch.manual_seed(2)
    return FusiliModel(OPTIONS)


def renamed(model: FusiliModel, keys: dict[str, str], wrapper: str = "") -> dict[str, Tensor]:
    """Return the weights under the names that they have in another project's file."""
    return {
        wrapper + theirs + name.removeprefix(ours): value
        for name, value in model.state_dict().items()
        for theirs, ours in keys.items()
        if name.startswith(ours)
    }


def assert_same(found: FusiliModel, expected: FusiliModel, prefix: str) -> None:
    for name, value in expected.state_dict().items():
        if name.startswith(prefix):
            torch.testing.assert_close(found.state_dict()[name], value)


def test_a_checkpoint_of_the_released_code_fills_the_whole_model(
    trained: FusiliModel, fresh: FusiliModel, tmp_path: Path
) -> None:
    state = renamed(trained, RELEASED_KEYS)
    assert len(state) == len(trained.state_dict())
    state["image_model.transformer.resblocks.0.ln_1.weight"] = torch.ones(3)  # CLIP's text encoder
    state["audio_model.model.text_branch.pooler.dense.bias"] = torch.ones(3)  # CLAP's text encoder
    content = {"epoch": 3, "model_state_dict": state, "optimizer_state_dict": {"state": {}}, "val_loss": 1.5}
    torch.save(content, tmp_path / "released.pt")
    load_released_checkpoint(fresh, tmp_path / "released.pt")
    assert_same(fresh, trained, "")
    assert is_released_checkpoint(load_state_dict(tmp_path / "released.pt"))
    assert not is_released_checkpoint(trained.state_dict())


def test_clip_weights_come_from_safetensors(trained: FusiliModel, fresh: FusiliModel, tmp_path: Path) -> None:
    state = renamed(trained, CLIP_KEYS) | {"logit_scale": torch.ones(())}
    save_file(state, tmp_path / "clip.safetensors")
    before = fresh.audio_head.weight.detach().clone()
    load_clip_weights(fresh, tmp_path / "clip.safetensors")
    assert_same(fresh, trained, "image.")
    torch.testing.assert_close(fresh.audio_head.weight, before)


def test_clap_weights_come_with_a_prefix_and_numpy_numbers(
    trained: FusiliModel, fresh: FusiliModel, tmp_path: Path
) -> None:
    state = renamed(trained, CLAP_KEYS, wrapper="module.")
    content = {"epoch": 15, "state_dict": state, "best": np.float64(0.9), "step": np.int64(4)}
    torch.save(content, tmp_path / "clap.pt")
    load_clap_weights(fresh, tmp_path / "clap.pt")
    assert_same(fresh, trained, "audio.")


def test_a_file_that_would_run_code_is_refused(tmp_path: Path) -> None:
    class Harmful:
        def __reduce__(self) -> tuple[object, tuple[str]]:
            return print, ("this must never be printed",)

    torch.save({"state_dict": {"a": torch.ones(1)}, "extra": Harmful()}, tmp_path / "harmful.pt")
    with pytest.raises(InputError, match="cannot be read safely") as caught:
        read_checkpoint(tmp_path / "harmful.pt")
    assert "\n" not in str(caught.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"there is no weights file .*nowhere\.pt"):
        read_checkpoint(tmp_path / "nowhere.pt")


@pytest.mark.parametrize("name", ["broken.pt", "broken.safetensors"])
def test_a_broken_file_is_refused_in_one_line(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"these are no weights at all")
    with pytest.raises(InputError, match="broken") as caught:
        read_checkpoint(tmp_path / name)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("content", [[1, 2], {"epoch": 3}])
def test_a_file_without_weights_is_refused(tmp_path: Path, content: object) -> None:
    torch.save(content, tmp_path / "empty.pt")
    with pytest.raises(InputError, match=r"expected a (dictionary of tensors|state dictionary)"):
        load_state_dict(tmp_path / "empty.pt")


def test_a_checkpoint_of_another_shape_is_refused(
    trained: FusiliModel, fresh: FusiliModel, tmp_path: Path
) -> None:
    state = renamed(trained, RELEASED_KEYS)
    state["proj_img.weight"] = torch.ones(512, 768)
    torch.save({"model_state_dict": state}, tmp_path / "other.pt")
    with pytest.raises(InputError, match=r"image_head.weight has shape \(512, 768\); expected \(8, 16\)"):
        load_released_checkpoint(fresh, tmp_path / "other.pt")


def test_missing_weights_are_counted_and_leave_the_model_alone(
    trained: FusiliModel, fresh: FusiliModel, tmp_path: Path
) -> None:
    before = {name: value.clone() for name, value in fresh.state_dict().items()}
    state = renamed(trained, CLAP_KEYS)
    del state["audio_projection.0.bias"]
    torch.save(state, tmp_path / "clap.pt")
    with pytest.raises(InputError, match=r"lacks 1 of \d+ weights, such as audio.projection.0.bias"):
        load_clap_weights(fresh, tmp_path / "clap.pt")
    torch.testing.assert_close(dict(fresh.state_dict()), before)


def test_clip_weights_are_not_for_the_small_backbone(trained: FusiliModel, tmp_path: Path) -> None:
    small = FusiliModel(ModelOptions("small", {"width": 8, "stem_channels": (2, 2, 2)}))
    torch.save(renamed(trained, CLIP_KEYS), tmp_path / "clip.pt")
    with pytest.raises(InputError, match="is for the clip-clap backbone"):
        load_clip_weights(small, tmp_path / "clip.pt")


def test_old_pickles_are_refused(tmp_path: Path) -> None:
    (tmp_path / "old.pt").write_bytes(pickle.dumps({"a": 1}))
    with pytest.raises(InputError, match=r"old\.pt"):
        load_state_dict(tmp_path / "old.pt")
