"""Running a recipe: join the ranks, open the data, train; or estimate what this would take."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path

import click
import torch

from fusili_mir.folder_lock import locked_folder
from fusili_training.data.batch import Batch
from fusili_training.loop.distributed import ProcessRanks, join_ranks
from fusili_training.loop.estimate import estimate_run, noise_inputs
from fusili_training.loop.feeding import prepare
from fusili_training.loop.recipe import Recipe
from fusili_training.loop.sources import TrainingData
from fusili_training.loop.starting_model import build_starting_model
from fusili_training.loop.trainer import Trainer

__all__ = ["describe_run", "run_recipe"]

_CPU = torch.device("cpu")
_PATIENCE_SEC = 10.0  # for a run that a scheduler has stopped, and that saves its last checkpoint


def run_recipe(recipe: Recipe, folder: Path, resume: bool = False) -> str:
    """Train by a recipe in the folder of the run; return a summary in one line, or "" on other ranks."""
    data = TrainingData(recipe)
    with join_ranks(recipe.training.device) as ranks, _alone(ranks, folder, resume):
        batches, validation_batches = data.training_batches(ranks), data.validation_batches(ranks)
        if validation_batches is None and ranks.is_first:
            click.echo(
                "no validation pairs: the run will neither choose a best checkpoint nor end early", err=True
            )
        local_validation = partial(data.local_validation, ranks)
        trainer = Trainer(recipe, folder, batches, validation_batches, ranks, resume, local_validation)
        data.check_fits(trainer.objective.model)
        progress = trainer.run()
    if not ranks.is_first:
        return ""
    kept = trainer.last_path if validation_batches is None else trainer.best_path
    figures = "".join(f", {name} {value:.4f}" for name, value in progress.validation.items())
    return f"{progress.step} steps{figures} -> {kept}"


def _alone(ranks: ProcessRanks, folder: Path, resume: bool) -> AbstractContextManager[object]:
    """Hold the folder of a run: by its first rank, which writes."""
    return locked_folder(folder, _PATIENCE_SEC if resume else 0.0) if ranks.is_first else nullcontext()


def describe_run(recipe: Recipe) -> list[str]:
    """Return a description of what a run would take; without data, for pairs of a typical size."""
    n_ranks = int(os.environ.get("WORLD_SIZE", "1"))
    model = build_starting_model(recipe, load_weights=False)
    n_batches, inputs = None, noise_inputs(model)
    if recipe.data.folder:
        data = TrainingData(recipe)
        data.check_fits(model)
        batches = data.training_batches(ProcessRanks(0, 1, _CPU))
        n_batches, inputs = len(batches), prepare(_first_two(next(batches.epoch(0))), model, recipe, _CPU)
    strips, height_px, width_px = inputs.images.shape[1:]
    seconds = inputs.waveforms.shape[1] / model.audio.geometry.sample_rate_hz
    estimate = estimate_run(recipe, model, inputs, n_batches, n_ranks)
    return [
        f"recipe          {recipe.name}{f': {recipe.description}' if recipe.description else ''}",
        f"pairs           {strips} x {height_px} x {width_px} px, {seconds:g} s;"
        f" {recipe.data.batch_size} per batch, {recipe.data.batch_size // n_ranks} on each of {n_ranks} rank(s)",
        *estimate.lines(),
    ]


def _first_two(batch: Batch) -> Batch:
    """Return the first two pairs of a batch, with the padding of the whole batch."""
    return Batch(
        batch.images[:2], batch.waveforms[:2], batch.is_original[:2], batch.keys[:2], batch.truths[:2]
    )
