"""Writing alignments: one file for each program that reads them.

Pages, systems and measures are counted from 0, as in `fusili_mir.boxes`; the column `measure` of the tables holds
the printed measure number.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import cast

import partitura as pt

from fusili_mir.alignment.results import Alignment
from fusili_mir.errors import InputError, OutputError
from fusili_mir.output.alignment_json import save_alignment_json
from fusili_mir.output.alignment_tables import save_frames_csv, save_measures_csv, save_notes_csv
from fusili_mir.output.label_files import save_audacity_labels, save_sonic_visualiser_csv
from fusili_mir.output.similarity_image import draw_similarity
from fusili_mir.staging import staged_folder

__all__ = ["ALIGNMENT_FORMATS", "check_formats", "save_alignment", "write_formats"]

_PPQ, _MPQ = 1000, 500_000  # ticks of half a millisecond


@dataclass(frozen=True)
class _Format:
    """How one kind of file is written into a folder, and whether it needs the notes of a symbolic score."""

    save: Callable[[Alignment, Path], None]
    needs_notes: bool


class _LastingMaps(pt.score.Part):  # type: ignore[misc]
    """A part that computes its maps once: partitura computes them again for every measure that it writes."""

    time_signature_map = cached_property(pt.score.Part.time_signature_map.fget)
    quarter_duration_map = cached_property(pt.score.Part.quarter_duration_map.fget)


def _with_lasting_maps(part: pt.score.Part) -> _LastingMaps:
    lasting = copy.copy(part)
    lasting.__class__ = _LastingMaps
    return cast(_LastingMaps, lasting)


def _save_match(alignment: Alignment, folder: Path) -> None:
    assert alignment.played is not None  # noqa: S101
    pt.save_match(
        alignment.note_alignment,
        alignment.performance,
        _with_lasting_maps(alignment.played.score[0]),
        out=str(folder / "alignment.match"),
        mpq=_MPQ,
        ppq=_PPQ,
        piece=Path(alignment.pages.filename).stem,
        score_filename=Path(alignment.pages.filename).name,
    )


def _save_parangonada(alignment: Alignment, folder: Path) -> None:
    assert alignment.played is not None  # noqa: S101
    pt.save_parangonada_csv(
        alignment.note_alignment, alignment.performance, alignment.played.score, outdir=str(folder)
    )


def _save_midi(alignment: Alignment, folder: Path) -> None:
    pt.save_performance_midi(alignment.performance, str(folder / "performance.mid"), mpq=_MPQ, ppq=_PPQ)


def _save_similarity(alignment: Alignment, folder: Path) -> None:
    draw_similarity(alignment).save(folder / "similarity.png")


_FORMATS = {
    "match": _Format(_save_match, needs_notes=True),
    "parangonada": _Format(_save_parangonada, needs_notes=True),
    "midi": _Format(_save_midi, needs_notes=True),
    "notes": _Format(lambda a, folder: save_notes_csv(a, folder / "notes.csv"), needs_notes=True),
    "measures": _Format(lambda a, folder: save_measures_csv(a, folder / "measures.csv"), needs_notes=True),
    "frames": _Format(lambda a, folder: save_frames_csv(a, folder / "frames.csv"), needs_notes=False),
    "audacity": _Format(lambda a, folder: save_audacity_labels(a, folder / "labels.txt"), needs_notes=False),
    "sonic-visualiser": _Format(
        lambda a, folder: save_sonic_visualiser_csv(a, folder / "sonic-visualiser.csv"), needs_notes=False
    ),
    "json": _Format(lambda a, folder: save_alignment_json(a, folder / "alignment.json"), needs_notes=False),
    "similarity": _Format(_save_similarity, needs_notes=False),
}

ALIGNMENT_FORMATS = tuple(_FORMATS)
"""What `save_alignment` can write."""


def check_formats(formats: Sequence[str], filename: str, has_notes: bool) -> tuple[str, ...]:
    """Check the requested formats before any work is done; if there are none, return all that apply.

    >>> check_formats((), "scan.pdf", has_notes=False)
    ('frames', 'audacity', 'sonic-visualiser', 'json', 'similarity')
    """
    unknown = [name for name in formats if name not in _FORMATS]
    if unknown:
        raise InputError(f"format {unknown[0]!r}, expected some of {', '.join(_FORMATS)}")
    if not formats:
        return tuple(name for name, each in _FORMATS.items() if has_notes or not each.needs_notes)
    refused = [name for name in formats if _FORMATS[name].needs_notes and not has_notes]
    if refused:
        raise InputError(
            f"{filename}: a score of images has no notes to write as {refused[0]}; give MusicXML, MXL or MEI, "
            f"or ask for {', '.join(name for name, each in _FORMATS.items() if not each.needs_notes)}"
        )
    return tuple(dict.fromkeys(formats))


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
        Some of `ALIGNMENT_FORMATS`; by default all that apply. Without a symbolic score there are no notes, and
        formats that need them are refused.
    force : bool
        Whether files in a folder that is not empty may be replaced.
    """
    chosen = check_formats(formats, alignment.pages.filename, alignment.played is not None)
    with staged_folder(out, force) as folder:
        write_formats(alignment, folder, chosen)


def write_formats(alignment: Alignment, folder: Path, formats: Sequence[str]) -> None:
    """Write formats that have been checked into an existing folder."""
    for name in formats:
        try:
            _FORMATS[name].save(alignment, folder)
        except (ValueError, IndexError, KeyError) as error:  # partitura's writers, on unusual scores
            raise OutputError(
                f"the alignment cannot be written as {name} ({type(error).__name__}: {error}); "
                "choose other formats with --format"
            ) from error
