"""The receptive field of the small audio tower, from its layers and by experiment."""

import pytest
import torch
from torch import nn

from fusili_export.receptive_field import context_sec
from fusili_training.backbones.sequence_layers import NeighbourBlock
from fusili_training.backbones.small import FrameTower, SmallOptions


def lively_tower(**options: object) -> FrameTower:
    torch.manual_seed(0)
    tower = FrameTower(SmallOptions(width=16, embedding_dim=8, **options)).eval()  # type: ignore[arg-type]
    for layer in tower.modules():  # blocks start as the identity
        if isinstance(layer, nn.Linear):
            nn.init.normal_(layer.weight, std=layer.in_features**-0.5)
        if isinstance(layer, NeighbourBlock):  # which looks at what is near, at first
            nn.init.zeros_(layer.nearness)
    return tower


def test_reach_is_the_sum_over_the_layers() -> None:
    # 1 frame for the first convolution, 3 for each step of dilation of a block, 2.5 for windows of 6 hops
    assert context_sec(lively_tower()) == pytest.approx((1 + 3 * (1 + 2 + 1 + 2) + 2.5) * 0.04)
    assert context_sec(lively_tower(audio_dilations=(1,))) == pytest.approx((1 + 3 + 2.5) * 0.04)
    attentive = lively_tower(audio_dilations=(1,), audio_reaches=(4, 9))
    assert context_sec(attentive) == pytest.approx((1 + 3 + 4 + 9 + 2.5) * 0.04)


@pytest.mark.parametrize(("dilations", "reaches"), [((1,), ()), ((1, 2, 1, 2), ()), ((1,), (3, 7))])
def test_a_frame_sees_sound_within_reach_and_none_beyond(
    dilations: tuple[int, ...], reaches: tuple[int, ...]
) -> None:
    tower = lively_tower(audio_dilations=dilations, audio_reaches=reaches)
    hop = tower.geometry.frame_samples
    reach = round(context_sec(tower) * tower.geometry.sample_rate_hz)
    frame, n_frames = 40, 81
    before, after = frame * hop - reach, (frame + 1) * hop + reach
    waveform = 0.1 * torch.randn(1, n_frames * hop)
    beyond, within = waveform.clone(), waveform.clone()
    beyond[:, :before] *= -2
    beyond[:, after:] *= -2
    # The outermost samples of a window have almost no weight; those within a quarter of a hop have an effect,
    # or within half a hop where attention spreads it.
    within[:, : before + hop // (2 if reaches else 4)] *= -2
    with torch.no_grad():
        expected, same, other = (tower(sound).local[0] for sound in (waveform, beyond, within))
    torch.testing.assert_close(same[frame], expected[frame], rtol=0, atol=1e-6)
    assert not torch.allclose(same[frame - 1], expected[frame - 1], rtol=0, atol=1e-6)
    assert not torch.allclose(same[frame + 1], expected[frame + 1], rtol=0, atol=1e-6)
    assert not torch.allclose(other[frame], expected[frame], rtol=0, atol=1e-6)
