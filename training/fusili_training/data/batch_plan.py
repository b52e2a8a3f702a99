"""Choosing the pairs of each batch: the strategies of the paper.

The pairs of a batch come from random pieces, from as few pieces as possible, or from about four pieces with pairs
of similar size. With mutations, a batch holds originals and their mutants; half of the originals are left out, so
an epoch has the same number of pairs with and without mutants. The plan of an epoch depends on the seed and the
number of the epoch only.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from fusili_mir.errors import InputError
from fusili_training.data.shard_folder import PairEntry
from fusili_training.random_streams import random_stream

__all__ = ["BatchOptions", "plan_batches"]

_FEW = 4  # pieces in a batch
_PX_PER_SEC = 100.0  # a width that takes about as much computation as a second of sound
_BLUR = 0.05

Pieces = Literal["random", "same", "few"]
Mutations = Literal["none", "negative", "positive"]


@dataclass(frozen=True)
class BatchOptions:
    """How batches are composed.

    Attributes
    ----------
    batch_size : int
        Pairs per batch, over all ranks.
    pieces : "random", "same" or "few"
        Which pieces the pairs of a batch come from: random ones, as few as possible, or about four.
    mutations : "none", "negative" or "positive"
        Whether a batch holds the mutants of its originals. Negative and positive give the same plan; the loss
        treats the mutants differently, by `Batch.is_original`.
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
        Indices into `entries` for each batch. No pair is in two batches; an incomplete last batch is left out.
    """
    units = _units(entries, options)
    rng = random_stream(options.seed, "epoch", epoch)
    if options.pieces == "random":
        units = [units[u] for u in rng.permutation(len(units))]
    else:
        groups: defaultdict[str, list[list[int]]] = defaultdict(list)
        for unit in units:
            groups[entries[unit[0]].rendering].append(unit)
        pieces = [groups[name] for name in sorted(groups)]
        shuffled = [
            [pieces[g][u] for u in rng.permutation(len(pieces[g]))] for g in rng.permutation(len(pieces))
        ]
        units = [unit for piece in shuffled for unit in piece]
        if options.pieces == "few":
            n_quarter = max(1, options.batch_size // (_FEW * len(units[0])))
            units = _sort_by_extent(shuffled, n_quarter, entries, rng)
    places = [place for unit in units for place in unit]
    n_batches = len(places) // options.batch_size
    if n_batches == 0:
        raise InputError(
            f"{len(places)} pairs do not fill one batch of {options.batch_size}; render more pairs, or choose a "
            "smaller data.batch_size"
        )
    batches = [places[b * options.batch_size : (b + 1) * options.batch_size] for b in range(n_batches)]
    return [batches[b] for b in rng.permutation(n_batches)] if options.pieces == "few" else batches


def _sort_by_extent(
    pieces: Sequence[list[list[int]]],
    n_together: int,
    entries: Sequence[PairEntry],
    rng: np.random.Generator,
) -> list[list[int]]:
    """Return the units of all pieces in order of size, with `n_together` units of a piece next to each other.

    The sizes are perturbed, so that different units share a batch in each epoch.
    """

    def blurred_extent(units: list[list[int]]) -> float:
        extents = [
            entry.width_px / _PX_PER_SEC + entry.duration_sec for entry in (entries[u[0]] for u in units)
        ]
        return max(extents) * float(rng.lognormal(sigma=_BLUR))

    groups: list[list[list[int]]] = []
    for piece in pieces:
        similar = sorted(piece, key=lambda unit: blurred_extent([unit]))
        groups += [similar[u : u + n_together] for u in range(0, len(similar), n_together)]
    return [unit for group in sorted(groups, key=blurred_extent) for unit in group]


def _units(entries: Sequence[PairEntry], options: BatchOptions) -> list[list[int]]:
    """Return the units that always share a batch: an original alone, or with its mutant."""
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
