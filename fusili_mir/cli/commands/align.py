"""`fusili-mir align`: the main job."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from fusili_mir.cli.options import AlignmentOptions, alignment_options, plain_warnings

if TYPE_CHECKING:
    from fusili_mir.alignment.results import Alignment
    from fusili_mir.scores.unfolding import Unfold

__all__ = ["command"]


@click.command(name="align")
@click.argument("score", type=click.Path(path_type=Path))
@click.argument("audio", type=click.Path(path_type=Path))
@click.option("-o", "--out", required=True, type=click.Path(path_type=Path), help="Folder to write into.")
@click.option("--force", is_flag=True, help="Replace files in a folder that is not empty.")
@click.option(
    "--format",
    "formats",
    multiple=True,
    metavar="NAME",
    help="match, parangonada, midi, notes, measures, frames, audacity, sonic-visualiser, json or similarity; "
    "may be repeated.  [default: all that apply]",
)
@alignment_options
def command(
    score: Path, audio: Path, out: Path, force: bool, formats: tuple[str, ...], **options: Any
) -> None:
    """Align the recording AUDIO with SCORE.

    If SCORE is MusicXML, MXL or MEI, every note gets its time in seconds; if it is a PDF, an image or a folder of
    images, every second gets its place on the pages. AUDIO is WAV, FLAC, MP3, OGG or whatever libsndfile reads.
    """
    from fusili_mir.output.alignment_files import check_formats, write_formats
    from fusili_mir.scores.score_file import is_score_file
    from fusili_mir.staging import staged_folder

    chosen = check_formats(formats, str(score), is_score_file(score))
    with staged_folder(out, force) as folder:
        with plain_warnings():
            alignment = AlignmentOptions(**options).align(score, audio)
        write_formats(alignment, folder, chosen)
    click.echo(f"{_summary(alignment)} -> {out}")


def _summary(alignment: Alignment) -> str:
    heard = int(np.isfinite(alignment.notes["onset_sec"]).sum())
    found = f"{len(alignment.frames)} frames"
    if alignment.played is not None:
        found = (
            f"{heard} of {len(alignment.notes)} notes, {found}, repeats: {_repeats(alignment.played.unfold)}"
        )
    doubt = "" if alignment.is_reliable else ", LOW"
    return f"{found}; reliability {alignment.reliability:.2f}{doubt}"


def _repeats(unfold: Unfold) -> str:
    return "some" if isinstance(unfold, int) else unfold
