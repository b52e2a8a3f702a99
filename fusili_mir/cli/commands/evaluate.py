"""`fusili-mir evaluate`: the paper's three tasks, and onset errors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from fusili_mir.cli.device_options import read_device_options
from fusili_mir.cli.evaluating.bundle_on_data import measure_bundle
from fusili_mir.cli.evaluating.matrices_on_data import MatrixFlags, judge_matrices, matrix_options
from fusili_mir.cli.evaluating.measuring import Measuring, measuring_options
from fusili_mir.cli.evaluating.paper_tables import reproduce_table, reproduction_options
from fusili_mir.cli.evaluating.running import Running, running_options
from fusili_mir.cli.evaluating.sections import SectionedCommand

__all__ = ["command"]


@click.command(name="evaluate", cls=SectionedCommand)
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="BUNDLE DATA")
@measuring_options
@running_options
@matrix_options
@reproduction_options
def command(
    paths: tuple[Path, ...],
    device: str,
    batch_size: int | None,
    device_options: tuple[str, ...],
    matrix: bool,
    grid: str,
    clip_sec: float,
    vertical: str | None,
    horizontal: int,
    leave_out: int,
    seq2seq: bool,
    reproduce: Any,
    datasets: tuple[str, ...],
    **measured: Any,
) -> None:
    """Measure BUNDLE on DATA: local alignment, retrieval, point-and-retrieve, onset errors.

    DATA is a folder of shards (fusili-mir render), a folder of MSMD pieces, a CSV table with image_filename and
    audio_filename (YTSV, PDMX), or, for onsets, one with score_filename, audio_filename and match_filename.

    With --matrix FILES... the similarity matrices of any other system are judged on DATA; --reproduce table1
    RUNS_DIR (or table2) fills the paper's tables from a folder of bundles, with --on msmd=DIR and the like.
    """
    measuring = Measuring(**measured)
    running = Running(device, batch_size, read_device_options(device_options))
    if measuring.n_segments is not None and (measuring.one_per_piece or reproduce or matrix):
        raise click.UsageError("--segments does not go with --one-per-piece, --reproduce or --matrix")
    if reproduce:
        reproduce_table(reproduce, paths, datasets, running, measuring)
    elif matrix:
        flags = MatrixFlags(grid, clip_sec, vertical, horizontal, leave_out, seq2seq)
        judge_matrices(paths, flags, measuring)
    else:
        measure_bundle(paths, running, measuring)
