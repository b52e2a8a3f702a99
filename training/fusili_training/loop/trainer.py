"""The training loop: steps, validations and checkpoints, on one rank or many.

The folder of a run contains ``last.pt`` (to resume from), ``best.pt`` (the model with the best validation, with
averaged weights if the recipe asks for them), ``recipe.json``, ``steps.csv``, ``validations.csv`` and
``tensorboard/``. A run that was killed and resumed writes the same figures as an uninterrupted one.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor
from torch.nn.utils import clip_grads_with_norm_, get_total_norm

from fusili_mir.errors import InputError, OutputError, option
from fusili_mir.progress import Count, counted
from fusili_training.data.batch import Batch
from fusili_training.data.loader import worker_deaths_told
from fusili_training.loop.checkpoint import Checkpoint, Progress, load_checkpoint, save_checkpoint
from fusili_training.loop.distributed import ProcessRanks
from fusili_training.loop.feeding import BatchSource, prepare, read_epoch
from fusili_training.loop.interruption import StopRequest, TrainingInterruptedError, watch_for_stop
from fusili_training.loop.logs import RunLogs, save_text
from fusili_training.loop.objective import TERMS, Objective
from fusili_training.loop.optimiser import build_optimiser, rate_factor, set_rates, total_steps
from fusili_training.loop.precision import autocast
from fusili_training.loop.random_states import random_state, set_random_state
from fusili_training.loop.recipe import Recipe
from fusili_training.loop.resuming import check_same_run
from fusili_training.loop.starting_model import build_starting_model
from fusili_training.loop.validation import validate
from fusili_training.loop.weight_average import WeightAverage
from fusili_training.losses.denormals import flushed_denormals
from fusili_training.losses.negative_memory import pair_numbers
from fusili_training.model.model import FusiliModel

__all__ = ["STEP_COLUMNS", "VALIDATION_COLUMNS", "Trainer"]

STEP_COLUMNS = (
    "step",
    "epoch",
    "loss",
    *(f"{term}_loss" for term in TERMS),
    "gradient_norm",
    "local_scale",
    "global_scale",
    "heads_rate",
    "encoders_rate",
)
VALIDATION_COLUMNS = ("step", "epoch", "loss", "local_top1", "joint")


class Trainer:
    """One run of one recipe.

    Parameters
    ----------
    recipe : Recipe
        Recipe of the run.
    folder : Path
        Folder of the run; created if it does not exist.
    batches : BatchSource
        This rank's part of the training batches.
    validation_batches : BatchSource or None
        This rank's part of the validation batches; without them the run neither chooses a best checkpoint nor
        ends early.
    ranks : ProcessRanks
        This process among those that train together.
    resume : bool
        Whether to continue the run in this folder, if there is one.
    local_validation : callable, optional
        Returns the batches that give the local top-1 of a validation, for the model of the run; None: those of
        the validation itself.
    """

    def __init__(
        self,
        recipe: Recipe,
        folder: Path,
        batches: BatchSource,
        validation_batches: BatchSource | None,
        ranks: ProcessRanks,
        resume: bool = False,
        local_validation: Callable[[FusiliModel], Iterable[Batch] | None] | None = None,
    ) -> None:
        self.recipe, self.folder, self.ranks = recipe, folder, ranks
        self.batches, self.validation_batches = batches, validation_batches
        self.total_steps = total_steps(recipe, len(batches))
        self.progress = Progress()

        earlier = self._find_earlier(resume)
        model = build_starting_model(recipe, load_weights=earlier is None)
        if earlier is not None:
            earlier.restore_model(model, self.last_path)
        only_heads = recipe.weights.trained == "global heads"
        model = model.to(ranks.device)
        if recipe.training.compile:
            model.compile()
        self.objective = Objective(model, recipe.loss, global_only=only_heads)
        self.local_batches = None if local_validation is None else local_validation(model)
        self.objective.train(not only_heads)  # frozen encoders also keep their batch statistics
        self.optimiser = build_optimiser(model, recipe.optimiser)
        decay = recipe.optimiser.average_decay
        self.average = WeightAverage(model, decay) if decay else None
        self.module = ranks.wrap(self.objective)
        torch.manual_seed(recipe.seed + ranks.rank)
        if earlier is not None:
            self._restore(earlier)

    @property
    def last_path(self) -> Path:
        """The checkpoint to resume from."""
        return self.folder / "last.pt"

    @property
    def best_path(self) -> Path:
        """The checkpoint with the best validation."""
        return self.folder / "best.pt"

    def run(self) -> Progress:
        """Train until the end, or until asked to stop, and return the progress of the run.

        Raises
        ------
        TrainingInterruptedError
            After Ctrl-C or SIGTERM; a checkpoint has been written.
        InputError
            If the loss or its gradient is not finite; the last checkpoint precedes that step.
        """
        logs = self._open_logs()
        try:
            with (
                worker_deaths_told(),
                flushed_denormals(),
                watch_for_stop(patient=self.ranks.n_ranks > 1) as stop,
                counted("training", self.total_steps, self.progress.step, self.ranks.is_first) as count,
            ):
                while not self._is_finished():
                    self._run_epoch(logs, stop, count)
        finally:
            if logs is not None:
                logs.close()
        return self.progress

    def _run_epoch(self, logs: RunLogs | None, stop: StopRequest, count: Count) -> None:
        """Run the rest of the current epoch, or as much of it as is needed."""
        epoch, skip = self.progress.epoch, self.progress.n_batches
        for batch in read_epoch(self.batches, epoch, skip):
            figures = self.step(batch)
            self._advance()
            count.advance(note=f"loss {figures['loss']:.4f}")
            if logs is not None:
                logs.write_step(figures)
            if self._is_validation_due():
                self._validate(logs, count)
            stopping = bool(self.ranks.total(torch.tensor(int(stop.made), device=self.ranks.device)))
            if stopping or self._is_checkpoint_due():
                self._save_last()
            if stopping and not self._is_finished():
                raise TrainingInterruptedError(
                    f"stopped after step {self.progress.step} of {self.total_steps}, {self.last_path} is saved;"
                    f" to continue, repeat {option('the command with --resume', 'it with resume=True')}"
                )
            if self._is_finished() or self.progress.epoch > epoch:
                return
        raise InputError(
            f"epoch {epoch} ended after {self.progress.n_batches} batches; expected {len(self.batches)}:"
            " has the data changed?"
        )

    def step(self, batch: Batch) -> dict[str, float]:
        """Train on a batch and return the figures to log."""
        options, model = self.recipe.optimiser, self.objective.model
        rates = set_rates(self.optimiser, rate_factor(self.progress.step, self.total_steps, options))
        inputs = prepare(batch, model, self.recipe, self.ranks.device)
        numbers = pair_numbers(batch.keys).to(self.ranks.device)
        with autocast(self.recipe.training, self.ranks.device):
            output = self.module(
                inputs.images,
                inputs.waveforms,
                inputs.is_original,
                inputs.targets,
                numbers,
                inputs.own_frames,
            )
        self.optimiser.zero_grad(set_to_none=True)
        output.loss.backward()
        parameters = [p for group in self.optimiser.param_groups for p in group["params"]]
        norm = get_total_norm([p.grad for p in parameters if p.grad is not None])
        self._check_finite(output.loss, norm, batch)
        if options.max_gradient_norm:
            clip_grads_with_norm_(parameters, options.max_gradient_norm, norm)
        self.optimiser.step()
        model.clamp_scales()
        if self.average is not None:
            self.average.update(model, self.progress.step + 1)
        return {
            "step": self.progress.step + 1,
            "epoch": self.progress.epoch,
            "loss": output.loss.item(),
            **{f"{name}_loss": term.item() for name, term in output.terms.items()},
            "gradient_norm": norm.item(),
            "local_scale": output.encoded.local_scale.item(),
            "global_scale": output.encoded.global_scale.item(),
            **{f"{name}_rate": rate for name, rate in rates.items()},
        }

    def _check_finite(self, loss: Tensor, gradient_norm: Tensor, batch: Batch) -> None:
        """Raise an error that names the batch if the loss or its gradient would corrupt the weights."""
        is_bad = ~(loss.isfinite() & gradient_norm.isfinite())
        if not bool(self.ranks.total(is_bad.int())):
            return
        keys = [key for part in self.ranks.collect(batch.keys) for key in part]
        listing = self.folder / "not-finite.txt"
        if self.ranks.is_first:
            save_text("\n".join(keys), listing)
        last = f"{self.last_path} is intact" if self.last_path.exists() else "no checkpoint was saved yet"
        raise InputError(
            f"the loss of step {self.progress.step + 1} is {loss.item()}, its gradient {gradient_norm.item()};"
            f" {last}. The batch: {', '.join(keys[:3])}{', ...' if len(keys) > 3 else ''} (all in {listing})"
        )

    def _advance(self) -> None:
        done = self.progress.n_batches + 1
        epoch, n_batches = divmod(done, len(self.batches))
        self.progress = replace(
            self.progress,
            step=self.progress.step + 1,
            epoch=self.progress.epoch + epoch,
            n_batches=n_batches,
        )

    def _is_finished(self) -> bool:
        patience = self.recipe.training.patience
        return self.progress.step >= self.total_steps or 0 < patience <= self.progress.n_worse

    def _is_validation_due(self) -> bool:
        every, step = self.recipe.training.validate_every_steps, self.progress.step
        due = step % every == 0 if every else self.progress.n_batches == 0
        return self.validation_batches is not None and (due or step == self.total_steps)

    def _is_checkpoint_due(self) -> bool:
        every, step = self.recipe.training.checkpoint_every_steps, self.progress.step
        return self.progress.n_batches == 0 or self._is_finished() or (every > 0 and step % every == 0)

    def _validate(self, logs: RunLogs | None, count: Count) -> None:
        assert self.validation_batches is not None  # noqa: S101 (none is ever due without them)
        batches = read_epoch(self.validation_batches, 0)
        with self._averaged():
            result = validate(self.objective, batches, self.recipe, self.ranks, self.local_batches)
        is_best = result.joint > self.progress.best_joint
        figures = {"loss": result.loss, "local_top1": result.local_top1, "joint": result.joint}
        self.progress = replace(
            self.progress,
            best_joint=max(result.joint, self.progress.best_joint),
            n_worse=0 if is_best else self.progress.n_worse + 1,
            validation=figures,
        )
        if is_best:
            self._save_best()
        if logs is not None:
            logs.write_validation({"step": self.progress.step, "epoch": self.progress.epoch} | figures)
        count.say(
            f"step {self.progress.step}: validation loss {result.loss:.4f},"
            f" local top-1 {result.local_top1:.4f}{', the best so far' if is_best else ''}"
        )

    def _open_logs(self) -> RunLogs | None:
        """Open the logs, on the first rank only."""
        if not self.ranks.is_first:
            return None
        save_text(json.dumps(self.recipe.as_dict(), indent=2), self.folder / "recipe.json")
        return RunLogs(self.folder, STEP_COLUMNS, VALIDATION_COLUMNS, self.progress.step)

    def _save_best(self) -> None:
        """Save the model for use."""
        if self.ranks.is_first:
            state = self.objective.model.state_dict() if self.average is None else self.average.state
            save_checkpoint(Checkpoint(self.recipe, self.progress, state), self.best_path)

    def _averaged(self) -> AbstractContextManager[None]:
        """Let the model have its averaged weights, if the recipe asks for them."""
        return (
            nullcontext() if self.average is None else self.average.in_place_of_weights(self.objective.model)
        )

    def _save_last(self) -> None:
        """Save everything that is needed to continue."""
        states = self.ranks.collect(random_state(self.ranks.device))
        if self.ranks.is_first:
            model, optimiser = self.objective.model.state_dict(), self.optimiser.state_dict()
            memory = self.objective.memory
            kept = None if memory is None else memory.state_dict()
            average = None if self.average is None else self.average.state
            checkpoint = Checkpoint(self.recipe, self.progress, model, optimiser, states, kept, average)
            save_checkpoint(checkpoint, self.last_path)

    def _find_earlier(self, resume: bool) -> Checkpoint | None:
        """Return the checkpoint in this folder, if there is one; with one, `resume` must be true."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise OutputError(f"{self.folder}: cannot be created ({error.strerror})") from error
        if not self.last_path.exists():
            return None
        if not resume:
            raise InputError(
                f"{self.folder} already holds a run; add {option('--resume', 'resume=True')} to continue it, or "
                "choose another folder"
            )
        earlier = load_checkpoint(self.last_path)
        check_same_run(self.recipe, earlier.recipe, self.last_path)
        return earlier

    def _restore(self, earlier: Checkpoint) -> None:
        """Continue where an earlier run stopped; the model already has its weights."""
        earlier.restore_optimiser(self.optimiser, self.last_path)
        self.progress = earlier.progress
        earlier.restore_memory(self.objective.memory)
        earlier.restore_average(self.average)
        if len(earlier.random_states) == self.ranks.n_ranks:
            set_random_state(earlier.random_states[self.ranks.rank], self.ranks.device)
