"""Which pairs make a batch: the strategies of the paper.

Pairs come from anywhere, from as few pieces as will fill a batch, or from about four pieces whose pairs are of
similar length. With mutations, a batch has originals and their mutants side by side; half of the originals are
left out, so that the number of pairs is the same with and without mutants. The plan of an epoch depends on the
seed and the number of the epoch only.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from fusili_mir.errors import InputError
from fusili_training.data.shard_folder import PairEntry
from fusili_training.random_streams import random_stream

__all__ = ["BatchOptions", "plan_batches"]

_FEW = 4  # pieces in a batch
_SORTED_BATCHES = 16  # batches whose pairs are sorted by length among themselves: little padding, some chance

Pieces = Literal["random", "same", "few"]
Mutations = Literal["none", "negative", "positive"]


@dataclass(frozen=True)
class BatchOptions:
    """How batches are made.

    Attributes
    ----------
    batch_size : int
        Pairs in a batch, all ranks together.
    pieces : "random", "same" or "few"
        Where the pairs of a batch come from: anywhere, as few pieces as will fill it, or about four pieces.
    mutations : "none", "negative" or "positive"
        With mutants beside their originals or without. To the plan, negative and positive are the same: what
        mutants are used for is up to the loss, which `Batch.is_original` tells them.
    seed : int
    """

    batch_size: int = 32
    pieces: Pieces = "random"
    mutations: Mutations = "none"
    seed: int = 0

    def __post_init__(self) -> None:
        for name, choices in (("pieces", get_args(Pieces)), ("mutations", get_args(Mutations))):
            if getattr(self, name) not in choices:
                raise InputError(f"{name} is {getattr(self, name)!r}; expected one of {', '.join(choices)}")
        if self.batch_size < 1 or (self.mutations != "none" and self.batch_size % 2):
            raise InputError(
                f"batch_size is {self.batch_size}; expected at least 1, and an even number with mutations"
            )


def plan_batches(entries: Sequence[PairEntry], options: BatchOptions, epoch: int) -> list[list[int]]:
    """Plan the batches of an epoch.

    Parameters
    ----------
    entries : sequence of PairEntry
    options : BatchOptions
    epoch : int

    Returns
    -------
    list of list of int
        For each batch the places of its pairs in `entries`; no pair is in two batches. A rest that fills no
        batch is left out.
    """
    units = _units(entries, options)
    rng = random_stream(options.seed, "epoch", epoch)
    if options.pieces == "random":
        units = [units[u] for u in rng.permutation(len(units))]
    else:
        groups: defaultdict[str, list[list[int]]] = defaultdict(list)
        for unit in units:
            groups[entries[unit[0]].rendering].append(unit)
        shuffled = [groups[name] for name in sorted(groups)]
        order = rng.permutation(len(shuffled))
        units = [shuffled[g][u] for g in order for u in rng.permutation(len(shuffled[g]))]
    places = [place for unit in units for place in unit]
    n_batches = len(places) // options.batch_size
    if n_batches == 0:
        raise InputError(
            f"{len(places)} pairs are fewer than one batch of {options.batch_size}; render more, or choose "
            "smaller batches"
        )
    batches = [places[b * options.batch_size : (b + 1) * options.batch_size] for b in range(n_batches)]
    return _mix(batches, entries, rng) if options.pieces == "few" else batches


def _mix(
    batches: Sequence[list[int]], entries: Sequence[PairEntry], rng: np.random.Generator
) -> list[list[int]]:
    """Make batches of a quarter each of batches whose pairs are of similar size."""
    n_quarter = -(-len(batches[0]) // (2 * _FEW)) * 2  # even: a mutant stays beside its original
    mixed: list[list[int]] = []
    for first in range(0, len(batches), _SORTED_BATCHES):
        some = batches[first : first + _SORTED_BATCHES]
        quarters = [batch[q : q + n_quarter] for batch in some for q in range(0, len(batch), n_quarter)]
        quarters.sort(key=lambda quarter: max(entries[place].size for place in quarter))
        places = [place for quarter in _deal(quarters) for place in quarter]
        size = len(some[0])
        mixed += [places[b : b + size] for b in range(0, len(places), size)]
    return [mixed[b] for b in rng.permutation(len(mixed))]


def _deal(quarters: Sequence[list[int]]) -> Iterator[list[int]]:
    """Yield sorted quarters, neighbours, which may be of one piece, in different batches where that can be."""
    for first in range(0, len(quarters), _FEW * _FEW):
        near = quarters[first : first + _FEW * _FEW]
        stride = -(-len(near) // _FEW)
        for start in range(stride):
            yield from near[start::stride]


def _units(entries: Sequence[PairEntry], options: BatchOptions) -> list[list[int]]:
    """Return what goes into one batch together: an original alone, or with its mutant."""
    originals = [place for place, entry in enumerate(entries) if entry.mutant_of is None]
    if options.mutations == "none":
        return [[place] for place in originals]
    mutant_of = {entry.mutant_of: place for place, entry in enumerate(entries) if entry.mutant_of is not None}
    twins = [[place, mutant_of[entries[place].key]] for place in originals if entries[place].key in mutant_of]
    if not twins:
        raise InputError("the shards have no mutants; render them with [mutation] mutants = true")
    n_kept = max(1, min(len(twins), len(originals) // 2))
    kept = random_stream(options.seed, "originals").permutation(len(twins))[:n_kept]
    return [twins[place] for place in np.sort(kept)]
