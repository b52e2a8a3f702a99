"""Files that partitura writes and reads: `.match`, and the tables of Parangonada.

Neither can hold every id that a score may have. Where an id would not be read back, another one is written, and a
warning says so.
"""

from __future__ import annotations

import copy
import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import cast

import partitura as pt

from fusili_mir.alignment.results import Alignment
from fusili_mir.boundary import file_name
from fusili_mir.errors import FusiliWarning

__all__ = ["IdWarning", "save_match", "save_parangonada", "writable_ids"]

_PPQ, _MPQ = 1000, 500_000  # ticks of half a millisecond
_SEPARATORS = re.compile(r",")  # of .match files
_SEPARATORS_AND_COMMENTS = re.compile(r"[,#]")  # of NumPy's tables, in which Parangonada's are
_LONGEST_IN_TABLES = 20


class IdWarning(FusiliWarning):
    """Ids that a file cannot hold."""


def save_match(alignment: Alignment, filename: str | Path) -> None:
    """Write score, performance and alignment as a `.match` file."""
    names = writable_ids(alignment.notes["id"].tolist(), _SEPARATORS)
    with _renamed(alignment, names, ".match files") as named:
        assert named.played is not None  # noqa: S101
        pt.save_match(
            named.note_alignment,
            named.performance,
            _with_lasting_maps(named.played.score[0]),
            out=str(filename),
            mpq=_MPQ,
            ppq=_PPQ,
            piece=Path(alignment.pages.filename).stem,
            score_filename=file_name(alignment.pages.filename),
        )


def save_parangonada(alignment: Alignment, folder: str | Path) -> None:
    """Write the five tables of Parangonada."""
    names = writable_ids(alignment.notes["id"].tolist(), _SEPARATORS_AND_COMMENTS, _LONGEST_IN_TABLES)
    with _renamed(alignment, names, "the tables of Parangonada") as named:
        assert named.played is not None  # noqa: S101
        pt.save_parangonada_csv(
            named.note_alignment, named.performance, named.played.score, outdir=str(folder)
        )


def writable_ids(ids: Sequence[str], refused: re.Pattern[str], longest: int | None = None) -> dict[str, str]:
    """Find an id that can be written for each id that cannot.

    Parameters
    ----------
    ids : sequence of str
        All ids, which are unique.
    refused : re.Pattern
        Characters that cannot be written.
    longest : int, optional
        Length up to which ids of performed notes, which are longer by one letter, are read back.

    Returns
    -------
    dict from str to str
        Only ids that change.

    Examples
    --------
    >>> writable_ids(["n1", "n,2", "n_2"], re.compile(","))
    {'n,2': 'n_2_2'}
    """
    room = None if longest is None else longest - 1
    taken = {each for each in ids if not refused.search(each) and (room is None or len(each) <= room)}
    names: dict[str, str] = {}
    for each in ids:
        if each in taken:
            continue
        plain = refused.sub("_", each)
        name, number = plain if room is None else plain[-room:], 1
        while name in taken:
            number += 1
            end = f"_{number}"
            name = plain + end if room is None else plain[-(room - len(end)) :] + end
        taken.add(name)
        names[each] = name
    return names


@contextmanager
def _renamed(alignment: Alignment, names: dict[str, str], where: str) -> Iterator[Alignment]:
    """Provide the alignment under other ids; its score gets them for as long as it is written."""
    if not names:
        yield alignment
        return
    old, new = next(iter(names.items()))
    warnings.warn(
        f"{len(names)} note ids cannot be written to {where} and are replaced there, such as {old!r} by {new!r}",
        IdWarning,
        stacklevel=4,
    )
    notes = alignment.notes.copy()
    notes["id"] = [names.get(each, each) for each in notes["id"].tolist()]
    assert alignment.played is not None  # noqa: S101
    heads = [note for part in alignment.played.score.parts for note in part.notes if note.id in names]
    given = [note.id for note in heads]
    try:
        for note in heads:
            note.id = names[note.id]
        yield replace(alignment, notes=notes)
    finally:
        for note, note_id in zip(heads, given, strict=True):
            note.id = note_id


class _LastingMaps(pt.score.Part):  # type: ignore[misc]
    """A part that computes its maps once: partitura computes them again for every measure that it writes."""

    time_signature_map = cached_property(pt.score.Part.time_signature_map.fget)
    quarter_duration_map = cached_property(pt.score.Part.quarter_duration_map.fget)


def _with_lasting_maps(part: pt.score.Part) -> _LastingMaps:
    lasting = copy.copy(part)
    lasting.__class__ = _LastingMaps
    return cast(_LastingMaps, lasting)
