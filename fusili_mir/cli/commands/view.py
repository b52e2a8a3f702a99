"""`fusili-mir view`: results in the browser, to see, hear and correct."""

from __future__ import annotations

import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fusili_mir.cli.verbosity import plain_warnings, say_summary

if TYPE_CHECKING:
    from fusili_mir.alignment.results import Alignment
    from fusili_mir.viewer.correction import Correction
    from fusili_mir.viewer.view_server import ViewServer

__all__ = ["command"]


@click.command(name="view")
@click.argument("results", nargs=-1, required=True, metavar="RESULT...", type=click.Path(path_type=Path))
@click.option(
    "-o",
    "--out",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write one page with all results, instead of opening them.",
)
@click.option("--force", is_flag=True, help="Replace FILE.")
@click.option(
    "--score",
    multiple=True,
    type=click.Path(path_type=Path),
    help="The score, if it was moved; may be repeated for pages.",
)
@click.option("--recording", type=click.Path(path_type=Path), help="The recording, if it was moved.")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Port to listen on.  [default: any]")
@click.option("--no-browser", is_flag=True, help="Only print the address.")
def command(
    results: tuple[Path, ...],
    out: Path | None,
    force: bool,
    score: tuple[Path, ...],
    recording: Path | None,
    port: int,
    no_browser: bool,
) -> None:
    """See, hear and correct results of `fusili-mir align` in the browser.

    RESULT is a folder that `align` has written. The page is served to this machine alone. Where an anchor is set
    on it, the result is decoded again and its files are written anew; the old ones are kept for one step of undo.
    """
    from fusili_mir.errors import OutputError
    from fusili_mir.staging import settle_folder
    from fusili_mir.viewer.view_page import save_viewed
    from fusili_mir.viewer.view_reading import read_view

    for result in results:
        settle_folder(_folder(result))
    viewed = [each for result in results for each in read_view(result)]
    if out is not None:
        if out.exists() and not force:
            raise OutputError(f"{out}: exists already; choose another name, or add --force to replace it")
        save_viewed(viewed, out)
        say_summary(f"{len(viewed)} results -> {out}")
        return
    from fusili_mir.viewer.view_server import ViewServer

    corrections = [_correction(result, score, recording) for result in results for _ in read_view(result)]
    with plain_warnings():
        server = ViewServer(viewed, corrections, port)
        _serve(server, no_browser)


def _serve(server: ViewServer, no_browser: bool) -> None:
    say_summary(f"{server.url}\nPress Ctrl-C to stop.")
    if not no_browser and not webbrowser.open(server.url):
        say_summary("No browser was found; open the address in one.")
    try:
        server.serve_forever(poll_interval=0.2)
    except KeyboardInterrupt:
        pass
    finally:
        server.server_close()
        for correction in server.corrections:
            correction.finish()


def _folder(result: Path) -> Path:
    return result if result.is_dir() else result.parent


def _correction(result: Path, score: tuple[Path, ...], recording: Path | None) -> Correction:
    from fusili_mir.viewer.correction import Correction

    folder = _folder(result)

    def align() -> Alignment:
        from fusili_mir.alignment.aligner import Aligner
        from fusili_mir.viewer.inputs import load_inputs

        inputs = load_inputs(folder, score, recording)
        return Aligner(inputs.model).align(list(inputs.score), str(inputs.recording), inputs.options)

    def save(alignment: Alignment, staged: Path) -> None:
        from fusili_mir.output.alignment_files import write_formats
        from fusili_mir.viewer.inputs import load_inputs

        write_formats(alignment, staged, load_inputs(folder, score, recording).formats)

    return Correction(folder, align, save)
