"""The model that a run starts with."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import torch

from fusili_mir.errors import InputError, option
from fusili_training.loop.checkpoint import Checkpoint, load_checkpoint
from fusili_training.loop.recipe import Recipe, WeightsOptions
from fusili_training.model.bundle_weights import load_bundle_weights
from fusili_training.model.model import FusiliModel
from fusili_training.model.prototype_pooling import PrototypePooling
from fusili_training.model.weights import (
    download_clip_weights,
    is_released_checkpoint,
    load_clap_weights,
    load_clip_weights,
    load_released_checkpoint,
    load_state_dict,
)

__all__ = ["build_starting_model"]


def build_starting_model(recipe: Recipe, load_weights: bool = True) -> FusiliModel:
    """Build the model of a recipe.

    Parameters
    ----------
    recipe : Recipe
        Recipe whose seed determines the random weights.
    load_weights : bool
        Whether to load the weights that the recipe names; not needed if a checkpoint of this run is loaded next.
    """
    torch.manual_seed(recipe.seed)
    model = FusiliModel(recipe.model)
    if load_weights:
        _load(model, recipe.weights)
    if recipe.weights.pretrained_image:
        model.image.freeze_pretrained()
    if recipe.weights.trained == "global heads":
        model.requires_grad_(False)
        for parameter in model.global_parameters():
            parameter.requires_grad_(True)
    for tower in (model.image, model.audio):
        tower.set_gradient_checkpointing(recipe.training.gradient_checkpointing)
    return model


def _load(model: FusiliModel, weights: WeightsOptions) -> None:
    if weights.trained == "global heads" and not weights.checkpoint:
        raise InputError(
            'weights.trained is "global heads" and weights.checkpoint is empty; expected a trained model to start'
            f" with: {_override('weights.checkpoint')}"
        )
    if weights.clip == "download":
        download_clip_weights(model)
    elif weights.clip != "random":
        load_clip_weights(model, _existing("weights.clip", weights.clip))
    if weights.clap != "random":
        load_clap_weights(model, _existing("weights.clap", weights.clap))
    if weights.checkpoint:
        if Path(weights.checkpoint).is_dir():
            load_bundle_weights(model, Path(weights.checkpoint))
            return
        path = _existing("weights.checkpoint", weights.checkpoint)
        if is_released_checkpoint(load_state_dict(path)):
            load_released_checkpoint(model, path)
        else:
            only_heads = weights.trained == "global heads"
            checkpoint = load_checkpoint(path)
            if only_heads and model.pooling is not None:
                checkpoint = _with_pooling(checkpoint, model.pooling)
            checkpoint.restore_model(model, path, new_heads=only_heads)


def _with_pooling(checkpoint: Checkpoint, pooling: PrototypePooling) -> Checkpoint:
    """Return a checkpoint with this pooling added, unless it has its own of the same size."""
    new = {f"pooling.{name}": value for name, value in pooling.state_dict().items()}
    fits = all(
        checkpoint.model[name].shape == new[name].shape for name in new.keys() & checkpoint.model.keys()
    )
    return replace(checkpoint, model=new | checkpoint.model if fits else checkpoint.model | new)


def _override(key: str) -> str:
    return option(f"--override {key}=PATH", f'the override "{key}=PATH"')


def _existing(key: str, name: str) -> Path:
    path = Path(name)
    if not path.is_file():
        choice = "" if key == "weights.checkpoint" else f", or {key}=random to start without it"
        raise InputError(
            f"{key} is {name}, but there is no such file; give its path with {_override(key)}{choice}"
        )
    return path
