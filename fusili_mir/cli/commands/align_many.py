"""`fusili-mir align-many`: a table of pairs, over night."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from fusili_mir.cli.device_options import device_options, read_device_options
from fusili_mir.cli.exit_codes import UNRELIABLE_EXIT_CODE
from fusili_mir.cli.job_options import N_JOBS
from fusili_mir.cli.options import align_flags, read_align_options
from fusili_mir.cli.verbosity import plain_warnings, say, say_summary

__all__ = ["command"]


def _with_device_options(function: click.decorators.FC) -> click.decorators.FC:
    for option in device_options():
        function = option(function)
    return function


@click.command(name="align-many")
@click.argument("pairs", nargs=-1, metavar="PAIRS", type=click.Path(path_type=Path))
@click.option("-o", "--out", required=True, type=click.Path(path_type=Path), help="Folder of all results.")
@click.option(
    "--match",
    type=click.Path(path_type=Path),
    metavar="INDEX",
    help="Find the scores in an index. PAIRS are then recordings or folders of them.  [default: those of INDEX]",
)
@click.option(
    "--least",
    "least_probability",
    type=click.FloatRange(0, 1),
    default=0.5,
    show_default=True,
    help="With --match: the least probability of a score to be a match.",
)
@click.option("--force", is_flag=True, help="Replace results of other files, options or models.")
@click.option(
    "--format",
    "formats",
    multiple=True,
    metavar="NAME",
    help="What to write of each result, as for `align`; may be repeated.  [default: all that apply]",
)
@click.option(
    "--jobs", type=N_JOBS, default=-1, show_default=True, help="Number of processes; -1: one per core."
)
@click.option("--strict", is_flag=True, help="End with exit code 3 if a result is doubtful.")
@click.option("--dask", metavar="ADDRESS", help="Address of a Dask scheduler, whose machines do the work.")
@click.option(
    "--model",
    type=click.Path(path_type=Path),
    metavar="BUNDLE",
    help="Folder of the model.  [default: the installed one]",
)
@_with_device_options
@align_flags
def command(
    pairs: tuple[Path, ...],
    out: Path,
    match: Path | None,
    least_probability: float,
    force: bool,
    formats: tuple[str, ...],
    strict: bool,
    jobs: int,
    dask: str | None,
    model: Path | None,
    device: str,
    batch_size: int | None,
    device_options: tuple[str, ...],
    **options: Any,
) -> int:
    """Align many recordings with their scores, as the table PAIRS says.

    PAIRS is a CSV file with the columns score and recording, and if need be name and options: start, transpose,
    and so on, as the flags below, which hold for all rows that do not say otherwise. Files are named relative to
    it; images of one score are separated by semicolons.

    With --match, nobody needs to write a table: each recording is aligned with the score of an index (see
    `fusili-mir index`) that it most probably is of, if there is one.

    Each pair gets a folder of its own; summary.csv and index.html show what became of all. A pair that cannot be
    aligned is a line in them, not the end; the exit code is 1 then. If the command is interrupted or killed,
    repeat it to go on.
    """
    from fusili_mir.batch.many import align_many
    from fusili_mir.batch.summary_page import count_reports

    if match is None and len(pairs) != 1:
        raise click.UsageError(f"{len(pairs)} tables of pairs; expected one, or --match INDEX")
    said = read_align_options(options)
    with plain_warnings():
        reports = align_many(
            pairs[0] if match is None else pairs,
            out,
            model,
            match=match,
            least_probability=least_probability,
            jobs=jobs,
            dask=dask,
            formats=formats,
            options=said,
            force=force,
            device=device,
            batch_size=batch_size,
            device_options=read_device_options(device_options),
            progress=True,
        )
    failed = [report for report in reports if report.status == "failed"]
    for report in failed[:_MOST_LINES]:
        say(" ".join(f"fusili-mir: {report.name}: {report.message}".split()), err=True)
    if len(failed) > _MOST_LINES:
        say(f"fusili-mir: and {len(failed) - _MOST_LINES} more; see {out / 'summary.csv'}", err=True)
    say_summary(f"{count_reports(reports, len(reports))} -> {out / 'index.html'}")
    if failed:
        return 1
    is_doubtful = any(report.status == "doubtful" for report in reports)
    return UNRELIABLE_EXIT_CODE if strict and is_doubtful else 0


_MOST_LINES = 10
