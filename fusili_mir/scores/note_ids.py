"""The ids of notes: those that `partitura.load_score` gives to the notes of the same file.

The rule
--------
1. A note keeps the id that the file gives it, whatever its length and characters.
2. A note without one gets partitura's name ``p<part>n<index>``: its part, and its place among the notes and
   rests of that part, both counted from 0.
3. If several notes have the same id, the first one keeps it, and the others get ``_2``, ``_3``, ... at its end,
   as `partitura.save_musicxml` writes them. Notes are counted part by part, and by onset within a part.
4. Unfolding adds ``-1``, ``-2``, ... for each time that a note is played, as partitura does.

Join with ``part.note_array()``, or with ``score.note_array(unique_id_per_part=False)``: by default, partitura
puts ``P00_``, ``P01_``, ... before the ids in the note array of a score with several parts. The ids are those of
``partitura.load_score(file)``, not those of ``load_score(file, force_note_ids=True)``, which drops the ids of the
file and counts all notes anew (``n0``, ``n1``, ...). An MEI file without ids cannot be joined: partitura lets
Verovio make up ids, others each time. `save_score_with_ids` writes a score whose ids stay.

Verovio needs ids that are unique and valid in XML, so it engraves a copy of the score with ids of its own. These
are internal: no result contains them.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping

import partitura as pt

from fusili_mir.scores.score_warning import ScoreWarning

__all__ = ["LONGEST_ID", "name_notes"]

LONGEST_ID = 240
"""Longest id in characters. partitura's note arrays hold 256, and unfolding adds some."""


def name_notes(score: pt.score.Score, given: Mapping[str, str | None], filename: str) -> dict[str, str]:
    """Give the notes of a score the ids that partitura gives them, made unique.

    Parameters
    ----------
    score : partitura.score.Score
        Score whose notes have internal ids, or none. It is changed in place.
    given : mapping from str to str or None
        Internal id -> id in the file, None if the file gives none. An internal id that is missing here is itself
        the id in the file.
    filename : str
        Name of the score, for messages.

    Returns
    -------
    dict from str to str
        Internal id -> id of the note, for all notes with a pitch.

    Warns
    -----
    ScoreWarning
        If several notes have the same id, or if an id is too long for partitura's note arrays.
    """
    internal: list[tuple[str, pt.score.GenericNote]] = []
    too_long = 0
    for part in score.parts:
        for note in part.iter_all(pt.score.GenericNote, include_subclasses=True):
            if note.id is None:
                continue
            own = str(note.id)
            if isinstance(note, pt.score.Note):
                internal.append((own, note))
            note.id = given.get(own, own)
            if note.id is not None and len(note.id) > LONGEST_ID:
                note.id, too_long = None, too_long + 1
    pt.score.assign_note_ids(score.parts, keep=True)
    if too_long:
        warnings.warn(
            f"{filename}: {too_long} ids have more than {LONGEST_ID} characters, which partitura's note arrays "
            "cut off; these notes are named as if they had none (p0n0, ...)",
            ScoreWarning,
            stacklevel=2,
        )
    _make_unique((note for part in score.parts for note in part.notes), filename)
    return {own: str(note.id) for own, note in internal}


def _make_unique(notes: Iterable[pt.score.Note], filename: str) -> None:
    times: dict[str, int] = {}
    doubled = []
    for note in notes:
        if note.id in times:
            doubled.append(note)
        times.setdefault(note.id, 1)
    renamed = ""
    for note in doubled:
        first = str(note.id)
        while note.id in times:
            times[first] += 1
            note.id = f"{first}_{times[first]}"
        times[note.id] = 1
        renamed = renamed or f"{first!r}, and now {note.id!r}"
    if doubled:
        warnings.warn(
            f"{filename}: {len(doubled)} notes have the id of an earlier note ({renamed}, ...); the first note "
            "keeps the id, the others get _2, _3, ... at its end",
            ScoreWarning,
            stacklevel=3,
        )
