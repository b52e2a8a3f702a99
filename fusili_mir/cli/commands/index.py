"""`fusili-mir index`: scores and recordings -> an index that `fusili-mir search` searches."""

from __future__ import annotations

from pathlib import Path

import click

from fusili_mir.cli.verbosity import plain_warnings, say, say_summary

__all__ = ["command"]


@click.command(name="index")
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path))
@click.option(
    "-o",
    "--out",
    required=True,
    type=click.Path(path_type=Path),
    metavar="INDEX",
    help="Folder of the index.",
)
@click.option(
    "--jobs", type=click.IntRange(1), default=1, show_default=True, help="Processes that encode files."
)
@click.option(
    "--dask",
    metavar="ADDRESS",
    help="Encode on a Dask cluster, whose workers see the same files: the address of its scheduler.",
)
@click.option("--remove-missing", is_flag=True, help="Remove what is in the index but no longer on the disk.")
@click.option("--repair", is_flag=True, help="Check all files of the index; encode again what is damaged.")
@click.option(
    "--server",
    metavar="URI",
    help="Keep the vectors on a Milvus server, such as http://host:19530; its token is in MILVUS_TOKEN.",
)
@click.option(
    "--device", default="auto", show_default=True, help="Where the model runs; see `fusili-mir align`."
)
@click.option(
    "--model",
    type=click.Path(path_type=Path),
    metavar="BUNDLE",
    help="Folder of the model.  [default: the installed one]",
)
def command(
    paths: tuple[Path, ...],
    out: Path,
    jobs: int,
    dask: str | None,
    remove_missing: bool,
    repair: bool,
    server: str | None,
    device: str,
    model: Path | None,
) -> int:
    """Index scores and recordings.

    PATHS are scores, PDFs, images and recordings, or folders of them; every file is a piece. Files that are in
    the index already are encoded again only if they have changed, and a run that was stopped goes on where it
    was. What cannot be read is a line of report.csv in the folder of the index; the exit code is 1 then.
    """
    from fusili_mir.collection.building import build_index
    from fusili_mir.collection.index_report import STATUSES

    if not paths and not (remove_missing or repair):
        raise click.UsageError("no PATHS; expected scores, recordings, or folders of them")

    with plain_warnings():
        report = build_index(
            paths,
            out,
            jobs=jobs,
            dask=dask,
            model=model,
            device=device,
            remove_missing=remove_missing,
            repair=repair,
            server=server,
            progress=True,
        )
    counts = [f"{report.count(status)} {status}" for status in STATUSES if report.count(status)]
    say_summary(f"{', '.join(counts) or 'no files'}; {len(report.index)} pieces -> {out}")
    lines = [file.message for file in report.files if file.status in ("missing", "failed")]
    for line in lines[:_MOST_LINES]:
        say(" ".join(f"fusili-mir: {line}".split()), err=True)
    if len(lines) > _MOST_LINES:
        say(f"fusili-mir: and {len(lines) - _MOST_LINES} more; see {out / 'report.csv'}", err=True)
    return 1 if report.count("failed") else 0


_MOST_LINES = 10
