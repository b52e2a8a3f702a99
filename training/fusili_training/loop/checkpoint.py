"""Checkpoints: a model, its recipe, and everything a run needs to continue as if it had never stopped.

A checkpoint is a torch file of tensors and plain values, so reading it runs no code. It is written under a
temporary name and then renamed: if the run is killed or the disk is full, the previous checkpoint remains.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

from fusili_mir import __version__
from fusili_mir.boundary import reading
from fusili_mir.dataclass_tables import read_table
from fusili_mir.errors import InputError, OutputError
from fusili_mir.whole_files import write_whole
from fusili_training.loop.recipe import Recipe
from fusili_training.loop.recipe_files import recipe_from_dict
from fusili_training.loop.weight_average import WeightAverage
from fusili_training.losses.negative_memory import NegativeMemory
from fusili_training.model.model import FusiliModel
from fusili_training.model.weights import read_checkpoint

__all__ = ["Checkpoint", "Progress", "load_checkpoint", "load_trained_model", "save_checkpoint"]

_FORMAT = 1
_RENAMED_KEYS = {  # section and key of the recipe in older checkpoints -> the key today
    ("model", "class_token_in_score"): "class_token_in_similarity",
    ("loss", "local_score"): "local_similarity",
}


@dataclass(frozen=True)
class Progress:
    """The progress of a run.

    Attributes
    ----------
    step : int
        Number of steps taken.
    epoch, n_batches : int
        Current epoch, counted from 0, and number of its batches that are done.
    best_joint : float
        Best validation so far, see `fusili_training.loop.validation.Validation.joint`.
    n_worse : int
        Number of validations since the best one.
    validation : dict of str to float
        Figures of the latest validation.
    """

    step: int = 0
    epoch: int = 0
    n_batches: int = 0
    best_joint: float = -float("inf")
    n_worse: int = 0
    validation: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Checkpoint:
    """The content of a checkpoint file.

    Attributes
    ----------
    recipe : Recipe
        Recipe of the run.
    progress : Progress
        Progress of the run.
    model : dict of str to Tensor
        State of the model.
    optimiser : dict or None
        State of the optimiser; None if training cannot continue from this checkpoint.
    random_states : list of dict of str to Tensor
        State of each rank's random numbers; empty if there is no state of the optimiser.
    memory : dict of str to Tensor or None
        State of the `fusili_training.losses.negative_memory.NegativeMemory`, if the run has one.
    average : dict of str to Tensor or None
        State of the `fusili_training.loop.weight_average.WeightAverage`, if the run has one.
    """

    recipe: Recipe
    progress: Progress
    model: dict[str, Tensor]
    optimiser: dict[str, Any] | None = None
    random_states: list[dict[str, Tensor]] = field(default_factory=list)
    memory: dict[str, Tensor] | None = None
    average: dict[str, Tensor] | None = None

    def restore_model(self, model: FusiliModel, path: Path, new_heads: bool = False) -> None:
        """Load the weights into a model of the same shape; errors name the `path`.

        With `new_heads`, global heads whose shape differs from the checkpoint keep their own weights.
        """
        own = model.state_dict()
        heads = {id(parameter) for parameter in model.global_parameters()} if new_heads else set()
        kept = {
            name: own[name]
            for name, parameter in model.named_parameters()
            if id(parameter) in heads and self.model.get(name, parameter).shape != parameter.shape
        }
        missing, extra = sorted(own.keys() - self.model.keys()), sorted(self.model.keys() - own.keys())
        if missing or extra:
            difference = f"lacks {missing[0]}" if missing else f"has {extra[0]}, which the model lacks"
            raise InputError(f"{path} does not fit the model: it {difference}; use the recipe of its run")
        for name, value in own.items():
            if name not in kept and value.shape != self.model[name].shape:
                raise InputError(
                    f"{path} does not fit the model: {name} has shape {tuple(self.model[name].shape)}; expected"
                    f" {tuple(value.shape)}"
                )
        model.load_state_dict(self.model | kept)

    def restore_optimiser(self, optimiser: Optimizer, path: Path) -> None:
        """Load the state of the optimiser; the model must have the same shape."""
        if self.optimiser is None:
            raise InputError(f"{path} holds a model only; expected last.pt, from which training can continue")
        with reading(path, "expected last.pt of a run with this recipe"):
            optimiser.load_state_dict(self.optimiser)

    def restore_memory(self, memory: NegativeMemory | None) -> None:
        """Load the memory of the run; a memory that is new or has another size stays empty."""
        if memory is None or self.memory is None:
            return
        if self.memory["numbers"].shape == memory.numbers.shape:
            memory.load_state_dict(self.memory)

    def restore_average(self, average: WeightAverage | None) -> None:
        """Load the averaged weights of the run, which has the same model."""
        if average is not None and self.average is not None:
            for name, value in self.average.items():
                average.state[name].copy_(value)


def save_checkpoint(checkpoint: Checkpoint, path: Path) -> None:
    """Write a checkpoint; an existing file is replaced only when the new one is complete."""
    content = {
        "format": _FORMAT,
        "made_by": f"fusili-mir {__version__}",
        "recipe": checkpoint.recipe.as_dict(),
        "progress": asdict(checkpoint.progress),
        "model_state_dict": checkpoint.model,
        "optimizer_state_dict": checkpoint.optimiser,
        "random_states": checkpoint.random_states,
        "memory": checkpoint.memory,
        "average": checkpoint.average,
    }
    try:
        write_whole(path, lambda file: torch.save(content, file))
    except (OutputError, RuntimeError) as error:  # torch reports a failed write as a RuntimeError
        kept = "the previous checkpoint is intact" if path.exists() else "there was none before"
        raise OutputError(
            f"{path}: this checkpoint cannot be written ({_system_error(error)}); {kept}: free some space and"
            " resume"
        ) from error


def _system_error(error: Exception) -> str:
    """Return the reason that the operating system gave."""
    cause = error.__cause__ or error.__context__
    if isinstance(cause, OSError) and cause.strerror:
        return cause.strerror
    return str(error).splitlines()[0]


def load_checkpoint(path: Path) -> Checkpoint:
    """Read one of our checkpoints."""
    content = read_checkpoint(path)
    if content.get("format") != _FORMAT:
        found = f"format {content['format']}" if "format" in content else "not a checkpoint of fusili-mir"
        raise InputError(f"{path}: {found}; expected a checkpoint of format {_FORMAT}")
    with reading(path, "expected last.pt or best.pt of a run"):
        model = content["model_state_dict"]
        if not isinstance(model, dict) or not all(isinstance(value, Tensor) for value in model.values()):
            raise InputError(
                f"{path}: its model is no table of tensors; expected last.pt or best.pt of a run"
            )
        return Checkpoint(
            recipe=recipe_from_dict(_with_current_keys(content["recipe"]), str(path)),
            progress=read_table(Progress, content["progress"], name="the progress"),
            model=model,
            optimiser=content["optimizer_state_dict"],
            random_states=content["random_states"],
            memory=content.get("memory"),  # checkpoints of earlier versions have neither this
            average=content.get("average"),  # nor this
        )


def _with_current_keys(recipe: dict[str, Any]) -> dict[str, Any]:
    """Return the recipe of a checkpoint with the keys of older versions under their present names."""
    current = {name: dict(value) if isinstance(value, dict) else value for name, value in recipe.items()}
    for (section, old), new in _RENAMED_KEYS.items():
        if old in current.get(section, {}):
            current[section][new] = current[section].pop(old)
    return current


def load_trained_model(path: Path) -> tuple[FusiliModel, Checkpoint]:
    """Build the model of one of our checkpoints, in evaluation mode."""
    checkpoint = load_checkpoint(path)
    model = FusiliModel(checkpoint.recipe.model)
    checkpoint.restore_model(model, path)
    return model.eval(), checkpoint
