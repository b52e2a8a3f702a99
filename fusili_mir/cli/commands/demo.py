"""`fusili-mir demo`: align the example of the package, measure the errors and write the results."""

from __future__ import annotations

import shlex
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fusili_mir.cli.verbosity import plain_warnings, say_summary

if TYPE_CHECKING:
    from fusili_mir.demo.demonstration import Demonstration
    from fusili_mir.demo.example import Example

__all__ = ["command"]

_TOLERANCES_MS = (25, 50, 100, 250)


@click.command(name="demo")
@click.option(
    "-o",
    "--out",
    type=click.Path(path_type=Path),
    default=Path("demo"),
    show_default=True,
    help="Folder to write into.",
)
@click.option(
    "--model",
    type=click.Path(path_type=Path),
    metavar="BUNDLE",
    help="Folder of the model.  [default: the installed one]",
)
@click.option("--force", is_flag=True, help="Replace files in a folder that is not empty.")
def command(out: Path, model: Path | None, force: bool) -> None:
    """Align a song that comes with the package, and report the errors.

    A recording of the song is aligned twice: with its symbolic score, and with an image of the page alone. Both
    results are compared with the true onsets, and written in all formats of `fusili-mir align`.
    """
    from fusili_mir.demo.demonstration import check_demo_folder, demonstrate
    from fusili_mir.demo.example import load_example
    from fusili_mir.model.opened_encoder import as_encoder

    check_demo_folder(out, force)
    encoder = as_encoder(model)
    encoder.check()
    example = load_example()
    with plain_warnings():
        from_score, from_image = demonstrate(example, encoder, out, force)
    paragraphs = (
        _piece(example, from_score),
        _errors({"with the symbolic score": from_score, "with the page image alone": from_image}),
        _files(from_score, from_image),
        _next_commands(example, model),
    )
    say_summary("\n\n".join(paragraphs))


def _piece(example: Example, from_score: Demonstration) -> str:
    n_measures = len(from_score.alignment.pages.measures)
    duration_sec = from_score.alignment.grid.end_sec
    return (
        f"{example.title}: {n_measures} measures.\n"
        f"Aligned twice with a recording of {duration_sec:.0f} s, in which {len(example.truth)} notes are struck."
    )


def _errors(ways: dict[str, Demonstration]) -> str:
    def line(title: str, *cells: str) -> str:
        return f"  {title:<26}" + "".join(f"{cell:>8}" for cell in cells)

    *others, last = _TOLERANCES_MS
    lines = [
        "How far the onsets found are from the true ones: the median error, and the",
        f"share of notes with an error of at most {', '.join(map(str, others))} or {last} ms",
        line("", "median", *(f"{ms} ms" for ms in _TOLERANCES_MS), "took"),
    ]
    for title, way in ways.items():
        shares = (f"{100 * way.errors.share_within(ms):.0f} %" for ms in _TOLERANCES_MS)
        lines.append(line(title, f"{way.errors.median_ms:.0f} ms", *shares, f"{way.elapsed_sec:.1f} s"))
    return "\n".join(lines)


def _files(from_score: Demonstration, from_image: Demonstration) -> str:
    shown = {
        from_score.folder / "view.html": "the score, to look at and listen to",
        from_image.folder / "view.html": "the same with the page image alone",
        from_image.folder / "overlay-001.png": "the page, with a line for each measure",
        from_score.folder / "similarity.png": "similarity matrix, with the path",
        from_score.folder / "alignment.match": "for partitura; also CSV, MIDI and JSON",
    }
    width = max(len(str(file)) for file in shown)
    return "\n".join(("Look at", *(f"  {file!s:<{width}}  {text}" for file, text in shown.items())))


def _next_commands(example: Example, model: Path | None) -> str:
    program = "fusili-mir" if shutil.which("fusili-mir") else shlex.quote(sys.argv[0])
    with_model = f" --model {shlex.quote(str(model))}" if model else ""
    page, recording = (shlex.quote(str(file)) for file in (example.page, example.recording))
    return "\n".join(
        (
            "Try next",
            f"  {program} point {page} {recording} --time 12.5{with_model}",
            f"  {program} align YOUR_SCORE YOUR_RECORDING -o out{with_model}",
            "The first finds the spot that sounds at 12.5 s. In the second, YOUR_SCORE is",
            "MusicXML, MXL, MEI, a PDF or images; YOUR_RECORDING is WAV, FLAC, MP3, OGG, ...",
        )
    )
