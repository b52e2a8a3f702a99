"""The task of local alignment on a dataset."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from fusili_mir.errors import InputError
from fusili_mir.geometry import FrameGrid, PatchGrid
from fusili_mir.model.bundle import ImageSpec
from fusili_mir.progress import progress_bar
from fusili_training.data.shard_folder import Pair
from fusili_training.evaluation.baselines import chance_local, shuffled_frames, straight_line
from fusili_training.evaluation.compared_pairs import ComparedPair
from fusili_training.evaluation.judging_grid import PAPER_COLUMNS, JudgingGrid
from fusili_training.evaluation.local import LocalCounts, judge_local, local_perplexity, local_top1
from fusili_training.evaluation.matching_rules import EXACT, MatchingRule
from fusili_training.evaluation.report import Measurement
from fusili_training.evaluation.sources import PairSource
from fusili_training.placed_notes import sounding_patches

__all__ = ["OWN_GRID", "PAPER_GRID", "Grids", "LocalResult", "grids_of", "measure_local"]

OWN_GRID, PAPER_GRID = "own grid", "paper's grid"

Grids = Mapping[str, Callable[[PatchGrid, FrameGrid], JudgingGrid]]
"""Name of a grid -> function that makes it from a model's own grids."""


@dataclass(frozen=True, eq=False)
class LocalResult:
    """The measurements, the number of pairs behind them, and the first few pairs to look at."""

    measurements: tuple[Measurement, ...]
    n_pairs: int
    examples: tuple[ComparedPair, ...]


@dataclass
class _PieceCounts:
    model: LocalCounts
    chance: LocalCounts
    straight: LocalCounts
    shuffled: LocalCounts

    @classmethod
    def none(cls) -> _PieceCounts:
        return cls(LocalCounts(), LocalCounts(), LocalCounts(), LocalCounts())

    def add(self, pair: ComparedPair, grid: JudgingGrid, rule: MatchingRule) -> None:
        similarity = grid.similarity(pair.similarity)
        n_judged = sounding_patches(pair.truth, grid.patches, grid.frames).shape[1]
        self.model += judge_local(similarity, pair.truth, grid, rule)
        self.chance += chance_local(pair.truth, grid, rule)
        self.straight += judge_local(straight_line(pair.truth, grid), pair.truth, grid, rule)
        self.shuffled += judge_local(shuffled_frames(similarity, n_judged, pair.key), pair.truth, grid, rule)


def grids_of(image: ImageSpec) -> Grids:
    """Return the grids on which a bundle is judged: the paper's, and its own if it is finer."""
    if image.width_px is None or image.width_px // image.patch_width_px > PAPER_COLUMNS:
        return {PAPER_GRID: JudgingGrid.paper, OWN_GRID: JudgingGrid.own}
    return {PAPER_GRID: JudgingGrid.paper}


def measure_local(
    source: PairSource,
    compare: Callable[[Iterable[Pair]], Iterator[ComparedPair]],
    grids: Grids,
    rule: MatchingRule = EXACT,
    n_examples: int = 0,
    progress: bool = False,
) -> LocalResult:
    """Measure top-1 and perplexity, one pair in memory at a time.

    Parameters
    ----------
    source : PairSource
        Pairs with known notes.
    compare : callable
        Returns the similarities of pairs.
    grids : Grids
    rule : MatchingRule
    n_examples : int
        Number of pairs to return as examples.
    progress : bool
        Whether to show a bar on a terminal.

    Returns
    -------
    LocalResult
    """
    counts: dict[str, list[_PieceCounts]] = {name: [] for name in grids}
    examples: list[ComparedPair] = []
    n_pairs = 0
    for piece in progress_bar(source.pieces, "local alignment", shown=progress):
        pieces = {name: _PieceCounts.none() for name in grids}
        for pair in compare(source.read_piece(piece)):
            n_pairs += 1
            if len(examples) < n_examples:
                examples.append(pair)
            for name, grid_of in grids.items():
                pieces[name].add(pair, grid_of(pair.patch_grid, pair.frame_grid), rule)
        for name, found in pieces.items():
            counts[name].append(found)
    if not n_pairs:
        raise InputError(
            f"{source.name}: no pairs to judge; expected pairs with notes, and for matrices, files named KEY.npy"
        )
    measurements = [each for name, pieces in counts.items() for each in _measurements(name, pieces)]
    return LocalResult(tuple(measurements), n_pairs, tuple(examples))


def _measurements(name: str, pieces: Sequence[_PieceCounts]) -> list[Measurement]:
    model, chance = [piece.model for piece in pieces], [piece.chance for piece in pieces]
    straight, shuffled = [piece.straight for piece in pieces], [piece.shuffled for piece in pieces]
    return [
        Measurement(
            "local",
            name,
            "A2I",
            "top-1",
            local_top1(model),
            sum(piece.n_frames for piece in model),
            {
                "chance": local_top1(chance).value,
                "straight line": local_top1(straight).value,
                "shuffled": local_top1(shuffled).value,
            },
        ),
        Measurement(
            "local",
            name,
            "A2I",
            "PPL",
            local_perplexity(model),
            sum(piece.n_entropy_frames for piece in model),
            {"chance": local_perplexity(chance).value, "shuffled": local_perplexity(shuffled).value},
        ),
    ]
