"""`fusili-mir evaluate`: the paper's three tasks, and onset errors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from fusili_mir.errors import InputError, MissingExtraError

__all__ = ["command"]


@click.command(name="evaluate")
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="BUNDLE DATA")
@click.option(
    "--task",
    "tasks",
    multiple=True,
    type=click.Choice(["local", "retrieval", "point", "onsets"]),
    help="What to measure; repeatable.  [default: all that DATA allows]",
)
@click.option(
    "--format",
    "kind",
    type=click.Choice(["table", "csv", "json", "latex"]),
    default="table",
    show_default=True,
)
@click.option("--plots", type=click.Path(path_type=Path), metavar="DIR", help="Write plots (PNG, SVG) there.")
@click.option(
    "--split", "splits", multiple=True, help="Use this split; repeatable.  [default: test, MSMD: all]"
)
@click.option("--split-file", type=click.Path(path_type=Path), help="YAML file of MSMD's splits.")
@click.option(
    "--ranking",
    "rankings",
    multiple=True,
    type=click.Choice(["pooled", "summed", "sinkhorn", "reranked"]),
    help="How retrieval ranks; repeatable.  [default: as in the paper]",
)
@click.option(
    "--shortlist",
    "n_shortlist",
    type=click.IntRange(min=1),
    default=20,
    show_default=True,
    help="Candidates that `reranked` orders by the Sinkhorn score.",
)
@click.option("--one-per-piece", is_flag=True, help="Retrieve among the first segments of pieces only.")
@click.option(
    "--segments",
    "n_segments",
    type=click.IntRange(min=2),
    metavar="N",
    help="Retrieve among N segments, always the same ones.  [default: all]",
)
@click.option("--device", default="auto", show_default=True, help="Where the model runs: auto, cpu, cuda.")
@click.option("--matrix", is_flag=True, help="Judge .npy matrices in place of a bundle: FILES... DATA.")
@click.option("--grid", default="7x7", show_default=True, help="ROWSxCOLS of patches of the matrices.")
@click.option("--clip-sec", type=float, default=20.0, show_default=True, help="What their frames cover.")
@click.option("--vertical", metavar="N|column", help="Rows that a matrix may be off.  [default: 0; point: 1]")
@click.option("--horizontal", type=click.IntRange(min=0), default=0, help="Columns that it may be off.")
@click.option("--leave-out", type=click.IntRange(min=0), default=0, help="Columns at the left not looked at.")
@click.option("--seq2seq", is_flag=True, help="The paper's rules for U-MusT, in place of these three.")
@click.option(
    "--reproduce", type=click.Choice(["table1", "table2"]), help="Fill a table of the paper: RUNS_DIR."
)
@click.option("--on", "datasets", multiple=True, metavar="NAME=PATH", help="With it: msmd, pdmx, ytsv.")
def command(
    paths: tuple[Path, ...],
    kind: Any,
    plots: Path | None,
    device: str,
    matrix: bool,
    reproduce: Any,
    datasets: tuple[str, ...],
    grid: str,
    clip_sec: float,
    vertical: str | None,
    horizontal: int,
    leave_out: int,
    seq2seq: bool,
    **options: Any,
) -> None:
    """Measure BUNDLE on DATA: local alignment, retrieval, point-and-retrieve, onset errors.

    DATA is a folder of shards (fusili-mir render), a folder of MSMD pieces, a CSV table with image_filename and
    audio_filename (YTSV, PDMX), or, for onsets, one with score_filename, audio_filename and match_filename.

    With --matrix FILES... the similarity matrices of any other system are scored on DATA; --reproduce table1
    RUNS_DIR (or table2) fills the paper's tables from a folder of bundles, with --on msmd=DIR and the like.
    """
    try:
        from fusili_mir.model.bundle import load_bundle
        from fusili_mir.model.encoder import Encoder
        from fusili_training.evaluation.compared_pairs import MatrixGrid
        from fusili_training.evaluation.evaluating import (
            MatrixRules,
            TaskOptions,
            evaluate_bundle,
            evaluate_matrices,
        )
        from fusili_training.evaluation.matching_rules import SEQ2SEQ, SEQ2SEQ_POINT, MatchingRule
        from fusili_training.evaluation.matrices import MatrixFiles, parse_grid
        from fusili_training.evaluation.plots import save_plot
        from fusili_training.evaluation.reproduce import fill_table, format_reproduction
        from fusili_training.evaluation.tables import format_report
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            f"evaluating needs the package {error.name}; install it with `pip install 'fusili-mir[train]'`"
        ) from error
    if options["n_segments"] is not None and (options["one_per_piece"] or reproduce or matrix):
        raise click.UsageError("--segments does not go with --one-per-piece, --reproduce or --matrix")
    chosen = TaskOptions(plots=plots is not None, progress=True, **options)
    if reproduce:
        (runs,) = _expect(paths, 1, "RUNS_DIR, a folder of bundles")
        data = dict(_name_and_path(dataset) for dataset in datasets)
        click.echo(format_reproduction(reproduce, fill_table(reproduce, runs, data, chosen, device), kind))
        return
    if matrix:
        *files, data_path = _expect(paths, None, "FILES... DATA")
        rows, cols = parse_grid(grid)
        rules = MatrixRules(SEQ2SEQ, SEQ2SEQ_POINT, SEQ2SEQ)
        if not seq2seq:
            exact = MatchingRule(_vertical(vertical, 0), horizontal, leave_out)
            rules = MatrixRules(exact, MatchingRule(_vertical(vertical, 1), horizontal, leave_out), exact)
        if clip_sec <= 0:
            raise InputError(f"--clip-sec is {clip_sec:g}, expected more than 0")
        evaluation = evaluate_matrices(
            MatrixFiles(files, rows * cols), MatrixGrid(rows, cols, clip_sec), rules, data_path, chosen
        )
    else:
        bundle, data_path = _expect(paths, 2, "BUNDLE DATA")
        evaluation = evaluate_bundle(Encoder(load_bundle(bundle), device), data_path, chosen)
    click.echo(format_report(evaluation.report, kind))
    for name, figure in evaluation.plots.items():
        assert plots is not None  # noqa: S101
        save_plot(figure, plots / name)


def _expect(paths: tuple[Path, ...], number: int | None, what: str) -> tuple[Path, ...]:
    if len(paths) != number if number is not None else len(paths) < 2:
        raise click.UsageError(f"{len(paths)} arguments; expected {what}")
    return paths


def _name_and_path(dataset: str) -> tuple[str, Path]:
    name, separator, path = dataset.partition("=")
    if not separator or not path:
        raise click.BadParameter(f"{dataset!r}; expected NAME=PATH", param_hint="--on")
    return name.lower(), Path(path)


def _vertical(text: str | None, default: int) -> int | None:
    if text is None:
        return default
    if text == "column":
        return None
    if not text.isdigit():
        raise click.BadParameter(f"{text!r}; expected a number of rows, or column", param_hint="--vertical")
    return int(text)
