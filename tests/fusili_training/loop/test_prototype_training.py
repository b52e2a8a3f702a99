"""Runs that train only the pooling by prototypes, on top of a model with mean pooling."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from example_melodies import TINY_MODEL, MelodySource, random_melodies

from fusili_training.loop.checkpoint import (
    Checkpoint,
    Progress,
    load_checkpoint,
    load_trained_model,
    save_checkpoint,
)
from fusili_training.loop.distributed import ProcessRanks
from fusili_training.loop.recipe import DataOptions, LossOptions, Recipe, TrainingOptions, WeightsOptions
from fusili_training.loop.trainer import Trainer
from fusili_training.model.model import FusiliModel, ModelOptions

CPU = ProcessRanks(0, 1, torch.device("cpu"))
MEANS = ModelOptions("small", TINY_MODEL)


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.manual_seed(0)
    path = tmp_path_factory.mktemp("start") / "best.pt"
    save_checkpoint(
        Checkpoint(Recipe("start", model=MEANS), Progress(), FusiliModel(MEANS).state_dict()), path
    )
    return path


def build(folder: Path, start: Path, epochs: int, resume: bool = False) -> Trainer:
    recipe = Recipe(
        "pooling",
        model=replace(MEANS, pooling="prototypes"),
        weights=WeightsOptions(checkpoint=str(start), trained="global heads"),
        loss=LossOptions(memory=8),
        data=DataOptions(batch_size=4),
        training=TrainingOptions(epochs=epochs),
    )
    batches = MelodySource(random_melodies(12), 4)  # 3 per epoch
    return Trainer(recipe, folder, batches, batches, CPU, resume)


def test_only_the_pooling_learns_and_a_resumed_run_goes_on_as_if_it_had_not_stopped(
    start: Path, tmp_path: Path
) -> None:
    trainer = build(tmp_path / "whole", start, epochs=2)
    assert trainer.run().step == 6
    before, after = load_checkpoint(start).model, trainer.objective.model.state_dict()
    assert {name for name in before if not after[name].equal(before[name])} == {"logit_scale_global"}

    build(tmp_path / "parts", start, epochs=1).run()
    resumed = build(tmp_path / "parts", start, epochs=2, resume=True)
    assert resumed.objective.memory is not None
    assert resumed.objective.memory.n_filled == 8
    resumed.run()
    steps = [(tmp_path / name / "steps.csv").read_text() for name in ("whole", "parts")]
    assert steps[0] == steps[1]

    model, _ = load_trained_model(tmp_path / "whole" / "best.pt")
    assert model.pooling is not None
    assert int(model.pooling.n_followed) == 6  # without the validation batches
