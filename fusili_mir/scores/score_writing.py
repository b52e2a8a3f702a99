"""Scores of partitura's, written as the MusicXML that is engraved, with the gaps that partitura drops."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace

import numpy as np
import partitura as pt
from lxml import etree
from partitura import score as ps

from fusili_mir.boundary import reason
from fusili_mir.errors import InputError
from fusili_mir.scores.midi_notation import is_notated, notate, split_staves
from fusili_mir.scores.part_copies import copy_part
from fusili_mir.scores.score_file import ScoreFile, parse_score

__all__ = ["WrittenScore", "write_score_file"]


@dataclass(frozen=True, eq=False)
class WrittenScore:
    """A score of partitura's as it is engraved.

    Attributes
    ----------
    score_file : ScoreFile
    note_ids : dict from str to str
        Id of a note in the file -> its id in the score.
    is_rounded : bool
        Whether the rhythm had to be rounded, because it cannot be written as it is.
    """

    score_file: ScoreFile
    note_ids: dict[str, str]
    is_rounded: bool


def write_score_file(score: ps.Score, filename: str, may_round: bool = True) -> WrittenScore:
    """Write a score as the MusicXML that is engraved.

    Parameters
    ----------
    score : partitura.score.Score
        Score with unique note ids and with measures. It is left unchanged.
    filename : str
        Name of the score, for messages.
    may_round : bool
        Whether a rhythm that cannot be written as it is may be rounded.

    Returns
    -------
    WrittenScore
    """
    copies = ps.Score([copy_part(part, part.id) for part in score.parts])
    copies.work_title = score.work_title
    is_rounded = may_round and not all(is_notated(part) for part in copies.parts)
    if is_rounded:
        copies = notate(copies)
    note_ids: dict[str, str] = {}
    places: dict[str, int] = {}
    lengths: list[list[int]] = []
    for part in copies.parts:
        split_staves(part)
        measures = list(part.iter_all(ps.Measure))
        starts = np.array([measure.start.t for measure in measures])
        lengths.append([measure.end.t - measure.start.t for measure in measures])
        for note in part.iter_all(ps.GenericNote, include_subclasses=True):
            own = f"n{len(places) + 1}"
            if isinstance(note, ps.Note):
                note_ids[own] = str(note.id)
            note.id = own
            index = max(0, int(np.searchsorted(starts, note.start.t, "right")) - 1)
            places[own] = note.start.t - int(starts[index])
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            data = pt.save_musicxml(copies)
    except Exception as error:  # partitura raises whatever its writer trips over
        raise InputError(
            f"{filename}: partitura cannot write it as MusicXML ({reason(error)}); is it a complete score?"
        ) from error
    score_file = replace(parse_score(data, filename), given_ids={})
    for element, own_lengths in zip(score_file.root.iterfind("part"), lengths, strict=True):
        for measure, length in zip(element.iterfind("measure"), own_lengths, strict=True):
            _restore_gaps(measure, places, length)
    for rest in score_file.root.iterfind("part/measure/note[rest]"):
        rest.attrib.pop("id", None)  # it was only needed to find its place
    return WrittenScore(score_file, note_ids, is_rounded)


def _restore_gaps(measure: etree._Element, places: dict[str, int], length: int) -> None:
    """Put notes back to their places, and a measure to its length.

    Of all voices of a measure, partitura writes the gaps of the first only, and none at the end of the measure.
    """
    time = furthest = 0
    for element in list(measure):
        duration = int(element.findtext("duration") or 0)
        if element.tag in ("backup", "forward"):
            time += duration if element.tag == "forward" else -duration
        elif element.tag == "note" and element.find("chord") is None:
            place = places.get(str(element.get("id")), time)
            if place != time:
                element.addprevious(_move(place - time))
            time = place + (0 if element.find("grace") is not None else duration)
        furthest = max(furthest, time)
    if furthest < length:
        measure.append(_move(length - time))


def _move(divisions: int) -> etree._Element:
    move = etree.Element("forward" if divisions > 0 else "backup")
    etree.SubElement(move, "duration").text = str(abs(divisions))
    return move
