"""The score as MEI, with the recording and the time of every note in it.

A recording is a list of points in time (`when`), each with the notes that begin then (`data`). A note also points
to the first time that it is played (`when`).
"""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

import numpy as np
from lxml import etree

from fusili_mir.alignment.results import Alignment
from fusili_mir.errors import OutputError
from fusili_mir.scores.verovio_process import convert_to_mei

__all__ = ["mei_with_recording", "save_mei"]

_MEI = "{http://www.music-encoding.org/ns/mei}"
_LEVEL = 3  # depth of a recording in the tree
_XML_ID = "{http://www.w3.org/XML/1998/namespace}id"


def save_mei(alignment: Alignment, filename: str | Path) -> None:
    """Write the score as MEI with the times of its notes; see `mei_with_recording`."""
    tree = mei_with_recording(alignment).getroottree()
    tree.write(str(filename), encoding="UTF-8", xml_declaration=True)


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
        the `notated_id` of the result.
    """
    root = _score_as_mei(alignment)
    heads = {str(note.get(_XML_ID)): note for note in root.iter(f"{_MEI}note")}
    taken = {str(element.get(_XML_ID)) for element in root.iter(etree.Element)}
    recording = _recording(root, alignment)
    notes = alignment.notes[np.isfinite(alignment.notes["onset_sec"])]
    notes = notes[[str(head) in heads for head in notes["notated_id"]]]
    order = np.argsort(notes["onset_sec"], kind="stable")
    seconds, first = np.unique(notes["onset_sec"][order].round(4), return_index=True)
    for number, rows in enumerate(np.split(order, first[1:]) if len(order) else [], start=1):
        when = etree.SubElement(recording, f"{_MEI}when")
        when_id = _free_id(f"when-{number:05d}", taken)
        when.set(_XML_ID, when_id)
        when.set("absolute", _clock(float(seconds[number - 1])))
        when.set("abstype", "time")
        begun = dict.fromkeys(notes["notated_id"][rows].tolist())
        when.set("data", " ".join(f"#{head}" for head in begun))
        for head in begun:
            if heads[head].get("when") is None:
                heads[head].set("when", f"#{when_id}")
    etree.indent(recording, level=_LEVEL)
    return root


def _score_as_mei(alignment: Alignment) -> etree._Element:
    score_file = alignment.pages.score_file
    if score_file is None:
        raise OutputError(f"{alignment.pages.filename}: its notation is not known, so it cannot become MEI")
    parser = etree.XMLParser(resolve_entities=False, no_network=True, huge_tree=True)
    if score_file.kind == "mei":
        return etree.fromstring(score_file.to_bytes(), parser)
    converted = convert_to_mei(score_file.filename, score_file.to_bytes().decode(), "xml")
    root = etree.fromstring(converted.encode(), parser)
    _complete_title(root, Path(score_file.filename).stem)
    return root


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
