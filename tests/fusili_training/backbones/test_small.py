"""The small backbone: geometry, padding, context, and that it can learn."""

import pytest
import torch
from torch import Tensor

from fusili_mir.errors import InputError
from fusili_training.backbones import Backbone, build_backbone
from fusili_training.backbones.sequence_layers import LeftContext, NeighbourBlock, trailing_mask

TINY = {"width": 24, "embedding_dim": 8, "stem_channels": (4, 6, 8)}
ATTENTIVE = TINY | {"audio_reaches": (7,), "system_reaches": (5, 7)}


@pytest.fixture(scope="module", params=[TINY, ATTENTIVE], ids=["convolutions", "attention"])
def backbone(request: pytest.FixtureRequest) -> Backbone:
    torch.manual_seed(0)
    built = build_backbone("small", request.param)
    for tower in (built.image, built.audio):
        for parameter in tower.parameters():  # blocks start as the identity
            if parameter.ndim == 2:
                torch.nn.init.normal_(parameter, std=parameter.shape[1] ** -0.5)
        tower.eval()
    return built


def strips(batch: int, n_staves: int, width_px: int, seed: int = 0) -> Tensor:
    """Five lines and random ink."""
    generator = torch.Generator().manual_seed(seed)
    images = (torch.rand(batch, n_staves, 128, width_px, generator=generator) > 0.03).float()
    images[:, :, 48:81:8] = 0.0
    return images


def noise(batch: int, n_samples: int, seed: int = 0) -> Tensor:
    return 0.1 * torch.randn(batch, n_samples, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize(("n_staves", "width_px", "n_columns"), [(1, 640, 160), (4, 101, 25), (2, 4, 1)])
def test_a_column_is_four_pixels_of_all_staves(
    backbone: Backbone, n_staves: int, width_px: int, n_columns: int
) -> None:
    tokens = backbone.image(strips(2, n_staves, width_px))
    assert tokens.local.shape == (2, n_columns, 24)
    grid = backbone.image.geometry.grid(width_px, n_staves)
    assert (grid.rows, grid.cols, grid.patch_width_px, grid.height_px) == (1, n_columns, 4, 128 * n_staves)


@pytest.mark.parametrize(("n_samples", "n_frames"), [(640, 1), (16_000 * 3 + 5, 75)])
def test_a_frame_is_forty_milliseconds(backbone: Backbone, n_samples: int, n_frames: int) -> None:
    tokens = backbone.audio(noise(2, n_samples))
    assert tokens.local.shape == (2, n_frames, 24)
    grid = backbone.audio.geometry.grid(n_samples)
    assert (grid.n_frames, grid.frame_sec) == (n_frames, 0.04)


def test_blank_paper_and_blank_staves_change_nothing(backbone: Backbone) -> None:
    images = strips(2, 2, 200)
    padded = torch.ones(2, 4, 128, 280)
    padded[:, :2, :, :200] = images
    expected, found = backbone.image(images), backbone.image(padded)
    torch.testing.assert_close(found.local[:, :50], expected.local, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(found.pooled, expected.pooled, rtol=1e-4, atol=1e-5)
    assert found.mask is not None
    assert found.mask.sum(dim=1).tolist() == [50, 50]


def test_zeros_after_the_end_change_nothing(backbone: Backbone) -> None:
    waveforms = noise(2, 640 * 30)
    padded = torch.nn.functional.pad(waveforms, (0, 640 * 20 + 7))
    expected, found = backbone.audio(waveforms), backbone.audio(padded)
    torch.testing.assert_close(found.local[:, :30], expected.local, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(found.pooled, expected.pooled, rtol=1e-4, atol=1e-5)
    assert found.mask is not None
    assert found.mask.sum(dim=1).tolist() == [30, 30]


def test_the_order_of_the_staves_does_not_matter(backbone: Backbone) -> None:
    images = strips(1, 3, 80)
    torch.testing.assert_close(backbone.image(images[:, [2, 0, 1]]).local, backbone.image(images).local)


def test_the_start_of_a_staff_reaches_its_end_but_not_the_other_way_round(backbone: Backbone) -> None:
    images = strips(1, 1, 1200)
    other_clef, other_end = images.clone(), images.clone()
    other_clef[..., 8:32] = strips(1, 1, 24, seed=1)
    other_end[..., -16:] = strips(1, 1, 16, seed=1)
    local = backbone.image(images).local
    assert (backbone.image(other_clef).local - local)[:, -1].abs().max() > 1e-5
    assert (backbone.image(other_end).local - local)[:, :100].abs().max() < 1e-6


def test_audio_frames_hear_their_surroundings_only(backbone: Backbone) -> None:
    waveforms = noise(1, 640 * 100)
    other = waveforms.clone()
    other[:, :640] = 0.3
    changed = (backbone.audio(other).local - backbone.audio(waveforms).local).abs().amax(dim=2)[0]
    assert changed[0] > 1e-3
    assert changed[40:].max() == 0


def test_left_context_averages_what_came_before() -> None:
    torch.manual_seed(0)
    layer = LeftContext(4, n_heads=1, head_width=2)
    with torch.no_grad():
        layer.requests.weight.zero_()
        layer.requests.bias.zero_()
        layer.decay.fill_(-100.0)  # no decay: a plain running mean
    features, mask = torch.randn(1, 6, 4), torch.ones(1, 6, 1)
    values = layer.values(layer.norm(features))
    means = torch.stack([values[:, : n + 1].mean(dim=1) for n in range(6)], dim=1)
    torch.testing.assert_close(layer(features, mask), features + layer.output(means))


def test_left_context_stays_finite_over_long_scores() -> None:
    torch.manual_seed(0)
    layer = LeftContext(4)
    with torch.no_grad():
        layer.decay.fill_(100.0)
    assert layer(torch.randn(1, 4000, 4), torch.ones(1, 4000, 1)).isfinite().all()


@pytest.mark.parametrize("length", [1, 4, 5, 6, 23])
def test_a_place_attends_to_the_places_within_reach(length: int) -> None:
    torch.manual_seed(0)
    block = NeighbourBlock(6, reach=5, n_heads=2, head_width=3)
    for layer in (block.output, block.shrink):
        torch.nn.init.normal_(layer.weight)
    features, mask = torch.randn(2, length, 6), torch.ones(2, length, 1)
    mask[1, (length + 1) // 2 :] = 0
    found = block(features, mask)
    normed = block.norm(features)
    for item in range(2):
        n_valid = int(mask[item].sum())
        for place in range(n_valid):
            near = range(max(0, place - 5), min(n_valid, place + 6))
            heads = []
            for head in range(2):
                own = slice(3 * head, 3 * head + 3)
                query = block.queries(normed[item, place])[own]
                logits = [
                    query @ block.keys(normed[item, other])[own] / 3**0.5
                    + block.nearness[head, other - place + 5]
                    for other in near
                ]
                weights = torch.stack(logits).softmax(dim=0)
                values = torch.stack([block.values(normed[item, other])[own] for other in near])
                heads.append(weights @ values)
            attended = features[item, place] + block.output(torch.cat(heads))
            hidden = torch.nn.functional.gelu(block.expand(block.second_norm(attended)), approximate="tanh")
            torch.testing.assert_close(found[item, place], attended + block.shrink(hidden))


def test_attention_changes_nothing_before_it_is_trained() -> None:
    features = torch.randn(2, 40, 6)
    assert torch.equal(NeighbourBlock(6, reach=8)(features, torch.ones(2, 40, 1)), features)


def test_a_reach_beyond_all_systems_is_refused() -> None:
    with pytest.raises(InputError, match="audio_reaches is 20000; expected 1 to 512"):
        build_backbone("small", {"audio_reaches": (20_000,)})


def test_squares_have_no_columns_that_attend_to_others() -> None:
    with pytest.raises(InputError, match=r"system_reaches is \(4,\) with squares"):
        build_backbone("small", {"square_px": 64, "system_reaches": (4,)})


def test_trailing_mask_by_hand() -> None:
    present = torch.tensor([[0, 1, 0, 1, 0], [0, 0, 0, 0, 0]], dtype=torch.bool)
    assert trailing_mask(present).int().tolist() == [[1, 1, 1, 1, 0], [1, 0, 0, 0, 0]]


def test_a_blank_image_and_a_silent_recording_give_numbers(backbone: Backbone) -> None:
    for tokens in (backbone.image(torch.ones(1, 2, 128, 40)), backbone.audio(torch.zeros(1, 6400))):
        assert tokens.local.isfinite().all()
        assert tokens.pooled.isfinite().all()


def test_the_default_model_has_one_to_six_million_parameters() -> None:
    built = build_backbone("small")
    n_parameters = sum(p.numel() for tower in (built.image, built.audio) for p in tower.parameters())
    assert 1_000_000 < n_parameters < 6_000_000


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ((2, 1, 100, 64), r"expected \(B, S, 128, width\)"),
        ((2, 128, 64), "expected"),
        ((1, 1, 128, 3), "expected"),
    ],
)
def test_images_of_another_shape_are_refused(
    backbone: Backbone, shape: tuple[int, ...], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        backbone.image(torch.ones(shape))


def test_audio_shorter_than_a_frame_is_refused(backbone: Backbone) -> None:
    with pytest.raises(InputError, match="waveforms of 639 samples; expected at least 640"):
        backbone.audio(torch.zeros(1, 639))


def test_unknown_options_and_backbones_are_refused() -> None:
    with pytest.raises(InputError, match=r"unknown key model.backbone_options.widht; did you mean width\?"):
        build_backbone("small", {"widht": 3})
    with pytest.raises(InputError, match="unknown backbone 'smal'; expected one of clip-clap, small"):
        build_backbone("smal")
    with pytest.raises(InputError, match="a multiple of 16 px"):
        build_backbone("small", {"staff_space_px": 7, "margin_spaces": 4.5})


def test_squares_have_the_papers_patches_in_row_major_order() -> None:
    torch.manual_seed(0)
    tower = build_backbone("small", {**TINY, "square_px": 96}).image.eval()
    blank = torch.ones(1, 1, 96, 96)
    inked = blank.clone()
    inked[:, :, 40:56, 72:88] = 0  # within the second row of patches, third column
    with torch.no_grad():
        change = (tower(inked).local - tower(blank).local).abs().amax(dim=2)[0]
    assert int(change.argmax()) == 5
    grid = tower.geometry.grid(96)
    assert (grid.rows, grid.cols, grid.patch_width_px) == (3, 3, 32)


def test_a_square_is_a_whole_number_of_patches() -> None:
    with pytest.raises(InputError, match="square_px is 100; expected a multiple of 32"):
        build_backbone("small", {"square_px": 100})
