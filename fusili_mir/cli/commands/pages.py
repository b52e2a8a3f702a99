"""`fusili-mir pages`: what is found on the pages of a score."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

import click

from fusili_mir.cli.verbosity import plain_warnings, say_summary
from fusili_mir.output.page_files import write_pages
from fusili_mir.output.score_with_ids import check_has_ids, save_score_with_ids
from fusili_mir.pages.engraving import Breaks, EngravingOptions, MusicFont
from fusili_mir.pages.pages import Pages, open_pages
from fusili_mir.staging import check_output_folder, staged_folder

__all__ = ["command"]


@click.command(name="pages")
@click.argument("score", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("-o", "--out", required=True, type=click.Path(path_type=Path), help="Folder to write into.")
@click.option("--force", is_flag=True, help="Replace files in a folder that is not empty.")
@click.option(
    "--pages",
    "page_range",
    metavar="PAGES",
    help="Pages to use, such as 3-7 or 1,3-5; only for scores that are images.",
)
@click.option(
    "--dpi", type=float, help="Resolution. [default: 200 for a PDF, 10 pixels per staff space otherwise]"
)
@click.option(
    "--font", type=click.Choice(get_args(MusicFont)), default="Leipzig", show_default=True, help="Music font."
)
@click.option(
    "--breaks",
    type=click.Choice(get_args(Breaks)),
    default="auto",
    show_default=True,
    help="Where systems and pages end.",
)
@click.option(
    "--staff-height-mm", type=float, default=7.2, show_default=True, help="Height of a staff on the paper."
)
@click.option(
    "--page-size-mm",
    type=(float, float),
    default=(210, 297),
    show_default=True,
    metavar="WIDTH HEIGHT",
    help="Size of the paper.",
)
@click.option(
    "--write-score", is_flag=True, help="Write score.musicxml, too: the score with the ids of its notes."
)
def command(
    score: tuple[Path, ...],
    out: Path,
    force: bool,
    page_range: str | None,
    dpi: float | None,
    write_score: bool,
    **engraving: Any,
) -> None:
    """Write the pages of SCORE as images, with an overlay that shows what was found on them.

    If SCORE is symbolic (MusicXML, MXL, MEI, Humdrum kern, ABC, MIDI, a match or MuseScore file), it is engraved,
    and its notes are known, too. If it is a PDF, an image, several images in order or a folder of images, its
    systems are located, and its bar lines, repeat signs and endings are read; scan.pdf#3-7 is a part of a PDF.
    Font, breaks and sizes apply to engraving.
    """
    width_mm, height_mm = engraving.pop("page_size_mm")
    options = EngravingOptions(page_width_mm=width_mm, page_height_mm=height_mm, dpi=dpi, **engraving)
    check_output_folder(out, force)
    with plain_warnings():
        pages = open_pages(list(score), options, dpi or 200.0, progress=True, pages=page_range)
        if write_score:
            check_has_ids(pages.filename, pages.score is not None)
        with staged_folder(out, force) as folder:
            write_pages(pages, folder, progress=True)
            if write_score:
                save_score_with_ids(pages, folder / "score.musicxml")
    say_summary(f"{_summary(pages)} -> {out}")


def _summary(pages: Pages) -> str:
    counts = [
        (len(pages.images), "page", "pages"),
        (len(pages.systems), "system", "systems"),
        (len(pages.staves), "staff", "staves"),
    ]
    counts.append((len(pages.measures), "measure", "measures"))
    if pages.score is not None:
        counts.append((len(pages.notes), "note head", "note heads"))
    elif pages.repeats is not None:
        counts.append((len(pages.repeats.ends), "repeat", "repeats"))
        counts.append((len(pages.repeats.endings), "ending", "endings"))
    summary = ", ".join(f"{number} {one if number == 1 else many}" for number, one, many in counts)
    empty = sorted(set(range(len(pages.images))) - set(pages.systems["page"].tolist()))
    if empty:
        summary += f" (no music found on page {', '.join(str(page + 1) for page in empty)})"
    return summary
