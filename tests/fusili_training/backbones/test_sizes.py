"""Recipes with impossible sizes are one line, before torch builds anything."""

from __future__ import annotations

import pytest

from fusili_mir.errors import InputError
from fusili_training.loop.recipe_files import read_recipe

SMALL = "small-hybrid"


@pytest.mark.parametrize(
    "override",
    [
        "model.backbone_options.width=1000000000",
        "model.backbone_options.width=-1",
        "model.backbone_options.width=nan",
        'model.backbone_options.width="wide"',
        "model.backbone_options.stem_channels=[1, 2]",
        "model.backbone_options.stem_channels=[0, 2, 3]",
        f"model.backbone_options.audio_dilations={[1] * 300}",
        "model.backbone_options.margin_spaces=nan",
        "model.backbone_options.hop_ms=0",
        "model.backbone_options.unknown=1",
        'model.backbone="large"',
        "model.max_scale=nan",
        "data.batch_size=1000000000000",
        "data.workers=100000",
        "loss.sinkhorn_iterations=1000000000",
        "loss.recency_sec=inf",
        "optimiser.head_rate=nan",
        "training.epochs=99999999999999999999",
        "seed=99999999999999999999",
    ],
)
def test_a_value_that_cannot_work_is_one_line_when_the_recipe_is_read(override: str) -> None:
    with pytest.raises(InputError) as refused:
        read_recipe(SMALL, [override])
    assert "\n" not in str(refused.value)
    assert len(str(refused.value)) < 1500


@pytest.mark.parametrize(
    "options",
    [
        "image_heads=7",
        "audio_heads=[4, 8]",
        "audio_heads=[3, 8, 16, 32]",
        "image_layers=100000",
        "audio_width=0",
    ],
)
def test_sizes_of_the_full_backbone_that_do_not_fit_together_are_one_line(options: str) -> None:
    overrides = ['model.backbone="clip-clap"', f"model.backbone_options.{options}"]
    with pytest.raises(InputError, match=r"model\.backbone_options") as refused:
        read_recipe(SMALL, overrides)
    assert "\n" not in str(refused.value)
