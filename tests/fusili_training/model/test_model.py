"""The model around the towers: heads, scales, trained parameters and their learning rates."""

import math

import pytest
import torch

from fusili_mir.errors import InputError
from fusili_training.losses.local_similarity import choose_local_similarity
from fusili_training.losses.losses import ContrastiveLoss
from fusili_training.model.model import FusiliModel, ModelOptions

SMALL = {"width": 16, "embedding_dim": 8, "stem_channels": (4, 4, 4)}
CLIP_CLAP = {
    "embedding_dim": 16,
    "image_width": 32,
    "image_layers": 1,
    "image_heads": 2,
    "audio_width": 8,
    "audio_depths": (1, 1, 1, 1),
    "audio_heads": (1, 1, 1, 1),
}


def small_model(**changes: object) -> FusiliModel:
    torch.manual_seed(0)
    return FusiliModel(ModelOptions("small", SMALL, **changes))  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def clip_clap() -> FusiliModel:
    torch.manual_seed(0)
    return FusiliModel(ModelOptions("clip-clap", CLIP_CLAP, initial_scale=1 / 0.07))


def batch(n_pairs: int = 3) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    images = (torch.rand(n_pairs, 2, 128, 64, generator=generator) > 0.1).float()
    return images, 0.1 * torch.randn(n_pairs, 6400, generator=generator)


def test_all_embeddings_have_length_one() -> None:
    output = small_model()(*batch())
    for embeddings in (output.images, output.recordings):
        for tensor in (embeddings.local, embeddings.pooled):
            torch.testing.assert_close(tensor.norm(dim=-1), torch.ones(tensor.shape[:-1]))
    assert output.images.local.shape == (3, 16, 8)
    assert output.recordings.local.shape == (3, 10, 8)


def test_the_class_token_is_compared_in_training_and_no_patch_otherwise(clip_clap: FusiliModel) -> None:
    images, waveforms = torch.rand(2, 1, 224, 224), 0.1 * torch.randn(2, 960_000)
    clip_clap.eval()
    with torch.no_grad():
        training = clip_clap(images, waveforms)
        evaluation = clip_clap.encode_images(images)
    assert training.images.local.shape == (2, 50, 16)
    torch.testing.assert_close(training.images.local[:, 1:], evaluation.local)
    torch.testing.assert_close(training.patches, evaluation.local)
    torch.testing.assert_close(training.images.pooled, evaluation.pooled)


@pytest.mark.parametrize("normalised", [True, False])
def test_the_global_audio_embedding_is_the_mean_over_the_halves(
    clip_clap: FusiliModel, normalised: bool
) -> None:
    waveforms = 0.1 * torch.randn(1, 960_000, generator=torch.Generator().manual_seed(1))
    waveforms[:, 480_000:] *= 0.01
    clip_clap.eval()
    assert clip_clap.audio.normalise_parts  # as laion_clap does
    clip_clap.audio.normalise_parts = normalised
    with torch.no_grad():
        halves = clip_clap.audio(waveforms.reshape(2, 480_000)).pooled[:, 0]
        projected = clip_clap.audio.project_global(halves)
        if normalised:
            projected = projected / projected.norm(dim=-1, keepdim=True)
        found = clip_clap.encode_recordings(waveforms).pooled[0]
    clip_clap.audio.normalise_parts = True
    mean = projected.mean(dim=0)
    torch.testing.assert_close(found, mean / mean.norm())


def test_local_features_can_go_through_the_global_heads() -> None:
    model = small_model().eval()
    images, waveforms = batch()
    with torch.no_grad():
        for tower, encode, inputs in (
            (model.image, model.encode_images, images),
            (model.audio, model.encode_recordings, waveforms),
        ):
            expected = torch.nn.functional.normalize(tower.project_global(tower(inputs).local), dim=-1)
            torch.testing.assert_close(encode(inputs, heads="global").local, expected)
            assert not torch.allclose(encode(inputs).local, expected)


def test_the_scales_start_and_stay_within_their_limits() -> None:
    model = small_model(initial_scale=1 / 0.07, max_scale=30.0)
    assert model.logit_scale_local.item() == pytest.approx(math.log(1 / 0.07))
    with torch.no_grad():
        model.logit_scale_local.fill_(9.0)
        model.logit_scale_global.fill_(-1.0)
    model.clamp_scales()
    assert model.logit_scale_local.exp().item() == pytest.approx(30.0)
    assert model.logit_scale_global.item() == 0.0


@pytest.mark.parametrize("alpha", [0.0, 0.5, 1.0])
def test_every_parameter_that_is_not_frozen_learns(alpha: float) -> None:
    model = small_model()
    model.freeze_unused(alpha)
    output = model(*batch())
    loss = ContrastiveLoss(alpha, choose_local_similarity("fusili"))
    loss(output.images, output.recordings, output.local_scale, output.global_scale).total.backward()
    assert [n for n, p in model.named_parameters() if p.requires_grad and p.grad is None] == []
    assert [n for n, p in model.named_parameters() if not p.requires_grad and p.grad is not None] == []


@pytest.mark.parametrize(("backbone", "sizes"), [("small", SMALL), ("clip-clap", CLIP_CLAP)])
@pytest.mark.parametrize("alpha", [0.5, 1.0])
def test_with_prototypes_every_parameter_that_is_not_frozen_learns(
    backbone: str, sizes: dict[str, object], alpha: float
) -> None:
    torch.manual_seed(0)
    model = FusiliModel(ModelOptions(backbone, sizes, pooling="prototypes"))
    model.freeze_unused(alpha)
    squares = torch.rand(2, 1, 224, 224), 0.1 * torch.randn(2, 960_000)
    output = model(*(batch() if backbone == "small" else squares))
    loss = ContrastiveLoss(alpha, choose_local_similarity("fusili"))
    loss(output.images, output.recordings, output.local_scale, output.global_scale).total.backward()
    for name, parameter in model.named_parameters():
        assert (parameter.grad is not None) == parameter.requires_grad, name
    heads, _ = model.parameter_groups()
    weight = model.pooling.projection.weight  # type: ignore[union-attr]
    assert any(parameter is weight for parameter in heads.parameters) == (alpha < 1)
    assert any(parameter is weight for parameter in model.global_parameters())


def test_prototypes_pool_local_embeddings_without_class_token_and_padding() -> None:
    for sizes, inputs in ((CLIP_CLAP, torch.rand(2, 1, 224, 224)), (SMALL, batch()[0])):
        backbone = "small" if sizes is SMALL else "clip-clap"
        model = FusiliModel(ModelOptions(backbone, sizes, pooling="prototypes")).eval()
        assert model.pooling is not None
        waveforms = batch()[1] if sizes is SMALL else torch.zeros(2, 480_000)
        with torch.no_grad():
            images = model.encode_images(inputs)
            expected = model.pooling(images.local, images.mask, "image")
            torch.testing.assert_close(images.pooled, expected)
            torch.testing.assert_close(model(inputs, waveforms).images.pooled, expected)
            if sizes is SMALL:
                padded = torch.nn.functional.pad(inputs, (0, 32), value=1.0)
                torch.testing.assert_close(model.encode_images(padded).pooled, expected)


def test_prototypes_leave_no_global_heads_for_local_features() -> None:
    model = small_model(pooling="prototypes")
    with pytest.raises(InputError, match="has no global heads for local features"):
        model.encode_images(batch()[0], heads="global")


def test_heads_and_encoders_of_clip_clap_learn_at_their_own_rates(clip_clap: FusiliModel) -> None:
    names = {id(p): name for name, p in clip_clap.named_parameters()}
    heads, encoders = ({names[id(p)] for p in group.parameters} for group in clip_clap.parameter_groups())
    assert heads == {
        "image_head.weight",
        "image_head.bias",
        "audio_head.weight",
        "audio_head.bias",
        "image.visual.proj",
        "image.visual.class_embedding",
        "image.visual.ln_post.weight",
        "image.visual.ln_post.bias",
        "audio.projection.0.weight",
        "audio.projection.0.bias",
        "audio.projection.2.weight",
        "audio.projection.2.bias",
        "logit_scale_local",
        "logit_scale_global",
    }
    trainable = {name for name, p in clip_clap.named_parameters() if p.requires_grad}
    assert encoders == trainable - heads
    assert not {name for name in encoders if "tscam_conv" in name or "melW" in name}


def test_note_heads_are_there_on_request_only() -> None:
    assert small_model().note_heads is None
    heads = small_model(note_heads=True).note_heads
    assert heads is not None
    assert heads.patch_pitches.in_features == 16


def test_impossible_scales_are_refused() -> None:
    with pytest.raises(InputError, match="1 <= initial_scale <= max_scale"):
        ModelOptions("small", initial_scale=50.0, max_scale=30.0)
