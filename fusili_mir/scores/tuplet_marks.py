"""Tuplets of MusicXML that say how long their notes are, but not where they begin and end."""

from __future__ import annotations

from fractions import Fraction

from lxml import etree

__all__ = ["mark_tuplets"]


def mark_tuplets(measure: etree._Element, divisions: int) -> None:
    """Mark the beginnings and ends of the tuplets of a measure that has no marks for them, in place.

    Verovio ignores the ``<time-modification>`` of notes without such marks. A tuplet ends where the notes since
    its beginning add up to a binary fraction of a quarter.

    Parameters
    ----------
    measure : lxml element
        A measure of one part.
    divisions : int
        Divisions of a quarter.
    """
    if measure.find("note/time-modification") is None:
        return
    voices: dict[tuple[str, str], list[etree._Element]] = {}
    for note in measure.iterchildren("note"):
        if note.find("chord") is None and note.find("grace") is None:
            voices.setdefault((note.findtext("staff") or "1", note.findtext("voice") or "1"), []).append(note)
    for notes in voices.values():
        if any(note.find("notations/tuplet") is not None for note in notes):
            continue
        run: list[etree._Element] = []
        total = Fraction(0)
        for note in notes:
            if run and _ratio(note) != _ratio(run[-1]):
                _mark(run)
                run, total = [], Fraction(0)
            if _ratio(note) == 1:
                continue
            run.append(note)
            total += Fraction(int(note.findtext("duration") or 0), max(1, divisions))
            if total.denominator & (total.denominator - 1) == 0:
                _mark(run)
                run, total = [], Fraction(0)
        _mark(run)


def _ratio(note: etree._Element) -> Fraction:
    """Return how many notes a tuplet puts in the time of one; 1 outside of tuplets."""
    texts = [note.findtext(f"time-modification/{name}") or "1" for name in ("actual-notes", "normal-notes")]
    actual, normal = (int(text) if text.strip().isdecimal() else 1 for text in texts)
    ratio = Fraction(max(1, actual), max(1, normal))
    is_half_a_tremolo = any(
        tremolo.get("type") in ("start", "stop") for tremolo in note.iterfind("notations/ornaments/tremolo")
    )
    return ratio / 2 if is_half_a_tremolo and ratio > 1 else ratio  # each of its two notes is written in full


def _mark(run: list[etree._Element]) -> None:
    if not run:
        return
    for note, kind in ((run[0], "start"), (run[-1], "stop")):
        notations = note.find("notations")
        if notations is None:
            notations = etree.SubElement(note, "notations")
        etree.SubElement(notations, "tuplet", {"type": kind, "bracket": "no", "show-number": "none"})
