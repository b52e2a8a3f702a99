"""The small experiment as a table: models that differ only in their loss, on the same segments.

Retrieval is ranked twice: as in the paper, and by the similarity of the local loss, for models that have one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from fusili_benchmarks.kept_pairs import KeptPairs
from fusili_mir.errors import InputError
from fusili_mir.model.encoder import Encoder
from fusili_mir.model.manifest import Manifest
from fusili_training.evaluation.chosen_pairs import ChosenPairs
from fusili_training.evaluation.compared_pairs import compare_by_bundle
from fusili_training.evaluation.judging_grid import JudgingGrid
from fusili_training.evaluation.local_task import OWN_GRID, PAPER_GRID, measure_local
from fusili_training.evaluation.onset_task import measure_segment_onsets
from fusili_training.evaluation.point_task import measure_point
from fusili_training.evaluation.report import Measurement, Report
from fusili_training.evaluation.retrieval_task import Ranking, measure_retrieval, paper_ranking
from fusili_training.evaluation.tables import format_number

__all__ = ["BASELINES", "ExperimentRow", "format_experiment", "local_ranking", "measure_run", "training_of"]

BASELINES = ("chance", "straight line")

_AS_PAPER, _BY_SIMILARITY = "as in the paper", "by the local similarity"
_BOTH = ("I2A", "A2I")


@dataclass(frozen=True)
class _Column:
    """Which measurements a column shows; `variant` may be one of the two kinds of ranking."""

    title: str
    task: str
    metric: str
    variant: str
    directions: tuple[str, ...] = ("",)
    digits: int = 3


_COLUMNS = (
    _Column("local top-1, 7 cells", "local", "top-1", PAPER_GRID, ("A2I",)),
    _Column("PPL, 7 cells", "local", "PPL", PAPER_GRID, ("A2I",), 2),
    _Column("local top-1, own columns", "local", "top-1", OWN_GRID, ("A2I",)),
    _Column("PPL, own columns", "local", "PPL", OWN_GRID, ("A2I",), 1),
    _Column("point-and-retrieve I2A / A2I", "point", "top-1", PAPER_GRID, _BOTH),
    _Column("R@1 I2A / A2I", "retrieval", "R@1", _AS_PAPER, _BOTH),
    _Column("MRR I2A / A2I", "retrieval", "MRR", _AS_PAPER, _BOTH),
    _Column("R@1 by local similarity", "retrieval", "R@1", _BY_SIMILARITY, _BOTH),
    _Column("MRR by local similarity", "retrieval", "MRR", _BY_SIMILARITY, _BOTH),
    _Column("onset error, median ms", "onsets", "median ms", "segments", digits=0),
    _Column("within 250 ms", "onsets", "within 250 ms", "segments"),
)


@dataclass(frozen=True)
class ExperimentRow:
    """The measurements of one run.

    Attributes
    ----------
    title : str
    n_steps, max_steps : int
        Number of steps trained, and number planned.
    rankings : dict of str to Ranking
        Which ranking of the report is the paper's, and which is by the local similarity.
    report : Report
    """

    title: str
    n_steps: int
    max_steps: int
    rankings: dict[str, Ranking]
    report: Report

    def find(self, column: _Column, direction: str) -> Measurement | None:
        """Return the measurement of a column; None if there is none."""
        wanted = (column.task, column.metric, self.rankings.get(column.variant, column.variant), direction)
        for each in self.report.measurements:
            if (each.task, each.metric, each.variant, each.direction) == wanted:
                return each
        return None


def training_of(manifest: Manifest) -> dict[str, Any]:
    """Return a bundle's recipe, which must state its loss, its data and its budget."""
    recipe = manifest.recipe
    lacking = [
        f"{section}.{key}"
        for section, key in (
            ("loss", "alpha"),
            ("loss", "local_similarity"),
            ("data", "layout"),
            ("data", "max_duration_sec"),
            ("training", "max_steps"),
        )
        if key not in recipe.get(section, {})
    ]
    lacking += [] if "steps" in recipe else ["steps"]
    if lacking:
        raise InputError(
            f"the bundle {manifest.name!r} has no {lacking[0]} in its recipe; expected a run of fusili-mir train"
        )
    return recipe


def local_ranking(recipe: dict[str, Any]) -> Ranking | None:
    """Return how to rank by the similarity of a recipe's local loss; None if it has none.

    Summed cosines rank all candidates. The Sinkhorn similarity ranks a shortlist by pooled cosines, or all
    candidates if pooled embeddings were not trained.
    """
    loss = recipe["loss"]
    if loss["alpha"] == 0:
        return None
    if loss["local_similarity"] == "cosine":
        return "summed"
    if loss["local_similarity"] != "fusili":
        raise InputError(
            f"no ranking by the local similarity {loss['local_similarity']!r}; expected fusili or cosine"
        )
    return "sinkhorn" if loss["alpha"] == 1 else "reranked"


def measure_run(
    title: str, encoder: Encoder, source: KeptPairs, n_candidates: int, progress: bool = False
) -> ExperimentRow:
    """Measure everything that the table shows of a run.

    Parameters
    ----------
    title : str
        Title of its row.
    encoder : Encoder
        Encoder with the run's bundle.
    source : KeptPairs
        Pairs; all of them are judged locally.
    n_candidates : int
        Number of segments that retrieval chooses from, see `ChosenPairs`; all if there are fewer.
    progress : bool
        Whether to show bars on a terminal.

    Returns
    -------
    ExperimentRow
    """
    recipe = training_of(encoder.bundle.manifest)
    rankings = {_AS_PAPER: paper_ranking(encoder.bundle)}
    if (by_similarity := local_ranking(recipe)) is not None:
        rankings[_BY_SIMILARITY] = by_similarity
    cells = {PAPER_GRID: JudgingGrid.paper}
    candidates = ChosenPairs(source, min(n_candidates, len(source)))
    measured = (
        measure_local(
            source,
            partial(compare_by_bundle, encoder),
            cells | {OWN_GRID: JudgingGrid.own},
            progress=progress,
        ),
        measure_point(encoder, source, cells, progress),
        measure_retrieval(encoder, candidates, sorted(set(rankings.values())), progress=progress),
        measure_segment_onsets(encoder, source, progress),
    )
    measurements = tuple(each for result in measured for each in result.measurements)
    report = Report(title, source.name, len(source.pieces), len(source), source.dropped, measurements)
    return ExperimentRow(title, recipe["steps"], recipe["training"]["max_steps"], rankings, report)


def format_experiment(rows: Sequence[ExperimentRow]) -> str:
    """Format runs as a Markdown table, with the baselines below them."""
    header = ["run", "steps", *(column.title for column in _COLUMNS)]
    lines = [header, ["---"] * len(header), *map(_cells, rows)]
    lines += [[name, "", *(_baseline(name, column, rows) for column in _COLUMNS)] for name in BASELINES]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def _cells(row: ExperimentRow) -> list[str]:
    steps = str(row.n_steps) if row.n_steps == row.max_steps else f"{row.n_steps} of {row.max_steps}"
    cells = []
    for column in _COLUMNS:
        found = [row.find(column, direction) for direction in column.directions]
        cells.append(_join([each.found.value if each else None for each in found], column.digits))
    return [row.title, steps, *cells]


def _baseline(name: str, column: _Column, rows: Sequence[ExperimentRow]) -> str:
    values: list[float | None] = []
    for direction in column.directions:
        found = [each for row in rows if (each := row.find(column, direction)) is not None]
        known = [each.baselines[name] for each in found if name in each.baselines]
        if known and not np.allclose(known, known[0]):
            raise InputError(
                f"{column.title}: {name} is {min(known):g} for one run and {max(known):g} for another; expected "
                "runs with the same columns and frames"
            )
        values.append(known[0] if known else None)
    return _join(values, column.digits)


def _join(values: Sequence[float | None], digits: int) -> str:
    """Format the numbers of a cell; one dash if none is known."""
    if all(value is None for value in values):
        return "-"
    return " / ".join(format_number(value, digits) for value in values)
