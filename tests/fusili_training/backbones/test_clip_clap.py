"""The clip-clap backbone at a small size, against the published encoders that it uses."""

import sys
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from fusili_mir.errors import InputError, MissingExtraError
from fusili_training.backbones import Backbone, build_backbone
from fusili_training.backbones.published_encoders import import_htsat
from fusili_training.losses.sinkhorn import fusili_similarity

TINY = {
    "embedding_dim": 16,
    "image_width": 32,
    "image_layers": 2,
    "image_heads": 2,
    "audio_width": 8,
    "audio_depths": (2, 1, 1, 1),
    "audio_heads": (1, 2, 2, 4),
}


@pytest.fixture(scope="module")
def backbone() -> Backbone:
    torch.manual_seed(0)
    built = build_backbone("clip-clap", TINY)
    built.image.eval()
    built.audio.eval()
    return built


@pytest.fixture(scope="module")
def waveforms() -> Tensor:
    waveforms = 0.1 * torch.randn(2, 960_000, generator=torch.Generator().manual_seed(0))
    waveforms[1, 700_000:] = 0  # zero-padded, like short segments
    return waveforms


@pytest.fixture(scope="module")
def published(backbone: Backbone, waveforms: Tensor) -> dict[str, Tensor]:
    """The frames of the published encoder for the two halves of each clip."""
    branch: nn.Module = backbone.audio.branch  # type: ignore[assignment]
    with torch.no_grad():
        output: dict[str, Tensor] = branch({"waveform": waveforms.reshape(4, 480_000)}, device="cpu")
    return output


def test_laion_clap_itself_is_never_imported(backbone: Backbone) -> None:
    assert "laion_clap" not in sys.modules
    assert not [path for path in sys.path if path.endswith("laion_clap")]
    assert import_htsat() is import_htsat()


@pytest.mark.parametrize("package", ["laion_clap", "torchlibrosa", "h5py", "tqdm"])
def test_a_package_that_is_missing_is_named_with_the_command_that_installs_it(
    package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in list(sys.modules):
        if name.split(".")[0] in ("_fusili_training_clap_module", "torchlibrosa"):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    by_itself = package == "laion_clap" and sys.version_info >= (3, 13)
    command = "--no-deps laion_clap" if by_itself else "'fusili-mir[export]'"
    with pytest.raises(MissingExtraError) as error:
        import_htsat()
    assert str(error.value) == f"the clip-clap backbone needs the package {package}: pip install {command}"


def test_frames_are_the_distinct_ones_of_the_published_encoder(
    backbone: Backbone, waveforms: Tensor, published: dict[str, Tensor]
) -> None:
    fine = published["fine_grained_embedding"].reshape(2, 64, 32, 64)  # (B, frames, repeats, width)
    assert (fine == fine[:, :, :1]).all()
    with torch.no_grad():
        tokens = backbone.audio(waveforms)
    torch.testing.assert_close(tokens.local, fine[:, :, 0])
    torch.testing.assert_close(tokens.pooled, published["embedding"].reshape(2, 2, 64))
    assert tokens.mask is None


def test_64_distinct_frames_score_like_the_256_of_the_protocol(
    backbone: Backbone, waveforms: Tensor, published: dict[str, Tensor]
) -> None:
    torch.manual_seed(1)
    head = nn.Linear(64, 16)
    patches = torch.randn(3, 50, 16, dtype=torch.float64)
    with torch.no_grad():
        projected = head(published["fine_grained_embedding"])  # (4, 1024, 16)
        pooled = nn.functional.max_pool1d(projected.transpose(1, 2), 8).transpose(1, 2)
        protocol = pooled.reshape(2, 256, 16).double()
        distinct = head(backbone.audio(waveforms).local).double()
        assert backbone.audio.geometry.frame_repeats == 4
        torch.testing.assert_close(distinct.repeat_interleave(4, dim=1), protocol, rtol=0, atol=1e-6)
        distinct = protocol[:, ::4]
        scale = torch.tensor(14.3, dtype=torch.float64)
        torch.testing.assert_close(
            fusili_similarity(patches, distinct, scale),
            fusili_similarity(patches, protocol, scale),
            rtol=1e-12,
            atol=1e-12,
        )


def test_the_batch_size_of_htsat_is_no_constant_of_an_exported_program(
    backbone: Backbone, waveforms: Tensor
) -> None:
    windows = waveforms.reshape(4, 480_000)
    batch = torch.export.Dim("batch", min=1, max=64)
    program = torch.export.export(_Local(backbone.audio), (windows[:2],), dynamic_shapes=({0: batch},))
    exported = program.module()
    with torch.no_grad():
        for size in (1, 3):
            torch.testing.assert_close(exported(windows[:size]), backbone.audio(windows[:size]).local)


class _Local(nn.Module):
    def __init__(self, tower: nn.Module) -> None:
        super().__init__()
        self.tower = tower

    def forward(self, inputs: Tensor) -> Tensor:
        local: Tensor = self.tower(inputs).local
        return local


@pytest.mark.parametrize("before_norm", [True, False])
def test_patches_are_those_of_clip_before_or_after_its_last_normalisation(before_norm: bool) -> None:
    torch.manual_seed(0)
    backbone = build_backbone("clip-clap", TINY | {"local_before_norm": before_norm})
    backbone.image.eval()
    images = torch.rand(2, 1, 224, 224, generator=torch.Generator().manual_seed(0))
    mean = torch.tensor([0.48145466, 0.4578275, 0.40821073]).view(3, 1, 1)
    deviation = torch.tensor([0.26862954, 0.26130258, 0.27577711]).view(3, 1, 1)
    visual: Any = backbone.image.visual
    with torch.no_grad():
        torch.nn.init.normal_(visual.ln_post.weight)
        tokens = backbone.image(images)
        hidden = visual.transformer(visual._embeds((images.expand(-1, 3, -1, -1) - mean) / deviation))
        expected = visual.ln_post(hidden)
        pooled = visual((images.expand(-1, 3, -1, -1) - mean) / deviation)
    local = hidden if before_norm else expected
    torch.testing.assert_close(tokens.local, local[:, 1:])
    torch.testing.assert_close(tokens.class_token, local[:, :1])
    with torch.no_grad():
        through_global_head = backbone.image.project_tokens_globally(tokens.local)
    torch.testing.assert_close(through_global_head, (expected[:, 1:] @ visual.proj).detach())
    torch.testing.assert_close(backbone.image.project_global(tokens.pooled)[:, 0], pooled)
    grid = backbone.image.geometry.grid(224)
    assert (grid.rows, grid.cols, len(grid)) == (7, 7, tokens.local.shape[1])


def test_the_patch_embedding_is_frozen_with_pretrained_weights() -> None:
    tower = build_backbone("clip-clap", TINY).image
    tower.freeze_pretrained()
    frozen = {name for name, parameter in tower.named_parameters() if not parameter.requires_grad}
    assert frozen == {
        "visual.conv1.weight",
        "visual.positional_embedding",
        "visual.ln_pre.weight",
        "visual.ln_pre.bias",
    }


def test_checkpointing_changes_memory_and_not_gradients() -> None:
    torch.manual_seed(0)
    built = build_backbone("clip-clap", TINY)
    inputs = {
        built.image: torch.rand(1, 1, 224, 224),
        built.audio: 0.1 * torch.randn(1, 480_000),
    }
    for tower, batch in inputs.items():
        gradients = []
        for enabled in (False, True):
            tower.set_gradient_checkpointing(enabled)
            tower.zero_grad()
            torch.manual_seed(3)  # augmentation and stochastic depth draw the same numbers
            tower(batch).local.square().sum().backward()
            gradients.append([p.grad.clone() for p in tower.parameters() if p.grad is not None])
        assert len(gradients[0]) > 10
        torch.testing.assert_close(gradients[0], gradients[1])


def test_every_trainable_parameter_has_a_gradient(backbone: Backbone, waveforms: Tensor) -> None:
    for tower, batch in (
        (backbone.image, torch.rand(1, 1, 224, 224)),
        (backbone.audio, waveforms[:1, :480_000]),
    ):
        tokens = tower(batch)
        features = (tokens.local.square().sum(), tower.project_global(tokens.pooled).sum())
        torch.autograd.backward(features)
        without = [n for n, p in tower.named_parameters() if p.requires_grad and p.grad is None]
        tower.zero_grad()
        assert without == []


def test_audio_of_another_length_is_refused(backbone: Backbone) -> None:
    with pytest.raises(InputError, match=r"a multiple of 480000 \(10 s at 48000 Hz\): pad them with zeros"):
        backbone.audio(torch.zeros(1, 500_000))


def test_images_of_another_size_are_refused(backbone: Backbone) -> None:
    with pytest.raises(InputError, match=r"\(1, 3, 224, 224\); expected \(B, 1, 224, 224\)"):
        backbone.image(torch.zeros(1, 3, 224, 224))


@pytest.mark.parametrize("in_eval_mode", [True, False])
def test_in_training_the_audio_encoder_may_stay_in_evaluation_mode_as_in_laion_clap(
    waveforms: Tensor, in_eval_mode: bool
) -> None:
    torch.manual_seed(0)
    tower = build_backbone("clip-clap", TINY | {"audio_in_eval_mode": in_eval_mode}).audio
    branch: Any = tower.branch
    statistics = branch.bn0.running_mean.clone()
    with torch.no_grad():
        expected = tower.eval()(waveforms).local
        found = tower.train()(waveforms).local
    assert tower.training
    assert torch.equal(found, expected) == in_eval_mode
    assert torch.equal(branch.bn0.running_mean, statistics) == in_eval_mode
