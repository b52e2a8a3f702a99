"""Writing accidentals that agree with the pitches, so that what is engraved is what sounds.

An accidental applies to its staff position (staff, step and octave) until the end of the measure. A note that is
tied over a bar line does not repeat its accidental, nor does the accidental apply to the notes after it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import suppress
from itertools import groupby

from lxml import etree

from fusili_mir.errors import InputError
from fusili_mir.scores.pitch_names import Key
from fusili_mir.scores.written_notes import WrittenNote, read_written_notes

__all__ = ["add_accidentals", "renew_accidentals"]

_NAMES = {-2: "flat-flat", -1: "flat", 0: "natural", 1: "sharp", 2: "double-sharp"}
_AFTER_ACCIDENTAL = (
    "time-modification",
    "stem",
    "notehead",
    "notehead-text",
    "staff",
    "beam",
    "notations",
    "lyric",
    "play",
    "listen",
)


def add_accidentals(part: etree._Element) -> None:
    """Write the accidentals of a ``<part>`` that has none at all, in place.

    Some programs, and partitura, write which pitch a note has, and leave its accidental to whoever draws it.
    """
    if next(part.iter("accidental"), None) is not None:
        return
    with suppress(InputError):  # of damaged notes, which whoever reads the score reports
        for _, measure in groupby(read_written_notes(part), key=lambda written: written.measure):
            renew_accidentals(list(measure), ())


def renew_accidentals(measure: Sequence[WrittenNote], changed: Collection[str]) -> None:
    """Write the accidentals of a measure, in place.

    Parameters
    ----------
    measure : sequence of WrittenNote
        All notes of one measure of one part.
    changed : collection of str
        Ids of the notes with a new pitch. They lose accidentals that are not needed; other notes keep theirs as
        courtesy accidentals.
    """
    in_force: dict[tuple[int, str, int], float] = {}
    keys: dict[int, Key] = {}
    for note in sorted(measure, key=lambda written: written.onset):
        if keys.setdefault(note.staff, note.key) != note.key:
            keys[note.staff] = note.key
            in_force = {place: alter for place, alter in in_force.items() if place[0] != note.staff}
        place = (note.staff, note.step, note.octave)
        known = in_force.get(place, note.key.alter(note.step))
        mark = note.element.find("accidental")
        if mark is not None and note.element.get("id") in changed:
            note.element.remove(mark)
            mark = None
        if note.tied_back:
            continue
        if known != note.alter and mark is None and note.alter in _NAMES:
            _insert_accidental(note.element, _NAMES[int(note.alter)])
        in_force[place] = note.alter


def _insert_accidental(element: etree._Element, name: str) -> None:
    accidental = etree.Element("accidental")
    accidental.text = name
    later = next(element.iterchildren(*_AFTER_ACCIDENTAL), None)
    if later is None:
        element.append(accidental)
    else:
        later.addprevious(accidental)
