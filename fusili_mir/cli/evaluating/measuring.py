"""What the programs share: the options about tasks, data and output, and printing what was measured."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from fusili_mir.cli.evaluating.sections import add_options
from fusili_mir.cli.verbosity import say
from fusili_mir.errors import MissingExtraError

if TYPE_CHECKING:
    from fusili_training.evaluation.evaluating import Evaluation, Task, TaskOptions
    from fusili_training.evaluation.retrieval_task import Ranking
    from fusili_training.evaluation.tables import TableFormat

__all__ = ["Measuring", "evaluation_packages", "expect_paths", "measuring_options"]

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True)
class Measuring:
    """What `measuring_options` asks for."""

    tasks: Sequence[Task]
    kind: TableFormat
    plots: Path | None
    splits: Sequence[str]
    split_file: Path | None
    rankings: Sequence[Ranking]
    n_shortlist: int
    one_per_piece: bool
    n_segments: int | None

    def task_options(self) -> TaskOptions:
        """Return the options of the tasks; a missing package that they need is an error."""
        with evaluation_packages():
            from fusili_training.evaluation.evaluating import TaskOptions
        options = TaskOptions(
            tasks=self.tasks,
            splits=self.splits,
            split_file=self.split_file,
            rankings=self.rankings,
            one_per_piece=self.one_per_piece,
            n_segments=self.n_segments,
            n_shortlist=self.n_shortlist,
            plots=self.plots is not None,
            progress=True,
        )
        options.require_packages()
        return options

    def show(self, evaluation: Evaluation) -> None:
        """Print the report, and write the plots."""
        from fusili_training.evaluation.tables import format_report

        say(format_report(evaluation.report, self.kind))
        if self.plots is None:
            return
        from fusili_training.evaluation.plots import save_plot

        for name, figure in evaluation.plots.items():
            save_plot(figure, self.plots / name)


@contextmanager
def evaluation_packages() -> Iterator[None]:
    """Name the extra to install if an import within finds a package missing."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            f"evaluating needs the package {error.name}; install it with `pip install 'fusili-mir[evaluate]'`"
        ) from error


def expect_paths(paths: tuple[Path, ...], number: int | None, what: str) -> tuple[Path, ...]:
    """Return the paths if there are `number` of them; None: at least 2."""
    if len(paths) != number if number is not None else len(paths) < 2:
        raise click.UsageError(
            f"found {len(paths)} argument{'' if len(paths) == 1 else 's'}; expected {what}"
        )
    return paths


def measuring_options(command: F) -> F:
    """Add the options of all programs to a command; pass them on to `Measuring`."""
    return add_options(
        command,
        [
            click.option(
                "--task",
                "tasks",
                multiple=True,
                type=click.Choice(["local", "retrieval", "point", "onsets"]),
                help="What to measure; repeatable.  [default: all that DATA allows]",
            ),
            click.option(
                "--format",
                "kind",
                type=click.Choice(["table", "csv", "json", "latex"]),
                default="table",
                show_default=True,
                help="Format of the report.",
            ),
            click.option(
                "--plots",
                type=click.Path(path_type=Path),
                metavar="DIR",
                help="Write plots (PNG, SVG) to DIR.",
            ),
            click.option(
                "--split",
                "splits",
                multiple=True,
                help="Use this split; repeatable.  [default: test, MSMD: all]",
            ),
            click.option("--split-file", type=click.Path(path_type=Path), help="YAML file of MSMD's splits."),
            click.option(
                "--ranking",
                "rankings",
                multiple=True,
                type=click.Choice(["pooled", "summed", "sinkhorn", "reranked"]),
                help="How retrieval ranks; repeatable. sinkhorn and reranked need torch.  "
                "[default: as in the paper]",
            ),
            click.option(
                "--shortlist",
                "n_shortlist",
                type=click.IntRange(min=1),
                default=20,
                show_default=True,
                help="Candidates that `reranked` orders by their Sinkhorn similarity.",
            ),
            click.option(
                "--one-per-piece", is_flag=True, help="Retrieve among the first segments of pieces only."
            ),
            click.option(
                "--segments",
                "n_segments",
                type=click.IntRange(min=2),
                metavar="N",
                help="Retrieve among N segments, always the same ones.  [default: all]",
            ),
        ],
    )
