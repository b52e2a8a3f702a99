"""The second program: judge the similarity matrices of any other system on a dataset."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from fusili_mir.cli.evaluating.measuring import Measuring, evaluation_packages, expect_paths
from fusili_mir.cli.evaluating.sections import SectionOption, add_options
from fusili_mir.errors import InputError

if TYPE_CHECKING:
    from fusili_training.evaluation.evaluating import MatrixRules

__all__ = ["MatrixFlags", "judge_matrices", "matrix_options"]

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True)
class MatrixFlags:
    """What `matrix_options` asks for, besides `--matrix` itself."""

    grid: str
    clip_sec: float
    vertical: str | None
    horizontal: int
    leave_out: int
    seq2seq: bool

    def rules(self) -> MatrixRules:
        """Return when an answer from a matrix is right."""
        with evaluation_packages():
            from fusili_training.evaluation.evaluating import MatrixRules
            from fusili_training.evaluation.matching_rules import SEQ2SEQ, SEQ2SEQ_POINT, MatchingRule
        if self.seq2seq:
            return MatrixRules(SEQ2SEQ, SEQ2SEQ_POINT, SEQ2SEQ)
        exact = MatchingRule(self._rows(0), self.horizontal, self.leave_out)
        return MatrixRules(exact, MatchingRule(self._rows(1), self.horizontal, self.leave_out), exact)

    def _rows(self, default: int) -> int | None:
        if self.vertical is None:
            return default
        if self.vertical == "column":
            return None
        if not self.vertical.isdigit():
            raise click.BadParameter(
                f"{self.vertical!r}; expected a number of rows, or column", param_hint="--vertical"
            )
        return int(self.vertical)


def judge_matrices(paths: tuple[Path, ...], flags: MatrixFlags, measuring: Measuring) -> None:
    """Judge the matrices on the data, the last path, and show the result."""
    *files, data = expect_paths(paths, None, "FILES... DATA")
    options = measuring.task_options()
    with evaluation_packages():
        from fusili_training.evaluation.compared_pairs import MatrixGrid
        from fusili_training.evaluation.evaluating import evaluate_matrices
        from fusili_training.evaluation.matrices import MatrixFiles, parse_grid
    rows, cols = parse_grid(flags.grid)
    rules = flags.rules()
    if flags.clip_sec <= 0:
        raise InputError(f"--clip-sec is {flags.clip_sec:g}, expected more than 0")
    grid = MatrixGrid(rows, cols, flags.clip_sec)
    measuring.show(evaluate_matrices(MatrixFiles(files, rows * cols), grid, rules, data, options))


def matrix_options(command: F) -> F:
    """Add `--matrix` and its options to a command; pass the others on to `MatrixFlags`."""
    option = partial(click.option, cls=SectionOption, section="Matrices of another system (FILES... DATA)")
    return add_options(
        command,
        [
            option("--matrix", is_flag=True, help="Judge .npy matrices in place of a bundle."),
            option("--grid", default="7x7", show_default=True, help="ROWSxCOLS: patches of the matrices."),
            option(
                "--clip-sec",
                type=float,
                default=20.0,
                show_default=True,
                help="Seconds that their frames cover.",
            ),
            option(
                "--vertical",
                metavar="N|column",
                help="Rows by which an answer may be off.  [default: 0; point: 1]",
            ),
            option(
                "--horizontal",
                type=click.IntRange(min=0),
                default=0,
                help="Columns by which it may be off.",
            ),
            option("--leave-out", type=click.IntRange(min=0), default=0, help="Columns ignored at the left."),
            option("--seq2seq", is_flag=True, help="The paper's rules for U-MusT, in place of these three."),
        ],
    )
