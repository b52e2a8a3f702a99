"""Transposing instruments: how far their notes sound from where they are written."""

from __future__ import annotations

from lxml import etree

from fusili_mir.scores.score_file import ScoreFile

__all__ = ["read_transpositions"]


def read_transpositions(score_file: ScoreFile) -> dict[str, int]:
    """Read how many semitones above the written pitch notes sound.

    Parameters
    ----------
    score_file : ScoreFile
        MusicXML (``<transpose>``, with its octaves) or MEI (``trans.semi``).

    Returns
    -------
    dict from str to int
        Id of the note -> semitones, negative if it sounds lower; only of notes that do not sound as written.
    """
    return _of_mei(score_file) if score_file.kind == "mei" else _of_musicxml(score_file)


def _of_musicxml(score_file: ScoreFile) -> dict[str, int]:
    semitones: dict[str, int] = {}
    for part in score_file.root.findall("part"):
        by_staff: dict[str, int] = {}
        for element in part.iter("transpose", "note"):
            if element.tag == "transpose":
                by_staff[element.get("number", "")] = _chromatic(element)
            elif sounding := by_staff.get(element.findtext("staff", "1"), by_staff.get("", 0)):
                semitones[str(element.get("id"))] = sounding
    return semitones


def _chromatic(transpose: etree._Element) -> int:
    return _whole(transpose.findtext("chromatic")) + 12 * _whole(transpose.findtext("octave-change"))


def _of_mei(score_file: ScoreFile) -> dict[str, int]:
    semitones: dict[str, int] = {}
    by_staff: dict[str, int] = {}
    for element in score_file.root.iter("{*}staffDef", "{*}staff"):
        number = element.get("n", "")
        if str(element.tag).endswith("staffDef"):
            if element.get("trans.semi") is not None:
                by_staff[number] = _whole(element.get("trans.semi"))
        elif sounding := by_staff.get(number, 0):
            for note in element.iter("{*}note"):
                semitones[str(note.get(score_file.id_attribute))] = sounding
    return semitones


def _whole(text: str | None) -> int:
    try:
        return round(float(text or 0))
    except (ValueError, OverflowError):
        return 0
