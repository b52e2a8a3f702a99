"""Which pairs make a batch: the strategies of the paper.

Pairs come from anywhere, from as few pieces as will fill a batch, or from about four pieces whose pairs are of
similar length. With mutations, a batch has originals and their mutants side by side; half of the originals are
left out, so that the number of pairs is the same with and without mutants. The plan of an epoch depends on the
seed and the number of the epoch only.
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
_PX_A_SEC = 100.0  # a width that costs about as much as a second
_BLUR = 0.05

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
            f"{len(places)} pairs are fewer than one batch of {options.batch_size}; render more, or choose "
            "smaller batches"
        )
    batches = [places[b * options.batch_size : (b + 1) * options.batch_size] for b in range(n_batches)]
    return [batches[b] for b in rng.permutation(n_batches)] if options.pieces == "few" else batches


def _sort_by_extent(
    pieces: Sequence[list[list[int]]],
    n_together: int,
    entries: Sequence[PairEntry],
    rng: np.random.Generator,
) -> list[list[int]]:
    """Return the units of all pieces, `n_together` of a piece side by side, short ones first.

    Extents are blurred, so that other units meet in each epoch.
    """

    def blurred_extent(units: list[list[int]]) -> float:
        extents = [
            entry.width_px / _PX_A_SEC + entry.duration_sec for entry in (entries[u[0]] for u in units)
        ]
        return max(extents) * float(rng.lognormal(sigma=_BLUR))

    groups: list[list[list[int]]] = []
    for piece in pieces:
        similar = sorted(piece, key=lambda unit: blurred_extent([unit]))
        groups += [similar[u : u + n_together] for u in range(0, len(similar), n_together)]
    return [unit for group in sorted(groups, key=blurred_extent) for unit in group]


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
