"""`fusili-mir align`: the main job."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from fusili_mir.cli.exit_codes import UNRELIABLE_EXIT_CODE
from fusili_mir.cli.options import alignment_arguments, alignment_options, open_aligner, read_align_options
from fusili_mir.cli.verbosity import plain_warnings, say_summary
from fusili_mir.progress import stage

if TYPE_CHECKING:
    from fusili_mir.alignment.results import Alignment

__all__ = ["command"]


@click.command(name="align")
@alignment_arguments
@click.option("-o", "--out", required=True, type=click.Path(path_type=Path), help="Folder to write into.")
@click.option("--force", is_flag=True, help="Replace files in a folder that is not empty.")
@click.option(
    "--format",
    "formats",
    multiple=True,
    metavar="NAME",
    help="html, overlay, pages, match, parangonada, midi, mei, timemap, alphatab, piano-precision, notes, "
    "measures, frames, audacity, sonic-visualiser, json or similarity; may be repeated.  "
    "[default: all that apply, except pages]",
)
@click.option(
    "--write-score", is_flag=True, help="Write score.musicxml, too: the score with the ids of its notes."
)
@click.option(
    "--strict", is_flag=True, help="End with exit code 3 if it does not seem to be a recording of this score."
)
@alignment_options
def command(
    score: tuple[Path, ...],
    audio: str,
    out: Path,
    force: bool,
    formats: tuple[str, ...],
    write_score: bool,
    strict: bool,
    **options: Any,
) -> int:
    """Align the recording AUDIO with SCORE.

    If SCORE is symbolic (MusicXML, MXL, MEI, Humdrum kern, ABC, MIDI, a match or MuseScore file), every note gets
    its time in seconds. If it is a PDF, an image, several images in order or a folder of images, every second
    gets its place on the pages; scan.pdf#3-7 is a part of a PDF.

    AUDIO is WAV, FLAC, MP3, OGG or whatever libsndfile reads, and with fusili-mir[audio] whatever ffmpeg reads:
    M4A, MP4, WebM, videos. A MIDI file is played with a soundfont; - is standard input.
    """
    from fusili_mir.alignment.swapped_files import refuse_swapped
    from fusili_mir.output.alignment_files import check_formats, write_formats
    from fusili_mir.output.score_with_ids import check_has_ids, save_score_with_ids
    from fusili_mir.pages.pages import check_score
    from fusili_mir.staging import staged_folder
    from fusili_mir.viewer.inputs import INPUTS_FILE, Inputs, save_inputs
    from fusili_mir.viewer.view_page import VIEW_FILE

    said = read_align_options(options)
    with staged_folder(out, force) as folder, plain_warnings():
        refuse_swapped(list(score), audio)
        is_symbolic = check_score(list(score), said.dpi, said.pages)
        check_formats(formats, str(score[0]), is_symbolic)
        if write_score:
            check_has_ids(str(score[0]), is_symbolic)
        aligner = open_aligner(options)
        alignment = aligner.align(list(score), audio, said)
        with stage("writing"):
            write_formats(alignment, folder, formats)
            if VIEW_FILE in {file.name for file in folder.iterdir()} and audio != "-":
                model = None if options["model"] is None else options["model"].absolute()
                inputs = Inputs(score, Path(audio), said, model, formats)
                save_inputs(inputs, folder / INPUTS_FILE, out)
            if write_score:
                save_score_with_ids(alignment.pages, folder / "score.musicxml")
    say_summary(f"{_summary(alignment)} -> {out}")
    return UNRELIABLE_EXIT_CODE if strict and not alignment.is_reliable else 0


def _summary(alignment: Alignment) -> str:
    heard = int(np.isfinite(alignment.notes["onset_sec"]).sum())
    found = f"{len(alignment.frames)} frames"
    if alignment.played is not None:
        found = f"{heard} of {len(alignment.notes)} notes, {found}"
    elif len(alignment.measures):
        found = f"{len(alignment.measures)} measures, {found}"
    if alignment.repeats is not None:
        found += f", repeats: {alignment.repeats}"
    doubt = "" if alignment.is_reliable else ", LOW"
    told = ("found", "given") if alignment.is_reliable else ("found", "given", "unknown")
    if alignment.pitch is not None and alignment.pitch.source in told:
        found += f"; {alignment.pitch.text}"
    return f"{found}; reliability {alignment.reliability:.2f}{doubt}"
