"""AdamW with separate learning rates for heads and encoders, which depend on the step only."""

from __future__ import annotations

import math

from torch.optim import AdamW

from fusili_training.loop.recipe import OptimiserOptions, Recipe
from fusili_training.model.model import FusiliModel

__all__ = ["build_optimiser", "rate_factor", "set_rates", "total_steps"]


def build_optimiser(model: FusiliModel, options: OptimiserOptions) -> AdamW:
    """Return AdamW on the trainable parameters of a model, with the model's parameter groups."""
    rates = {"heads": options.head_rate, "encoders": options.encoder_rate}
    groups = [
        {
            "params": group.parameters,
            "name": group.name,
            "lr": rates[group.name],
            "full_rate": rates[group.name],
        }
        for group in model.parameter_groups()
        if group.parameters
    ]
    return AdamW(groups, weight_decay=options.weight_decay)


def total_steps(recipe: Recipe, n_batches: int) -> int:
    """Return the number of steps of a run with `n_batches` batches per epoch."""
    steps = recipe.training.epochs * n_batches
    return min(steps, recipe.training.max_steps) if recipe.training.max_steps else steps


def rate_factor(step: int, total_steps: int, options: OptimiserOptions) -> float:
    """Return the share of the full learning rate at a step, within [0, 1].

    Parameters
    ----------
    step : int
        Step, counted from 0. In a warm-up of W steps, step 0 has 1 / W of the full rate and step W - 1 all of it.
    total_steps : int
        Number of steps of the run; a cosine schedule reaches 0 one step after the last.
    options : OptimiserOptions
    """
    if step < options.warmup_steps:
        return (step + 1) / options.warmup_steps
    if options.schedule == "constant":
        return 1.0
    n_falling = max(1, total_steps - options.warmup_steps)
    progress = min(1.0, (step - options.warmup_steps) / n_falling)
    return (1 + math.cos(math.pi * progress)) / 2


def set_rates(optimiser: AdamW, factor: float) -> dict[str, float]:
    """Set the learning rate of each group to a share of its full rate; return the rates by group."""
    for group in optimiser.param_groups:
        group["lr"] = factor * group["full_rate"]
    return {group["name"]: group["lr"] for group in optimiser.param_groups}
