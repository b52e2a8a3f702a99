import pytest
import torch
from example_melodies import TINY_MODEL, batch_of, random_melodies

from fusili_training.feeding import prepare
from fusili_training.model import FusiliModel, ModelOptions
from fusili_training.objective import Objective, StepOutput
from fusili_training.recipe import DataOptions, LossOptions, Recipe

CPU = torch.device("cpu")


def run(
    loss: LossOptions, data: DataOptions | None = None, **batch: list[bool]
) -> tuple[Objective, StepOutput]:
    torch.manual_seed(0)
    options = ModelOptions(backbone="small", backbone_options=TINY_MODEL, note_heads=loss.predicts_notes)
    recipe = Recipe("x", model=options, loss=loss, data=data or DataOptions(batch_size=4))
    objective = Objective(FusiliModel(options), loss)
    inputs = prepare(batch_of(random_melodies(4), **batch), objective.model, recipe, CPU)
    return objective, objective(inputs.images, inputs.waveforms, inputs.is_original, inputs.targets)


@pytest.mark.parametrize(
    ("loss", "terms"),
    [
        (LossOptions(alpha=0.0), {"global"}),
        (LossOptions(alpha=1.0), {"local"}),
        (LossOptions(alpha=0.5, local_score="cosine"), {"local", "global"}),
        (LossOptions(alpha=0.0, supervision="local"), {"global", "alignment", "notes"}),
        (LossOptions(alpha=1.0, supervision="local", note_weight=0.0), {"local", "alignment"}),
    ],
)
def test_every_trained_parameter_gets_a_gradient_and_no_other(loss: LossOptions, terms: set[str]) -> None:
    objective, output = run(loss)
    assert set(output.terms) == terms
    output.loss.backward()
    for name, parameter in objective.named_parameters():
        assert (parameter.grad is not None) == parameter.requires_grad, name


def test_the_loss_is_the_weighted_sum_of_its_terms() -> None:
    loss = LossOptions(alpha=0.25, supervision="local", alignment_weight=2.0, note_weight=3.0)
    _, output = run(loss)
    weights = {"local": 0.25, "global": 0.75, "alignment": 2.0, "notes": 3.0}
    expected = sum(weights[name] * term.item() for name, term in output.terms.items())
    assert output.loss.item() == pytest.approx(expected, rel=1e-5)


def test_mutants_are_candidates_only_when_mutations_are_negative() -> None:
    flags = [True, True, True, False]
    losses = {
        mutations: run(LossOptions(), DataOptions(batch_size=4, mutations=mutations), is_original=flags)[
            1
        ].loss
        for mutations in ("none", "positive", "negative")
    }
    assert losses["none"] == losses["positive"]
    assert losses["none"] != losses["negative"]
