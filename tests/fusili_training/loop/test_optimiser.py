import pytest
import torch
from example_melodies import TINY_MODEL

from fusili_training.loop.optimiser import build_optimiser, rate_factor, set_rates, total_steps
from fusili_training.loop.recipe import OptimiserOptions, Recipe, TrainingOptions
from fusili_training.model.model import FusiliModel, ModelOptions


@pytest.fixture
def model() -> FusiliModel:
    return FusiliModel(ModelOptions(backbone="small", backbone_options=TINY_MODEL))


def test_heads_and_scales_learn_ten_times_as_fast_as_the_encoders(model: FusiliModel) -> None:
    optimiser = build_optimiser(model, OptimiserOptions())
    rates = {id(p): group["lr"] for group in optimiser.param_groups for p in group["params"]}
    assert rates[id(model.image_head.weight)] == 2e-4
    assert rates[id(model.logit_scale_local)] == 2e-4
    assert rates[id(next(model.audio.blocks.parameters()))] == 2e-5  # type: ignore[union-attr]
    assert len(rates) == len(list(model.parameters()))
    assert all(group["weight_decay"] == 0.01 for group in optimiser.param_groups)


def test_frozen_parameters_are_left_alone(model: FusiliModel) -> None:
    model.image_head.requires_grad_(False)
    optimiser = build_optimiser(model, OptimiserOptions())
    held = {id(p) for group in optimiser.param_groups for p in group["params"]}
    assert id(model.image_head.weight) not in held


def test_the_rate_grows_in_the_warm_up_and_then_stays() -> None:
    options = OptimiserOptions(warmup_steps=4)
    assert [rate_factor(step, 100, options) for step in (0, 1, 3, 4, 99)] == [0.25, 0.5, 1, 1, 1]


def test_the_cosine_falls_to_half_in_the_middle_and_to_nothing_at_the_end() -> None:
    options = OptimiserOptions(warmup_steps=10, schedule="cosine")
    assert rate_factor(10, 110, options) == 1
    assert rate_factor(60, 110, options) == pytest.approx(0.5)
    assert rate_factor(110, 110, options) == pytest.approx(0)


def test_setting_rates_twice_does_not_compound(model: FusiliModel) -> None:
    optimiser = build_optimiser(model, OptimiserOptions())
    set_rates(optimiser, 0.5)
    assert set_rates(optimiser, 0.5) == {"heads": 1e-4, "encoders": 1e-5}


@pytest.mark.parametrize(("max_steps", "expected"), [(0, 60), (25, 25), (100, 60)])
def test_a_run_ends_after_its_epochs_or_its_steps(max_steps: int, expected: int) -> None:
    recipe = Recipe("x", training=TrainingOptions(epochs=3, max_steps=max_steps))
    assert total_steps(recipe, n_batches=20) == expected


def test_scales_stay_within_their_limits(model: FusiliModel) -> None:
    with torch.no_grad():
        model.logit_scale_local.fill_(99.0)
        model.logit_scale_global.fill_(-1.0)
    model.clamp_scales()
    assert model.logit_scale_local.exp().item() == pytest.approx(100)
    assert model.logit_scale_global.exp().item() == 1
