"""What a run will need, estimated before it starts: parameters, memory, steps.

The memory for weights, gradients and optimiser is counted. The memory for activations is measured, as the peak of
a forward and backward pass on two pairs and of the local similarity on a few, and scaled up to the batch.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from fusili_training.loop.feeding import Inputs
from fusili_training.loop.live_memory import LiveMemory
from fusili_training.loop.objective import Objective
from fusili_training.loop.optimiser import total_steps
from fusili_training.loop.recipe import Recipe
from fusili_training.losses.denormals import flushed_denormals
from fusili_training.losses.losses import ContrastiveLoss
from fusili_training.model.model import FusiliModel

__all__ = ["Estimate", "estimate_run", "noise_inputs"]

_NUMBER_BYTES = 4
_DEFAULT_SEC = 20.0
_DEFAULT_STRIPS, _DEFAULT_WIDTH_PX = 2, 512


@dataclass(frozen=True)
class Estimate:
    """What a run needs on each rank.

    Attributes
    ----------
    n_parameters, n_head_parameters, n_encoder_parameters : int
        Number of all parameters, and of the trained parameters of the heads and of the encoders.
    state_bytes : int
        Weights, gradients and the two moments of AdamW, in float32.
    activation_bytes : int
        Activations in float32; about half of it under bfloat16 autocast.
    similarity_bytes : int
        Local similarity of this rank's images to all recordings.
    n_batches, n_steps : int or None
        Steps per epoch and steps of the run; None if the data is unknown.
    """

    n_parameters: int
    n_head_parameters: int
    n_encoder_parameters: int
    state_bytes: int
    activation_bytes: int
    similarity_bytes: int
    n_batches: int | None
    n_steps: int | None

    def lines(self) -> list[str]:
        """Return the estimate for people to read."""
        full = self.state_bytes + self.activation_bytes + self.similarity_bytes
        mixed = full - self.activation_bytes // 2
        steps = "unknown without data (--data)"
        if self.n_steps is not None:
            steps = f"{self.n_steps:,} ({self.n_batches:,} per epoch)"
        return [
            f"parameters      {self.n_parameters:,} (trained: {self.n_head_parameters:,} in the heads,"
            f" {self.n_encoder_parameters:,} in the encoders)",
            f"memory per rank {_gb(full)} in float32, about {_gb(mixed)} under bfloat16 autocast"
            f" (weights and optimiser {_gb(self.state_bytes)}, activations {_gb(self.activation_bytes)},"
            f" local similarity {_gb(self.similarity_bytes)})",
            f"steps           {steps}",
        ]


def estimate_run(
    recipe: Recipe, model: FusiliModel, inputs: Inputs, n_batches: int | None, n_ranks: int = 1
) -> Estimate:
    """Estimate what a run needs.

    Parameters
    ----------
    recipe : Recipe
        Recipe of the run.
    model : FusiliModel
        The model that the run starts with; its batch statistics change, and heads that the loss never reaches are
        frozen.
    inputs : Inputs
        Two pairs of the size to plan for, on the CPU.
    n_batches : int or None
        Batches per epoch, if known.
    n_ranks : int
        Number of ranks that share a batch.
    """
    objective = Objective(model, recipe.loss).train()
    groups = {group.name: sum(p.numel() for p in group.parameters) for group in model.parameter_groups()}
    n_parameters = sum(p.numel() for p in model.parameters())
    batch = recipe.data.batch_size // n_ranks

    trained = [p for p in model.parameters() if p.requires_grad]
    for parameter in trained:
        parameter.grad = torch.zeros_like(parameter)
    gradients = [p.grad for p in trained if p.grad is not None]
    memory = LiveMemory([*model.parameters(), *model.buffers(), *gradients])
    with flushed_denormals(), memory:
        output = objective(inputs.images, inputs.waveforms, inputs.is_original, inputs.targets)
        output.loss.backward()
    model.zero_grad(set_to_none=True)
    n_patches, n_frames = output.encoded.images.local.shape[1], output.encoded.recordings.local.shape[1]
    return Estimate(
        n_parameters=n_parameters,
        n_head_parameters=groups["heads"],
        n_encoder_parameters=groups["encoders"],
        state_bytes=_NUMBER_BYTES * (n_parameters + 3 * sum(groups.values())),
        activation_bytes=memory.peak_bytes * batch // len(inputs.images),
        similarity_bytes=_similarity_bytes(
            objective.contrastive, n_patches, n_frames, batch * recipe.data.batch_size
        ),
        n_batches=n_batches,
        n_steps=None if n_batches is None else total_steps(recipe, n_batches),
    )


def noise_inputs(model: FusiliModel) -> Inputs:
    """Return two pairs of noise for a model; where the size is free, two strips of 512 px and 20 s."""
    image, audio = model.image.geometry, model.audio.geometry
    n_strips = image.max_strips or _DEFAULT_STRIPS
    n_samples = int(_DEFAULT_SEC * audio.sample_rate_hz)
    return Inputs(
        torch.rand(2, n_strips, image.height_px, image.width_px or _DEFAULT_WIDTH_PX),
        torch.rand(2, n_samples) - 0.5,
        None,
        None,
    )


def _similarity_bytes(loss: ContrastiveLoss, n_patches: int, n_frames: int, n_pairs: int) -> int:
    """Extrapolate the peak of the local similarity from 2 x 2 and 4 x 4 pairs."""
    if loss.alpha == 0:
        return 0
    few, more = (_measure_similarity(loss, side, n_patches, n_frames) for side in (2, 4))
    return few + max(0, more - few) * (n_pairs - 4) // 12


def _measure_similarity(loss: ContrastiveLoss, side: int, n_patches: int, n_frames: int) -> int:
    patches = torch.randn(side, n_patches, 8, requires_grad=True)
    frames = torch.randn(side, n_frames, 8, requires_grad=True)
    memory = LiveMemory([patches, frames])
    with flushed_denormals(), memory:
        similarities: Tensor = loss.local_similarity(patches, frames, torch.tensor(10.0))
        similarities.sum().backward()  # type: ignore[no-untyped-call]
    return memory.peak_bytes


def _gb(n_bytes: int) -> str:
    return f"{n_bytes / 1e9:.2f} GB"
