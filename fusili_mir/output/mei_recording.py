"""The score as MEI, with the recording and the time of every note in it.

A recording is a list of points in time (`when`), each with the notes that begin then (`data`). A note also points
to the first time that it is played (`when`).
"""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import quote

import numpy as np
from lxml import etree

from fusili_mir.alignment.results import Alignment
from fusili_mir.errors import OutputError
from fusili_mir.scores.score_file import ScoreFile
from fusili_mir.scores.verovio_process import convert_to_mei

__all__ = ["mei_with_recording", "save_mei"]

_MEI = "{http://www.music-encoding.org/ns/mei}"
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_.-]")
_LEVEL = 3  # depth of a recording in the tree
_XML_ID = "{http://www.w3.org/XML/1998/namespace}id"


def save_mei(alignment: Alignment, filename: str | Path) -> None:
    """Write the score as MEI with the times of its notes; see `mei_with_recording`."""
    tree = mei_with_recording(alignment).getroottree()
    content = etree.tostring(tree, encoding="UTF-8", xml_declaration=True)
    Path(filename).write_bytes(content)  # lxml raises an error of its own if the disk is full


def mei_with_recording(alignment: Alignment) -> etree._Element:
    """Put the times of the notes into the score.

    Parameters
    ----------
    alignment : Alignment
        An alignment with a symbolic score.

    Returns
    -------
    lxml element
        Root of the MEI tree: the user's own MEI, or what Verovio makes of MusicXML. The ``xml:id`` of a note is
        the `notated_id` of the result, with ``_`` for characters that XML does not allow there.
    """
    root, xml_ids = _score_as_mei(alignment)
    heads = {str(note.get(_XML_ID)): note for note in root.iter(f"{_MEI}note")}
    taken = {str(element.get(_XML_ID)) for element in root.iter(etree.Element)}
    recording = _recording(root, alignment)
    struck = [
        (round(second, 4), xml_ids.get(head, head))
        for second, head in zip(
            alignment.notes["onset_sec"].tolist(), alignment.notes["notated_id"].tolist(), strict=True
        )
        if np.isfinite(second) and xml_ids.get(head, head) in heads
    ]
    begun: dict[float, list[str]] = {}
    for second, head in sorted(struck, key=lambda second_and_head: second_and_head[0]):
        begun.setdefault(second, []).append(head)
    for number, (second, ids) in enumerate(begun.items(), start=1):
        when = etree.SubElement(recording, f"{_MEI}when")
        when_id = _free_id(f"when-{number:05d}", taken)
        when.set(_XML_ID, when_id)
        when.set("absolute", _clock(second))
        when.set("abstype", "time")
        when.set("data", " ".join(f"#{head}" for head in dict.fromkeys(ids)))
        for head in ids:
            if heads[head].get("when") is None:
                heads[head].set("when", f"#{when_id}")
    etree.indent(recording, level=_LEVEL)
    return root


def _score_as_mei(alignment: Alignment) -> tuple[etree._Element, dict[str, str]]:
    """Return the score as MEI, and the ids that XML does not allow with those that they have there instead."""
    given = alignment.pages.score_file
    if given is None:
        raise OutputError(f"{alignment.pages.filename}: its notation is not known, so it cannot become MEI")
    score_file = given.unpack()
    xml_ids = _xml_ids(score_file)
    if score_file.kind == "mei":
        return score_file.root, xml_ids
    converted = convert_to_mei(score_file.filename, score_file.to_engrave().decode(), "xml")
    parser = etree.XMLParser(resolve_entities=False, no_network=True, huge_tree=True)
    root = etree.fromstring(converted.encode(), parser)
    _complete_title(root, Path(score_file.filename).stem)
    for ending in root.iter(f"{_MEI}ending"):
        if ending.get("n"):
            ending.set("n", "".join(str(ending.get("n")).split()))  # "1, 2" is not valid there, "1,2" is
    for program in root.iter(f"{_MEI}application"):
        program.attrib.pop("isodate", None)  # the time of the conversion: the same input gives the same file
    return root, xml_ids


def _xml_ids(score_file: ScoreFile) -> dict[str, str]:
    """Rename the notes whose ids XML does not allow; return old and new ids."""
    attribute = score_file.id_attribute
    taken = {str(element.get(attribute)) for element in score_file.root.iter(etree.Element)}
    renamed: dict[str, str] = {}
    for note in score_file.notes():
        note_id = note.get(attribute)
        if note_id is not None and not _NAME.fullmatch(note_id):
            renamed[note_id] = _free_id(f"_{_NOT_IN_NAMES.sub('_', note_id)}", taken)
            note.set(attribute, renamed[note_id])
    return renamed


def _complete_title(root: etree._Element, name: str) -> None:
    """Give a title to a score that has none: the schema does not accept what Verovio writes in that case."""
    statement = next(root.iter(f"{_MEI}titleStmt"), None)
    for empty in (
        [] if statement is None else [child for child in statement if not len(child) and not child.text]
    ):
        if empty.tag == f"{_MEI}title":
            empty.text = name
        elif empty.tag == f"{_MEI}respStmt" and statement is not None:
            statement.remove(empty)


def _recording(root: etree._Element, alignment: Alignment) -> etree._Element:
    """Add an empty recording in its place: a performance before the body of the music."""
    music = next(root.iter(f"{_MEI}music"), None)
    if music is None:
        raise OutputError(f"{alignment.pages.filename}: MEI without music; expected some")
    performance = etree.Element(f"{_MEI}performance")
    music.insert(0, performance)
    recording = etree.SubElement(performance, f"{_MEI}recording")
    if alignment.made_with is not None:
        etree.SubElement(recording, f"{_MEI}avFile", {"target": quote(alignment.made_with.recording.name)})
    return recording


def _free_id(wanted: str, taken: set[str]) -> str:
    while wanted in taken:
        wanted += "_"
    taken.add(wanted)
    return wanted


def _clock(second: float) -> str:
    """Write a time as hours, minutes and seconds.

    >>> _clock(3723.5)
    '01:02:03.5000'
    """
    minutes, rest = divmod(round(second, 4), 60)
    hours, minutes = divmod(int(minutes), 60)
    return f"{hours:02d}:{minutes:02d}:{rest:07.4f}"
