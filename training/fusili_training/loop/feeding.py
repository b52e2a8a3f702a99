"""Feeding batches to the objective: the source of batches, and moving them to a device."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from fusili_mir.geometry import FrameGrid
from fusili_mir.worker_process import withheld_from_workers
from fusili_training.data.batch import Batch
from fusili_training.loop.interruption import STOP_SIGNALS
from fusili_training.loop.recipe import Recipe
from fusili_training.model.model import FusiliModel
from fusili_training.model.targets import DenseTargets, dense_targets

__all__ = ["BatchSource", "Inputs", "prepare", "read_epoch"]


class BatchSource(Protocol):
    """The batches of one rank; their order depends on the seed and the number of the epoch only."""

    def __len__(self) -> int:
        """Return the number of batches per epoch, the same on every rank."""
        ...

    def epoch(self, number: int, skip: int = 0) -> Iterator[Batch]:
        """Yield the batches of an epoch, without the first `skip`."""
        ...


def read_epoch(source: BatchSource, number: int, skip: int = 0) -> Iterator[Batch]:
    """Yield the batches of an epoch, without the first `skip`.

    The first batch starts the worker processes. They do not receive the signals that stop a run: Ctrl-C, and the
    SIGTERM of most schedulers, reach all processes, but workers must go on until the step has ended.

    Starting them draws a random number, so the state of the random numbers is restored: training steps must not
    depend on where an epoch was resumed.
    """
    batches = source.epoch(number, skip)
    state = torch.get_rng_state()
    with withheld_from_workers(*STOP_SIGNALS):
        first = next(batches, None)
    torch.set_rng_state(state)
    if first is not None:
        yield first
        yield from batches


@dataclass(frozen=True)
class Inputs:
    """The arguments of `fusili_training.loop.objective.Objective`, on the device of the rank."""

    images: Tensor
    waveforms: Tensor
    is_original: Tensor | None
    targets: DenseTargets | None
    own_frames: Tensor | None = None


def prepare(batch: Batch, model: FusiliModel, recipe: Recipe, device: torch.device) -> Inputs:
    """Move a batch to a device, and compute the targets that the loss of the recipe needs."""
    is_original = batch.is_original if recipe.data.mutations == "negative" else None
    frames = model.audio.geometry.grid(batch.waveforms.shape[1])
    targets = None
    if recipe.loss.supervision == "local":
        _, n_strips, _, width_px = batch.images.shape
        targets = dense_targets(
            batch.truths,
            model.image.geometry.grid(width_px, n_strips),
            frames,
            recipe.loss.recency_sec,
        ).to(device)
    return Inputs(
        _move(batch.images, device),
        _move(batch.waveforms, device),
        None if is_original is None else _move(is_original, device),
        targets,
        _move(_own_frames(batch.own_sec, frames), device) if any(batch.own_sec) else None,
    )


def _own_frames(own_sec: Sequence[tuple[float, float] | None], frames: FrameGrid) -> Tensor:
    """Return in which frames each segment itself is heard [shape=(B, M)]."""
    middle = frames.centre(np.arange(len(frames)))
    begin, end = np.array([(-np.inf, np.inf) if own is None else own for own in own_sec]).T[:, :, None]
    return torch.from_numpy((middle >= begin) & (middle < end))


def _move(tensor: Tensor, device: torch.device) -> Tensor:
    if device.type == "cuda":
        tensor = tensor.pin_memory()
    return tensor.to(device, non_blocking=True)
