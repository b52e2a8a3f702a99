"""Writing alignments: one file for each program that reads them.

Pages, systems and measures are counted from 0, as in `fusili_mir.boxes`; the column `measure` of the tables holds
the printed measure number.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from fusili_mir.alignment.results import Alignment
from fusili_mir.argument_kinds import checked
from fusili_mir.errors import InputError, OutputError, option
from fusili_mir.output.alignment_json import save_alignment_json
from fusili_mir.output.alignment_tables import save_frames_csv, save_measures_csv, save_notes_csv
from fusili_mir.output.alphatab_sync import save_sync_points
from fusili_mir.output.label_files import save_audacity_labels, save_sonic_visualiser
from fusili_mir.output.mei_recording import save_mei
from fusili_mir.output.partitura_files import save_match, save_parangonada
from fusili_mir.output.performance_midi import save_performance_midi
from fusili_mir.output.piano_precision import save_piano_precision_csv
from fusili_mir.output.similarity_image import draw_similarity
from fusili_mir.output.time_overlay import draw_times, overlaid_pages
from fusili_mir.output.verovio_timemap import save_timemap
from fusili_mir.pages.original_pages import original_image, page_origin, rgb_image
from fusili_mir.staging import staged_folder
from fusili_mir.viewer.view_page import VIEW_FILE, save_view

__all__ = ["ALIGNMENT_FORMATS", "check_formats", "save_alignment", "write_formats"]

_PNG_MODES = ("1", "L", "LA", "P", "RGB", "RGBA", "I;16")  # what PNG holds without loss


@dataclass(frozen=True)
class _Format:
    """How one kind of file is written into a folder.

    Attributes
    ----------
    save : callable
        Writes an alignment into a folder.
    needs : "notes", "measures" or "frames"
        What must be known of the score; frames always are.
    is_default : bool
        Whether it is written if no format is asked for.
    """

    save: Callable[[Alignment, Path], None]
    needs: Literal["notes", "measures", "frames"]
    is_default: bool = True


def _save_similarity(alignment: Alignment, folder: Path) -> None:
    draw_similarity(alignment).save(folder / "similarity.png")


def _save_overlays(alignment: Alignment, folder: Path) -> None:
    """Write a picture of each page that the recording reaches."""
    for page in overlaid_pages(alignment):
        draw_times(alignment, page).save(folder / f"overlay-{page + 1:03d}.png")


def _save_pages(alignment: Alignment, folder: Path) -> None:
    """Write all pages without loss, as they are in their files: the images that places refer to."""
    for page in range(len(alignment.pages.images)):
        image = original_image(alignment.pages, page)
        dpi = page_origin(alignment.pages, page).dpi
        kept = image if image.mode in _PNG_MODES else rgb_image(image)
        kept.save(folder / f"page-{page + 1:03d}.png", dpi=(dpi, dpi) if dpi else kept.info.get("dpi"))


def _to(name: str, save: Callable[[Alignment, Path], None]) -> Callable[[Alignment, Path], None]:
    """Return a writer into a folder from a writer of one file of this name."""
    return lambda alignment, folder: save(alignment, folder / name)


_FORMATS = {
    "html": _Format(_to(VIEW_FILE, save_view), needs="frames"),
    "overlay": _Format(_save_overlays, needs="frames"),
    "pages": _Format(_save_pages, needs="frames", is_default=False),
    "match": _Format(_to("alignment.match", save_match), needs="notes"),
    "parangonada": _Format(save_parangonada, needs="notes"),
    "midi": _Format(_to("performance.mid", save_performance_midi), needs="notes"),
    "mei": _Format(_to("recording.mei", save_mei), needs="notes"),
    "timemap": _Format(_to("timemap.json", save_timemap), needs="notes"),
    "alphatab": _Format(_to("alphatab-sync.json", save_sync_points), needs="measures"),
    "piano-precision": _Format(_to("piano-precision.csv", save_piano_precision_csv), needs="notes"),
    "notes": _Format(_to("notes.csv", save_notes_csv), needs="notes"),
    "measures": _Format(_to("measures.csv", save_measures_csv), needs="measures"),
    "frames": _Format(_to("frames.csv", save_frames_csv), needs="frames"),
    "audacity": _Format(_to("labels.txt", save_audacity_labels), needs="frames"),
    "sonic-visualiser": _Format(save_sonic_visualiser, needs="frames"),
    "json": _Format(_to("alignment.json", save_alignment_json), needs="frames"),
    "similarity": _Format(_save_similarity, needs="frames"),
}

ALIGNMENT_FORMATS = tuple(_FORMATS)
"""What `save_alignment` can write."""


def check_formats(
    formats: Sequence[str], filename: str, has_notes: bool, has_measures: bool | None = None
) -> tuple[str, ...]:
    """Check the requested formats before any work is done; if there are none, return all defaults that apply.

    Parameters
    ----------
    formats : sequence of str
        Some of `ALIGNMENT_FORMATS`, or none.
    filename : str
        Name of the score, for messages.
    has_notes : bool
        Whether the score is symbolic.
    has_measures : bool, optional
        Whether the measures of its pages are known; by default they are.

    Returns
    -------
    tuple of str

    Examples
    --------
    >>> check_formats((), "scan.pdf", has_notes=False)
    ('html', 'overlay', 'alphatab', 'measures', 'frames', 'audacity', 'sonic-visualiser', 'json', 'similarity')
    """
    unknown = [name for name in formats if name not in _FORMATS]
    if unknown:
        raise InputError(f"format {unknown[0]!r}, expected some of {', '.join(_FORMATS)}")
    known = {"frames": True, "notes": has_notes, "measures": has_notes or has_measures is not False}
    possible = [name for name, each in _FORMATS.items() if known[each.needs]]
    if not formats:
        return tuple(name for name in possible if _FORMATS[name].is_default)
    refused = [name for name in formats if name not in possible]
    if refused:
        raise InputError(
            f"{filename}: a score of images has no {_FORMATS[refused[0]].needs} to write as {refused[0]}; give "
            f"MusicXML, MXL or MEI, or ask for {', '.join(possible)}"
        )
    return tuple(dict.fromkeys(formats))


@checked
def save_alignment(
    alignment: Alignment, out: str | Path, formats: Sequence[str] = (), force: bool = False
) -> None:
    """Write an alignment into a folder.

    Parameters
    ----------
    alignment : Alignment
    out : str or Path
        The folder. Incomplete files are never left in it.
    formats : sequence of str
        Some of `ALIGNMENT_FORMATS`; by default all that apply but "pages", which are copies of the user's own
        pages. Without a symbolic score there are no notes, and formats that need them are refused.
    force : bool
        Whether files in a folder that is not empty may be replaced.
    """
    _check(alignment, formats)
    with staged_folder(out, force) as folder:
        write_formats(alignment, folder, formats)


def write_formats(alignment: Alignment, folder: Path, formats: Sequence[str] = ()) -> None:
    """Write formats, by default all that apply, into an existing folder."""
    for name in _check(alignment, formats):
        try:
            _FORMATS[name].save(alignment, folder)
        except (ValueError, IndexError, KeyError) as error:  # partitura's writers, on unusual scores
            raise OutputError(
                f"the alignment cannot be written as {name} ({type(error).__name__}: {error}); "
                f"choose other formats with {option('--format', 'formats')}"
            ) from error


def _check(alignment: Alignment, formats: Sequence[str]) -> tuple[str, ...]:
    has_notes, has_measures = alignment.played is not None, bool(len(alignment.measures))
    chosen = check_formats(formats, alignment.pages.filename, has_notes, has_measures)
    if not formats and alignment.pages.score_file is None:
        return tuple(name for name in chosen if name != "mei")
    return chosen
