"""A copy of a MusicXML tree that Verovio engraves as it is meant.

Programs leave out what they take for granted: the number of staves, clefs, voices, accidentals, and where tuplets
begin and end. partitura does not need them, but Verovio then draws two staves on one, one voice after the other,
a sharp as a natural, or triplets as plain notes. Percussion and tablature are left out.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator

import numpy as np
from lxml import etree

from fusili_mir.scores.accidentals import add_accidentals
from fusili_mir.scores.pitch_names import STEP_SEMITONES
from fusili_mir.scores.printed_parts import left_out_parts, tablature_staves
from fusili_mir.scores.tuplet_marks import mark_tuplets

__all__ = ["repaired_musicxml"]

# The order of elements in <attributes>; unknown ones come last.
_ATTRIBUTES = (
    "footnote",
    "level",
    "divisions",
    "key",
    "time",
    "staves",
    "part-symbol",
    "instruments",
    "clef",
)
_MIDDLE_C = 60


def repaired_musicxml(root: etree._Element) -> etree._Element:
    """Return a copy of a part-wise score with all of that, without percussion and tablature."""
    root = copy.deepcopy(root)
    left_out = left_out_parts(root)
    for part in root.findall("part"):
        if part.get("id", "") in left_out:
            root.remove(part)
            continue
        _remove_staves(part, tablature_staves(part))
        first = _first_attributes(part)
        if first is not None:
            _state_staves(part, first)
            _state_clefs(part, first)
        add_accidentals(part)
        divisions = 1
        for measure in part.iterchildren("measure"):
            _separate_voices(measure)
            divisions = _integer(measure.findtext("attributes/divisions"), divisions)
            mark_tuplets(measure, divisions)
    part_list = root.find("part-list")
    if part_list is not None and left_out:
        for listed in part_list.findall("score-part"):
            if listed.get("id", "") in left_out:
                part_list.remove(listed)
    return root


def _remove_staves(part: etree._Element, staves: set[int]) -> None:
    """Remove some staves of a part: their notes become silence, and the staves below move up."""
    if not staves:
        return
    moved = {staff: staff - sum(1 for removed in staves if removed < staff) for staff in range(1, 100)}
    for element in list(
        part.iter("note", "forward", "direction", "clef", "staff-details", "key", "transpose")
    ):
        staff = _staff(element)
        parent = element.getparent()
        if parent is None:
            continue
        if staff not in staves:
            _set_staff(element, moved.get(staff, staff))
        elif element.tag == "note":
            _silence(element)
        elif element.tag != "forward":
            parent.remove(element)
    for declared in part.iter("staves"):
        declared.text = str(max(1, _integer(declared.text, 1) - len(staves)))


def _silence(note: etree._Element) -> None:
    """Replace a note by a gap of the same length."""
    parent, duration = note.getparent(), note.findtext("duration")
    if parent is None:
        return
    if duration is not None and note.find("chord") is None and note.find("grace") is None:
        gap = etree.Element("forward")
        etree.SubElement(gap, "duration").text = duration
        note.addprevious(gap)
    parent.remove(note)


def _staff(element: etree._Element) -> int:
    return _integer(element.get("number") or element.findtext("staff"), 1)


def _set_staff(element: etree._Element, staff: int) -> None:
    if element.get("number") is not None and element.tag in ("clef", "staff-details", "key", "transpose"):
        element.set("number", str(staff))
    inner = element.find("staff")
    if inner is not None:
        inner.text = str(staff)


def _first_attributes(part: etree._Element) -> etree._Element | None:
    """Return the attributes with which a part begins; they are made if there are none."""
    measure = part.find("measure")
    if measure is None:
        return None
    for element in measure:
        if element.tag == "attributes":
            return element
        if element.tag in ("note", "backup", "forward"):
            break
    attributes = etree.Element("attributes")
    measure.insert(0, attributes)
    if next(part.iter("divisions"), None) is None:
        etree.SubElement(attributes, "divisions").text = "1"
    return attributes


def _state_staves(part: etree._Element, attributes: etree._Element) -> None:
    used = max((_integer(staff.text, 1) for staff in part.iterfind("measure/note/staff")), default=1)
    declared = attributes.find("staves")
    if declared is None and used > 1:
        declared = etree.Element("staves")
        _insert(attributes, declared)
    if declared is not None and _integer(declared.text, 1) < used:
        declared.text = str(used)


def _state_clefs(part: etree._Element, attributes: etree._Element) -> None:
    """Add a clef to each staff that has none when it begins: treble or bass, as suits its notes."""
    n_staves = max(1, _integer(attributes.findtext("staves"), 1))
    with_clef = {_staff(clef) for other in _leading_attributes(part) for clef in other.iterchildren("clef")}
    for staff in sorted(set(range(1, n_staves + 1)) - with_clef):
        pitches = list(_pitches_before_clef(part, staff))
        bass = bool(pitches) and float(np.median(pitches)) < _MIDDLE_C
        clef = etree.Element("clef", number=str(staff))
        etree.SubElement(clef, "sign").text = "F" if bass else "G"
        etree.SubElement(clef, "line").text = "4" if bass else "2"
        _insert(attributes, clef)


def _leading_attributes(part: etree._Element) -> Iterator[etree._Element]:
    """Yield the attributes at the beginning of a part, before its first note."""
    for element in part.iterfind("measure[1]/*"):
        if element.tag == "attributes":
            yield element
        elif element.tag in ("note", "forward"):
            return


def _pitches_before_clef(part: etree._Element, staff: int) -> Iterator[int]:
    """Yield the MIDI pitches of a staff up to its first clef."""
    for element in part.iterfind("measure/*"):
        if element.tag == "attributes" and any(
            _staff(clef) == staff for clef in element.iterchildren("clef")
        ):
            return
        pitch = element.find("pitch") if element.tag == "note" else None
        if pitch is not None and _staff(element) == staff:
            semitone = STEP_SEMITONES.get((pitch.findtext("step") or "").strip(), 0)
            yield 12 * (_integer(pitch.findtext("octave"), 4) + 1) + semitone


def _insert(attributes: etree._Element, element: etree._Element) -> None:
    """Insert an element where the order of MusicXML puts it."""
    rank = _ATTRIBUTES.index(str(element.tag))
    for place, other in enumerate(attributes):
        if other.tag not in _ATTRIBUTES or _ATTRIBUTES.index(str(other.tag)) > rank:
            attributes.insert(place, element)
            return
    attributes.append(element)


def _separate_voices(measure: etree._Element) -> None:
    """Give notes a voice of their own if they begin before their voice is free.

    Notes without a voice, or with the same one, that a ``<backup>`` puts on top of each other would otherwise be
    drawn one after the other.
    """
    notes = measure.findall("note")
    if measure.find("backup") is None:
        return
    voices = {note.findtext("voice") or "1" for note in notes}
    names = (str(number) for number in range(1, 1000) if str(number) not in voices)
    lanes: dict[tuple[int, str], list[tuple[str, int]]] = {}  # (staff, voice): names and ends of its lanes
    time, chosen = 0, ""
    for element in measure:
        duration = _integer(element.findtext("duration"), 0)
        if element.tag == "backup":
            time = max(0, time - duration)
        elif element.tag == "forward":
            time += duration
        elif element.tag == "note":
            if element.find("chord") is None:
                voice = element.findtext("voice") or "1"
                own = lanes.setdefault((_staff(element), voice), [(voice, 0)])
                lane = next((index for index, (_, end) in enumerate(own) if end <= time), len(own))
                if lane == len(own):
                    own.append((next(names), 0))
                chosen = own[lane][0]
                if element.find("grace") is None:
                    own[lane] = (chosen, time + duration)
                    time += duration
            if chosen != (element.findtext("voice") or "1"):
                _set_voice(element, chosen)


def _set_voice(note: etree._Element, voice: str) -> None:
    element = note.find("voice")
    if element is None:
        element = etree.Element("voice")
        before = (
            "grace",
            "cue",
            "chord",
            "pitch",
            "unpitched",
            "rest",
            "duration",
            "tie",
            "instrument",
            "footnote",
        )
        place = sum(1 for child in note if child.tag in (*before, "level"))
        note.insert(place, element)
    element.text = voice


def _integer(text: str | None, otherwise: int) -> int:
    try:
        return int(float(text or ""))
    except (ValueError, OverflowError):
        return otherwise
