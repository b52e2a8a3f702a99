"""Loading checkpoints to export: ours and those of the paper's released code, recognised by their content."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from fusili_mir.errors import InputError, option
from fusili_training.loop.checkpoint import load_trained_model
from fusili_training.loop.recipe import Recipe
from fusili_training.model.model import FusiliModel, Heads, ModelOptions
from fusili_training.model.weights import (
    RELEASED_KEYS,
    is_released_checkpoint,
    load_released_checkpoint,
    load_state_dict,
    read_checkpoint,
)

__all__ = ["TrainedModel", "load_trained"]


@dataclass(frozen=True)
class TrainedModel:
    """A trained model, and what is known about its training.

    Attributes
    ----------
    model : FusiliModel
        The model in evaluation mode.
    heads : "local" or "global"
        The heads that embed its local features.
    name : str
    recipe : dict
        Recipe of the run; of paths, only the last component is kept.
    data_folder : str
        Folder of the training pairs; "" if unknown.
    quality : dict
        Figures of the last validation, if there was one.
    sha256 : str
        Checksum of the checkpoint file.
    """

    model: FusiliModel
    heads: Heads
    name: str
    recipe: dict[str, Any]
    data_folder: str
    quality: dict[str, Any]
    sha256: str

    @property
    def scale(self) -> float:
        """The learned scale of the cosines, for these heads."""
        scale = self.model.logit_scale_local if self.heads == "local" else self.model.logit_scale_global
        return float(scale.detach().exp())


def load_trained(
    path: Path, heads: Heads | None = None, released_model: ModelOptions | None = None
) -> TrainedModel:
    """Load a checkpoint; no code in the file is run.

    Parameters
    ----------
    path : Path
        A checkpoint of ours, or one of the paper's released code.
    heads : "local" or "global", optional
        The heads that embed local features. By default the local heads, or the global heads if the recipe trained
        no local heads. In released checkpoints, which have no recipe, the weights that are there tell.
    released_model : ModelOptions, optional
        Model of a released checkpoint; by default that of the paper.
    """
    content = read_checkpoint(path)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    if "recipe" in content:
        return _load_ours(path, heads, digest)
    state = load_state_dict(path)
    if not is_released_checkpoint(state):
        lacking = next(key for key in RELEASED_KEYS if not any(name.startswith(key) for name in state))
        raise InputError(
            f"{path} is neither a checkpoint of fusili-mir (it has no recipe) nor of the paper's released code"
            f" (it has no weights {lacking}*); expected best.pt or last.pt of a run"
        )
    model = FusiliModel(released_model or ModelOptions("clip-clap"))
    parts = load_released_checkpoint(model, path)
    recipe: dict[str, Any] = {"layout": "the paper's released code", "loss": {"alpha": parts.alpha}}
    if isinstance(content.get("epoch"), int):
        recipe["epoch"] = content["epoch"]
    quality = {}
    if isinstance(content.get("val_loss"), float):
        quality["validation_loss"] = content["val_loss"]
    if heads == "local" and not parts.local_heads:
        raise InputError(f"{path} was trained without local heads; leave out {option('--heads', 'heads')}")
    own_heads: Heads = "local" if parts.local_heads else "global"
    return TrainedModel(model.eval(), heads or own_heads, path.stem, recipe, "", quality, digest)


def _load_ours(path: Path, heads: Heads | None, digest: str) -> TrainedModel:
    model, checkpoint = load_trained_model(path)
    recipe = checkpoint.recipe
    if heads == "global" and recipe.model.pooling == "prototypes":
        raise InputError(
            f"{path} pools by prototypes, so it has no global heads for local features; "
            f"leave out {option('--heads', 'heads')}"
        )
    quality: dict[str, Any] = {}
    if checkpoint.progress.validation:
        quality["validation"] = dict(checkpoint.progress.validation)
    return TrainedModel(
        model=model,
        heads=heads or ("local" if recipe.loss.trains_local_heads else "global"),
        name=recipe.name,
        recipe=_without_paths(recipe) | {"steps": checkpoint.progress.step},
        data_folder=recipe.data.folder,
        quality=quality,
        sha256=digest,
    )


def _without_paths(recipe: Recipe) -> dict[str, Any]:
    """Return a recipe as plain values, without the folders of the machine that it was trained on."""
    plain = recipe.as_dict()
    plain["data"]["folder"] = PurePosixPath(recipe.data.folder).name
    plain["weights"] = {key: PurePosixPath(value).name for key, value in plain["weights"].items()}
    return plain
