"""The batches of one rank, prefetched by worker processes; iteration can be resumed from a saved state."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from multiprocessing import get_context
from multiprocessing.context import BaseContext
from typing import Any

from torch.utils.data import DataLoader, Dataset

from fusili_mir.errors import FusiliError, InputError
from fusili_mir.spawned_process import WorkerContext
from fusili_mir.worker_process import begin_worker
from fusili_training.data.augmentation import Augmentation, augment
from fusili_training.data.batch import Batch, collate
from fusili_training.data.batch_plan import BatchOptions, plan_batches
from fusili_training.data.neighbouring_sound import with_neighbours
from fusili_training.data.shard_folder import Pair, ShardFolder
from fusili_training.random_streams import random_stream

__all__ = ["PairLoader", "worker_deaths_told"]


class _PairDataset(Dataset[Pair | FusiliError]):
    """Pairs by their index in the folder, augmented differently in each epoch.

    What is wrong with a pair comes in its place: torch would add to the text where in the worker it was raised.
    """

    def __init__(self, folder: ShardFolder, augmentation: Augmentation | None, seed: int, epoch: int) -> None:
        self._folder, self._augmentation, self._seed, self._epoch = folder, augmentation, seed, epoch

    def __getitem__(self, place: int) -> Pair | FusiliError:
        try:
            return self._augmented(place)
        except FusiliError as error:
            return error

    def _augmented(self, place: int) -> Pair:
        pair = self._folder.read(self._folder.entries[place])
        if self._augmentation is None:
            return pair
        if self._augmentation.neighbour_probability:
            pair = self._between_others(pair, place, self._augmentation)
        return augment(pair, self._augmentation, random_stream(self._seed, self._epoch, pair.key))

    def _between_others(self, pair: Pair, place: int, limits: Augmentation) -> Pair:
        rng = random_stream(self._seed, self._epoch, pair.mutant_of or pair.key, "neighbours")
        if rng.uniform() >= limits.neighbour_probability:
            return pair
        before, after = (
            None if entry is None else self._folder.read_clip(entry)
            for entry in self._folder.neighbours(place)
        )
        drawn = rng.spawn(1)[0].uniform(size=2) < limits.audience_probability
        is_first, is_last = self._folder.ends(place)
        return with_neighbours(pair, before, after, rng, (is_first and drawn[0], is_last and drawn[1]))


def _context() -> BaseContext:
    """Return how workers are started: where it is safe by a fork, which takes no time."""
    return get_context("fork") if sys.platform.startswith("linux") else WorkerContext()


def _begin(parent: int, _worker: int) -> None:
    begin_worker(parent)


def _collate(pairs: Sequence[Pair | FusiliError], n_samples: int | None) -> Batch | FusiliError:
    whole = [pair for pair in pairs if not isinstance(pair, FusiliError)]
    wrong = [pair for pair in pairs if isinstance(pair, FusiliError)]
    return wrong[0] if wrong else collate(whole, n_samples)


@contextmanager
def worker_deaths_told() -> Iterator[None]:
    """Say in one line that a worker died, which torch raises wherever this process happens to be."""
    try:
        yield
    except RuntimeError as error:
        if not str(error).startswith("DataLoader worker"):
            raise
        raise InputError(
            f"a process that reads pairs died ({' '.join(str(error).split())}); if memory or shared memory"
            " (/dev/shm) is short, use fewer data.workers, or 0"
        ) from error


class PairLoader:
    """The batches of one rank.

    Order and content of the batches depend on the folder, the options and the number of the epoch only, not on
    the number of workers. Each batch is divided among the ranks. An iterator yields the rest of the current
    epoch, and the next iterator the epoch after it; `state_dict` returns the position.

    Parameters
    ----------
    folder : ShardFolder
    options : BatchOptions
        How batches are composed; the batch size is that of all ranks together.
    augmentation : Augmentation, optional
        How pairs are augmented; by default they are not.
    rank, world_size : int
    workers : int
        Number of processes that prefetch; 0: read in this process.
    """

    def __init__(
        self,
        folder: ShardFolder,
        options: BatchOptions,
        augmentation: Augmentation | None = None,
        rank: int = 0,
        world_size: int = 1,
        workers: int = 0,
    ) -> None:
        unit = world_size * (1 if options.mutations == "none" else 2)
        if not 0 <= rank < world_size or options.batch_size % unit:
            raise InputError(
                f"batches of {options.batch_size} for rank {rank} of {world_size}; "
                f"expected a multiple of {unit}, and a rank below {world_size}"
            )
        if (
            augmentation is not None
            and augmentation.neighbour_probability
            and folder.segment["shape"] == "square"
        ):
            raise InputError(
                f"{folder.url}: squares with augmentation.neighbour_probability ="
                f" {augmentation.neighbour_probability:g}; expected staff strips, or 0: squares overlap"
            )
        self._folder, self._options, self._augmentation = folder, options, augmentation
        self._rank, self._world_size, self._workers = rank, world_size, workers
        self._n_batches = len(plan_batches(folder.entries, options, 0))
        self._epoch = self._n_consumed = 0

    def __len__(self) -> int:
        """Return the number of batches per epoch, the same on every rank."""
        return self._n_batches

    def epoch(self, number: int, skip: int = 0) -> Iterator[Batch]:
        """Yield the batches of an epoch, without the first `skip`."""
        share = self._options.batch_size // self._world_size
        own = slice(self._rank * share, (self._rank + 1) * share)
        batches = [batch[own] for batch in plan_batches(self._folder.entries, self._options, number)[skip:]]
        loader: DataLoader[Pair | FusiliError] = DataLoader(
            _PairDataset(self._folder, self._augmentation, self._options.seed, number),
            batch_sampler=batches,
            num_workers=self._workers,
            collate_fn=partial(_collate, n_samples=self._n_samples()),
            multiprocessing_context=_context() if self._workers else None,
            worker_init_fn=partial(_begin, os.getpid()),
        )
        for batch in loader:
            if isinstance(batch, FusiliError):
                raise batch
            yield batch

    def __iter__(self) -> Iterator[Batch]:
        """Yield the rest of the current epoch, then advance to the next epoch."""
        for batch in self.epoch(self._epoch, self._n_consumed):
            self._n_consumed += 1
            yield batch
        self._epoch, self._n_consumed = self._epoch + 1, 0

    def state_dict(self) -> dict[str, Any]:
        """Return the position of the iteration."""
        return {"seed": self._options.seed, "epoch": self._epoch, "batches": self._n_consumed}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Resume from a state: iteration continues with the next batch."""
        if state["seed"] != self._options.seed:
            raise InputError(
                f"the state was saved with seed {state['seed']}; expected {self._options.seed}, the seed of this "
                "loader: its batches would differ"
            )
        self._epoch, self._n_consumed = int(state["epoch"]), int(state["batches"])

    def _n_samples(self) -> int | None:
        """Return the fixed length of the waveforms of squares; None for strips, whose length varies."""
        if self._folder.segment["shape"] != "square":
            return None
        return round(float(self._folder.segment["max_duration_sec"]) * self._folder.sample_rate_hz)
