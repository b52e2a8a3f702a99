"""The paper's tables, filled from a folder of bundles: our numbers beside the published ones.

The bundle of a row lies in the subfolder named after its recipe, such as ``table1-random-fusili``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from fusili_mir.errors import InputError, option
from fusili_mir.model.bundle import Bundle, load_bundle
from fusili_mir.model.encoder import Encoder
from fusili_training.evaluation.evaluating import Task, TaskOptions, evaluate_bundle
from fusili_training.evaluation.local_task import PAPER_GRID
from fusili_training.evaluation.published import COLUMNS, TABLES, Column, PublishedRow, TableName
from fusili_training.evaluation.report import Report
from fusili_training.evaluation.tables import TableFormat, format_grid, format_number

__all__ = ["fill_table", "format_reproduction"]


def fill_table(
    table: TableName,
    runs: Path,
    data: Mapping[str, Path],
    options: TaskOptions,
    open_encoder: Callable[[Bundle], Encoder] = Encoder,
) -> dict[str, dict[str, Report]]:
    """Evaluate the bundles of a table as the paper does.

    Parameters
    ----------
    table : "table1" or "table2"
    runs : Path
        Folder of bundles.
    data : mapping of str to Path
        Paths of "msmd", "pdmx" and "ytsv"; the columns of missing ones stay empty.
    options : TaskOptions
        Only `progress`, and for MSMD `splits` and `split_file`, are used.
    open_encoder : callable
        Opens a bundle.

    Returns
    -------
    dict
        Recipe -> dataset -> report, for the bundles that exist.
    """
    known = {column.data for column in COLUMNS}
    unknown = sorted(set(data) - known)
    if unknown or not data:
        found = f"data for {unknown[0]!r}" if unknown else "no data"
        raise InputError(
            f"{found}; expected {option('--on NAME=PATH', 'data')} for {', '.join(sorted(known))}"
        )
    recipes = [row.recipe for row in TABLES[table] if row.recipe is not None]
    present = [recipe for recipe in recipes if (runs / recipe / "manifest.json").is_file()]
    if not present:
        raise InputError(f"{runs}: none of the bundles of {table}; expected folders such as {recipes[0]}")
    reports: dict[str, dict[str, Report]] = {}
    for recipe in present:
        encoder = open_encoder(load_bundle(runs / recipe))
        reports[recipe] = {name: _evaluate(encoder, name, path, options) for name, path in data.items()}
    return reports


def _evaluate(encoder: Encoder, name: str, data: Path, options: TaskOptions) -> Report:
    """Measure what the tables show of a dataset: on MSMD all tasks; one segment per piece in retrieval."""
    if name == "msmd":
        tasks: tuple[Task, ...] = ("local", "point", "retrieval")
        chosen = replace(options, tasks=tasks, rankings=(), one_per_piece=True, plots=False)
    else:
        chosen = TaskOptions(tasks=("retrieval",), one_per_piece=True, progress=options.progress)
    return evaluate_bundle(encoder, data, chosen).report


def format_reproduction(
    table: TableName, reports: Mapping[str, Mapping[str, Report]], kind: TableFormat = "table"
) -> str:
    """Format a table; each cell has our number and, in brackets, the published one."""
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
    if report is None:
        return None
    variant = None if column.task == "retrieval" else PAPER_GRID
    return report.find(column.task, column.metric, column.direction, variant)
