"""The third program: fill a table of the paper from a folder of bundles."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from fusili_mir.cli.evaluating.measuring import Measuring, evaluation_packages, expect_paths
from fusili_mir.cli.evaluating.running import Running
from fusili_mir.cli.evaluating.sections import SectionOption, add_options
from fusili_mir.cli.verbosity import say

if TYPE_CHECKING:
    from fusili_training.evaluation.published import TableName

__all__ = ["reproduce_table", "reproduction_options"]

F = TypeVar("F", bound=Callable[..., Any])


def reproduce_table(
    table: TableName,
    paths: tuple[Path, ...],
    datasets: tuple[str, ...],
    running: Running,
    measuring: Measuring,
) -> None:
    """Measure the bundles of a table, and print our numbers beside the published ones."""
    (runs,) = expect_paths(paths, 1, "RUNS_DIR, a folder of bundles")
    options = measuring.task_options()
    with evaluation_packages():
        from fusili_training.evaluation.reproduce import fill_table, format_reproduction
    data = dict(_name_and_path(dataset) for dataset in datasets)
    reports = fill_table(table, runs, data, options, running.encoder)
    say(format_reproduction(table, reports, measuring.kind))


def reproduction_options(command: F) -> F:
    """Add `--reproduce` and `--on` to a command."""
    option = partial(click.option, cls=SectionOption, section="The paper's tables (RUNS_DIR)")
    return add_options(
        command,
        [
            option("--reproduce", type=click.Choice(["table1", "table2"]), help="Fill a table of the paper."),
            option(
                "--on",
                "datasets",
                multiple=True,
                metavar="NAME=PATH",
                help="Dataset msmd, pdmx or ytsv; repeatable.",
            ),
        ],
    )


def _name_and_path(dataset: str) -> tuple[str, Path]:
    name, separator, path = dataset.partition("=")
    if not separator or not path:
        raise click.BadParameter(f"{dataset!r}; expected NAME=PATH", param_hint="--on")
    return name.lower(), Path(path)
