"""Reading untrusted symbolic score files, and giving every note an id that is valid in XML.

MusicXML (plain, or compressed as MXL) and MEI are read into a tree. Notes keep the ids of the file if these are
unique and safe; the others get new ones. The file itself is never changed: partitura and Verovio both read copies
of the tree, and so agree on which note is which. These ids are internal; `fusili_mir.scores.note_ids` says which
ids the results have.
"""

from __future__ import annotations

import codecs
import re
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from lxml import etree

from fusili_mir.brought_files import is_picture, is_sound, refuse_project
from fusili_mir.errors import InputError
from fusili_mir.scores.mei_readings import music_of, take_first_movement, take_first_readings
from fusili_mir.scores.musicxml_repair import repaired_musicxml
from fusili_mir.scores.printed_parts import left_out_parts
from fusili_mir.scores.score_formats import SCORE_FORMATS
from fusili_mir.scores.score_limits import check_score_numbers
from fusili_mir.scores.score_warning import ScoreWarning
from fusili_mir.scores.untrusted_xml import parse_xml, read_bytes, read_mxl

__all__ = ["ScoreFile", "is_safe_id", "parse_score", "read_score_file"]

_MEI = "{http://www.music-encoding.org/ns/mei}"
_XML_ID = "{http://www.w3.org/XML/1998/namespace}id"

_READABLE_ACCIDENTALS = ("sharp", "natural", "flat", "double-sharp", "double-flat")
_XML_OR_ZIP = (b"<", b"PK", codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_SAFE_ID = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,15}")


def is_safe_id(note_id: str) -> bool:
    """Return whether Verovio keeps an id unchanged, whatever the format of the score.

    >>> [is_safe_id(note_id) for note_id in ("n12", "12", "n1,2")]
    [True, False, False]
    """
    return _SAFE_ID.fullmatch(note_id) is not None


@dataclass(frozen=True)
class ScoreFile:
    """A symbolic score in which every note has a unique id.

    Attributes
    ----------
    filename : str
        Name of the file it was read from, for messages.
    kind : "musicxml" or "mei"
        Format of the tree.
    root : lxml element
        Root of the tree: ``score-partwise`` or ``mei``.
    given_ids : mapping from str to str or None
        Id of a note in the tree -> its id in the file, if the two differ; None if the file gives none.
    """

    filename: str
    kind: Literal["musicxml", "mei"]
    root: etree._Element
    given_ids: Mapping[str, str | None] = field(default_factory=dict)

    def to_bytes(self) -> bytes:
        """Return the whole score as UTF-8 XML, without a document type declaration."""
        return etree.tostring(self.root, encoding="UTF-8", xml_declaration=True)

    def to_engrave(self) -> bytes:
        """Return the score as UTF-8 XML for Verovio: repaired, without percussion and tablature."""
        root = repaired_musicxml(self.root) if self.kind == "musicxml" else self.root
        return etree.tostring(root, encoding="UTF-8", xml_declaration=True)

    def notes(self) -> Iterator[etree._Element]:
        """Yield the note elements in the order of the file, without rests."""
        return _notes(self.root, self.kind)

    @property
    def may_cross_staves(self) -> bool:
        """Whether notes may be drawn on another staff than that of their voice: where a part has several."""
        if self.kind == "musicxml":
            return any(staff.text != "1" for staff in self.root.iter("staff"))
        return any(element.get("staff") for element in self.root.iter(f"{_MEI}note", f"{_MEI}chord"))

    @property
    def id_attribute(self) -> str:
        """Name of the attribute that holds the id of an element."""
        return _id_attribute(self.kind)

    def with_note_ids(self, ids: Mapping[str, str]) -> ScoreFile:
        """Return the score with other ids on its notes: id in this tree -> id in the result.

        The tree is the same one and is changed, so this score must not be used any more.
        """
        attribute = self.id_attribute
        renamed = {}
        for note in self.notes():
            old = str(note.get(attribute))
            if ids.get(old, old) != old:
                note.set(attribute, ids[old])
                renamed[f"#{old}"] = f"#{ids[old]}"
        if renamed and self.kind == "mei":
            _follow_renaming(self.root, renamed)
        return ScoreFile(self.filename, self.kind, self.root)

    def measure_ids(self) -> list[str]:
        """Return the ids of the measures of the score (in MusicXML, of its first printed part), in order."""
        return [str(measure.get(self.id_attribute)) for measure in _measures(self.root, self.kind)]

    def measure_numbers(self) -> list[str]:
        """Return the numbers of the measures as the score gives them: a pick-up may be "0" or "X1"."""
        name = "number" if self.kind == "musicxml" else "n"
        return [measure.get(name, "") for measure in _measures(self.root, self.kind)]


def read_score_file(filename: str | Path) -> ScoreFile:
    """Read a MusicXML, MXL or MEI file, recognised by its content and not by its name.

    Parameters
    ----------
    filename : str or Path

    Returns
    -------
    ScoreFile
        The score with an id on every note and every measure.

    Raises
    ------
    InputError
        If the file is missing, too large, not a score, or has no notes with a pitch.
    """
    data = read_bytes(filename)
    if not data.lstrip().startswith(_XML_OR_ZIP):
        refuse_project(filename)
        found = (
            "a recording" if is_sound(filename) else "an image" if is_picture(filename) else "another file"
        )
        raise InputError(f"{filename}: {found}; expected a symbolic score: {SCORE_FORMATS}")
    return parse_score(read_mxl(data, str(filename)) if data.startswith(b"PK") else data, str(filename))


def parse_score(data: bytes, filename: str) -> ScoreFile:
    """Read MusicXML or MEI from memory.

    Parameters
    ----------
    data : bytes
        The XML document.
    filename : str
        Name of the score, for messages.

    Returns
    -------
    ScoreFile
    """
    root = parse_xml(data, filename)
    tag = str(root.tag)
    kind: Literal["musicxml", "mei"] = "mei" if tag in (f"{_MEI}mei", "mei") else "musicxml"
    if tag == "score-timewise":
        root = _partwise(root)
    elif kind == "musicxml" and tag != "score-partwise":
        raise InputError(
            f"{filename}: found XML with root <{tag[:40]}>, expected a score "
            "(<score-partwise> for MusicXML, <mei> in its namespace for MEI)"
        )
    check_score_numbers(root, filename)
    if kind == "mei":
        _prepare_mei(root, filename)
    if not any(_has_pitch(note) for note in _notes(root, kind)):
        n_unpitched = sum(1 for _ in _notes(root, kind))
        raise InputError(
            f"{filename}: no note with a pitch was found ({n_unpitched} unpitched); "
            "expected a score with at least one"
        )
    if kind == "musicxml" and len(left_out_parts(root)) == len(root.findall("part")):
        raise InputError(
            f"{filename}: all parts are percussion or tablature; expected a part with notes on a staff"
        )
    given_ids = _assign_ids(root, kind)
    _drop_signs_as_fingerings(root)
    _drop_repeat_counts(root)
    _state_alterations(root)
    return ScoreFile(filename, kind, root, given_ids)


def _partwise(timewise: etree._Element) -> etree._Element:
    """Turn a time-wise score (measures of parts) into a part-wise one (parts of measures)."""
    partwise = etree.Element("score-partwise", timewise.attrib)
    parts: dict[str, etree._Element] = {}
    for child in timewise:
        if child.tag != "measure":
            partwise.append(child)
            continue
        for part in child.findall("part"):
            part_id = part.get("id", "")
            if part_id not in parts:
                parts[part_id] = etree.Element("part", id=part_id)
            measure = etree.SubElement(parts[part_id], "measure", child.attrib)
            measure.extend(list(part))
    partwise.extend(parts.values())
    return partwise


def _prepare_mei(root: etree._Element, filename: str) -> None:
    """Reduce MEI to one movement and one reading, and state the number of staff lines."""
    n_movements = take_first_movement(root)
    if n_movements > 1:
        warnings.warn(
            f"{filename}: found {n_movements} movements or tunes, and took the first; save each as a file",
            ScoreWarning,
            stacklevel=4,
        )
    take_first_readings(root)
    for definition in music_of(root).iter("{*}staffDef"):
        if definition.get("lines") is None and definition.get("notationtype") in (None, "cmn"):
            definition.set("lines", "5")  # without them Verovio draws no staff


def _state_alterations(root: etree._Element) -> None:
    """State the pitch of notes with microtonal accidentals, which partitura cannot read, as without them."""
    for pitch in root.iter("pitch"):
        note = pitch.getparent()
        accidental = None if note is None else note.findtext("accidental")
        if accidental is None or accidental.strip() in _READABLE_ACCIDENTALS:
            continue
        alter = pitch.find("alter")
        if alter is None:
            alter = etree.Element("alter")
            step = pitch.find("step")
            pitch.insert(0 if step is None else pitch.index(step) + 1, alter)
        if not re.fullmatch(r"\s*[+-]?\d+\s*", alter.text or ""):
            alter.text = "0"


def _drop_signs_as_fingerings(root: etree._Element) -> None:
    """Remove fingerings without a number, which partitura cannot read: some editors draw signs with them."""
    for fingering in list(root.iter("fingering")):
        technical = fingering.getparent()
        if technical is not None and not any(c.isdigit() for c in fingering.text or ""):
            technical.remove(fingering)


def _drop_repeat_counts(root: etree._Element) -> None:
    """Remove the play counts of repeats: nothing depends on them, and large ones make Verovio hang."""
    for repeat in root.iter("repeat"):
        repeat.attrib.pop("times", None)


def _id_attribute(kind: str) -> str:
    return "id" if kind == "musicxml" else _XML_ID


def _notes(root: etree._Element, kind: str) -> Iterator[etree._Element]:
    if kind == "mei":
        return music_of(root).iter("{*}note")
    return (note for note in root.iter("note") if note.find("rest") is None)


def _has_pitch(note: etree._Element) -> bool:
    """Return whether a note has a pitch: percussion often has none."""
    return note.get("pname") is not None or note.find("pitch") is not None


def _measures(root: etree._Element, kind: str) -> list[etree._Element]:
    if kind == "mei":
        return list(music_of(root).iter("{*}measure"))
    left_out = left_out_parts(root)
    printed = next((part for part in root.iterchildren("part") if part.get("id", "") not in left_out), None)
    return [] if printed is None else printed.findall("measure")


def _assign_ids(root: etree._Element, kind: str) -> dict[str, str | None]:
    """Give each note and measure an id that is unique in the file; return the ids of the file that differ."""
    attribute = _id_attribute(kind)
    taken = Counter(str(e.get(attribute)) for e in root.iter(etree.Element) if e.get(attribute) is not None)
    renamed: dict[str, str] = {}
    given_ids: dict[str, str | None] = {}
    for prefix, elements in (("n", _notes(root, kind)), ("m", iter(_measures(root, kind)))):
        number = 0
        for element in elements:
            given = element.get(attribute)
            if given is not None and taken[given] == 1 and is_safe_id(given):
                continue
            number += 1
            while taken[f"{prefix}{number}"]:
                number += 1
            taken[f"{prefix}{number}"] = 1
            element.set(attribute, f"{prefix}{number}")
            if prefix == "n":
                given_ids[f"{prefix}{number}"] = given or element.get("ID") or None  # as partitura reads them
            if given is not None and taken[given] == 1:
                renamed[f"#{given}"] = f"#{prefix}{number}"
    if renamed and kind == "mei":
        _follow_renaming(root, renamed)
    return given_ids


def _follow_renaming(root: etree._Element, renamed: dict[str, str]) -> None:
    """Update MEI's references ("#id", several separated by spaces) to the new ids."""
    renamed = renamed | {
        old.removeprefix("#"): new for old, new in renamed.items()
    }  # Verovio may omit the "#"
    for element in root.iter(etree.Element):
        for name, value in element.attrib.items():
            if "#" in value or name in ("startid", "endid"):
                element.set(name, " ".join(renamed.get(token, token) for token in str(value).split()))
