import pytest
import torch
from example_melodies import TINY_MODEL

from fusili_mir.errors import InputError
from fusili_training.loop.recipe import OptimiserOptions
from fusili_training.loop.weight_average import WeightAverage
from fusili_training.model.model import FusiliModel, ModelOptions

SCALE = "logit_scale_local"


def small_model() -> FusiliModel:
    return FusiliModel(ModelOptions(backbone="small", backbone_options=TINY_MODEL))


def set_scale(model: FusiliModel, value: float) -> None:
    with torch.no_grad():
        model.get_parameter(SCALE).fill_(value)


def test_the_average_moves_by_what_is_not_kept() -> None:
    model = small_model()
    set_scale(model, 0.0)
    average = WeightAverage(model, decay=0.9)
    set_scale(model, 1.0)
    average.update(model, n_steps=1)  # keeps 2 / 11 so early
    assert average.state[SCALE].item() == pytest.approx(9 / 11)
    average.update(model, n_steps=1000)  # keeps 0.9
    assert average.state[SCALE].item() == pytest.approx(1 - 0.9 * 2 / 11)


def test_counts_are_not_averaged() -> None:
    model = small_model()
    average = WeightAverage(model, decay=0.9)
    counts = [name for name, value in model.state_dict().items() if not value.is_floating_point()]
    assert counts
    for name in counts:
        model.state_dict()[name].fill_(7)
    average.update(model, n_steps=100)
    assert {average.state[name].item() for name in counts} == {7}


def test_a_model_has_the_average_for_a_while_and_then_its_own_weights() -> None:
    model = small_model()
    set_scale(model, 2.0)
    average = WeightAverage(model, decay=0.5)
    set_scale(model, 5.0)
    with average.in_place_of_weights(model):
        assert model.get_parameter(SCALE).item() == 2.0
    assert model.get_parameter(SCALE).item() == 5.0
    assert average.state[SCALE].item() == 2.0


@pytest.mark.parametrize("decay", [-0.1, 1.0, float("nan")])
def test_a_share_that_keeps_everything_or_less_than_nothing_is_refused(decay: float) -> None:
    with pytest.raises(InputError, match="average_decay"):
        OptimiserOptions(average_decay=decay)
