"""The paper's tables filled from a folder of bundles: ours beside the published numbers.

A row is filled by the bundle in the subfolder named after its recipe, such as ``table1-random-fusili``.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path

from fusili_mir.bundle import load_bundle
from fusili_mir.encoder import Encoder
from fusili_mir.errors import InputError
from fusili_training.evaluation.compared_pairs import compare_by_bundle
from fusili_training.evaluation.local_task import PAPER_GRID, measure_local
from fusili_training.evaluation.point_task import measure_point
from fusili_training.evaluation.published import COLUMNS, TABLES, Column, PublishedRow, TableName
from fusili_training.evaluation.report import Measurement, Report
from fusili_training.evaluation.retrieval_task import measure_retrieval, paper_ranking
from fusili_training.evaluation.scoring_grid import ScoringGrid
from fusili_training.evaluation.sources import PairSource, open_source
from fusili_training.evaluation.tables import TableFormat, format_grid, format_number

__all__ = ["fill_table", "format_reproduction"]


def fill_table(
    table: TableName, runs: Path, data: Mapping[str, Path], device: str = "auto", progress: bool = False
) -> dict[str, dict[str, Report]]:
    """Evaluate the bundles of a table as the paper does.

    Parameters
    ----------
    table : "table1" or "table2"
    runs : Path
        Folder of bundles.
    data : mapping of str to Path
        Where "msmd", "pdmx" and "ytsv" lie; columns of others stay empty.
    device : str
    progress : bool
        Whether to show bars on a terminal.

    Returns
    -------
    dict
        Recipe -> dataset -> report, for the bundles that are there.
    """
    known = {column.data for column in COLUMNS}
    unknown = sorted(set(data) - known)
    if unknown or not data:
        found = f"data for {unknown[0]!r}" if unknown else "no data"
        raise InputError(f"{found}; expected --on NAME=PATH with {', '.join(sorted(known))}")
    recipes = [row.recipe for row in TABLES[table] if row.recipe is not None]
    present = [recipe for recipe in recipes if (runs / recipe / "manifest.json").is_file()]
    if not present:
        raise InputError(f"{runs}: none of the bundles of {table}; expected folders such as {recipes[0]}")
    return {
        recipe: _evaluate(Encoder(load_bundle(runs / recipe), device), recipe, data, progress)
        for recipe in present
    }


def _evaluate(encoder: Encoder, recipe: str, data: Mapping[str, Path], progress: bool) -> dict[str, Report]:
    reports = {}
    for name, path in data.items():
        source = open_source(path, encoder.bundle.image)
        measured = _measure(encoder, source, one_per_piece=name == "msmd", progress=progress)
        reports[name] = Report(recipe, source.name, len(source.pieces), 0, dict(source.dropped), measured)
    return reports


def _measure(
    encoder: Encoder, source: PairSource, one_per_piece: bool, progress: bool
) -> tuple[Measurement, ...]:
    ranking = paper_ranking(encoder.bundle)
    measured = measure_retrieval(encoder, source, [ranking], one_per_piece, progress=progress).measurements
    if source.has_truth:
        grids = {PAPER_GRID: ScoringGrid.paper}
        compare = partial(compare_by_bundle, encoder)
        measured += measure_local(source, compare, grids, progress=progress).measurements
        measured += measure_point(encoder, source, grids, progress=progress).measurements
    return measured


def format_reproduction(
    table: TableName, reports: Mapping[str, Mapping[str, Report]], kind: TableFormat = "table"
) -> str:
    """Write a table, in each cell our number and, in brackets, the published one."""
    header = ["ours (published)", *(column.title for column in COLUMNS)]
    return format_grid(header, [_row(row, reports.get(row.recipe or "", {})) for row in TABLES[table]], kind)


def _row(row: PublishedRow, reports: Mapping[str, Report]) -> list[str]:
    cells = [
        f"{format_number(_ours(column, reports), column.digits)} ({format_number(number, column.digits)})"
        for column, number in zip(COLUMNS, row.numbers, strict=True)
    ]
    return [row.title, *cells]


def _ours(column: Column, reports: Mapping[str, Report]) -> float | None:
    report = reports.get(column.data)
    return None if report is None else report.find(column.task, column.metric, column.direction)
