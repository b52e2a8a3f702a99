"""LilyPond as a second engraver: reads its SVG pages and the table of its note heads.

The table is written by `benchmarks/lilypond_heads.ly`, which also gives heads and staves their ids in the SVG.
LilyPond's SVG is measured in staff spaces; y points downwards on the page, and upwards in the table.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt
from lxml import etree

from fusili_mir.errors import InputError
from fusili_mir.pages.segments import Box
from fusili_training.pitches import HIGHEST_PITCH, LOWEST_PITCH
from fusili_training.sound.notes import DEFAULT_VELOCITY, SCORE_NOTE_DTYPE, ScoreNoteArray
from fusili_training.sound.sounding_score import HEAD_DTYPE
from fusili_training.sound.tempo import DEFAULT_QPM, WrittenTempo

__all__ = ["LilypondPage", "LilypondScore", "read_lilypond_score", "read_svg_page"]

_SVG = "{http://www.w3.org/2000/svg}"
_TRANSLATE = re.compile(r"translate\(\s*(-?[\d.]+),\s*(-?[\d.]+)\s*\)")
_N_FIELDS = {"tempo": 4, "head": 8, "tie": 4, "box": 7}
_GAP_QUARTER = 4.0  # silence between the scores of one file


@dataclass(frozen=True, eq=False)
class LilypondScore:
    """A score that LilyPond engraved.

    Attributes
    ----------
    notes : np.ndarray of `SCORE_NOTE_DTYPE`
        The notes that sound: tied heads are one note, and every measure is played once.
    tempo : WrittenTempo
    row_of_head : mapping
        Number of a head -> row of its note, for the heads at which notes are struck.
    boxes : mapping
        Number of a head -> its box in staff spaces around its origin, y downwards.
    heads : np.ndarray of `HEAD_DTYPE`
        All heads of the notes, those after a tie among them; their ids are their numbers.
    """

    notes: ScoreNoteArray
    tempo: WrittenTempo
    row_of_head: Mapping[int, int]
    boxes: Mapping[int, Box]
    heads: npt.NDArray[np.void] = field(default_factory=lambda: np.zeros(0, HEAD_DTYPE))


@dataclass(frozen=True)
class LilypondPage:
    """One page, in staff spaces.

    Its size, its systems from top to bottom, its heads by number, and for each system its staves from top to
    bottom and the x of its bar lines, once for every staff.
    """

    width: float
    height: float
    systems: tuple[Box, ...]
    heads: Mapping[int, Box]
    staves: tuple[tuple[Box, ...], ...] = ()
    bar_lines: tuple[tuple[float, ...], ...] = ()


@dataclass(frozen=True)
class _Head:
    number: int
    onset_quarter: float
    grace: float  # minus the time to the main note, in whole notes; 0 for other notes
    duration_quarter: float
    pitch: int
    staff: str

    @property
    def end_quarter(self) -> float:
        return self.onset_quarter + (0.0 if self.grace else self.duration_quarter)


def read_lilypond_score(table: str | Path) -> LilypondScore:
    """Read the table that `benchmarks/lilypond_heads.ly` writes.

    Parameters
    ----------
    table : str or Path

    Returns
    -------
    LilypondScore
        The scores of one file, one after the other.
    """
    rows = [line.split("\t") for line in Path(table).read_text(encoding="utf-8").splitlines()]
    for number, row in enumerate(rows, start=1):
        if len(row) != _N_FIELDS.get(row[0], -1):
            raise InputError(
                f"{table}: line {number} is {' '.join(row)!r}; expected a tempo, head, tie or box"
            )
    starts = _score_starts([row for row in rows if row[0] == "head"])
    heads = [
        _Head(
            int(row[2]), starts[row[1]] + float(row[3]), *_grace_and_length(row), round(float(row[6])), row[7]
        )
        for row in rows
        if row[0] == "head"
    ]
    if not heads:
        raise InputError(f"{table}: no note heads; did LilyPond engrave anything?")
    boxes = {
        int(row[2]): _box_downwards(*(float(value) for value in row[3:])) for row in rows if row[0] == "box"
    }
    continued = {int(row[2]): int(row[3]) for row in rows if row[0] == "tie"}
    marks = {
        starts[row[1]] + float(row[2]): float(row[3])
        for row in rows
        if row[0] == "tempo" and row[1] in starts
    }
    first = min(head.onset_quarter for head in heads)
    marks.setdefault(first, marks[min(marks)] if marks else DEFAULT_QPM)
    places = sorted(marks)
    notes, row_of_head = _sounding(heads, continued)
    tempo = WrittenTempo(tuple(places), tuple(marks[place] for place in places))
    return LilypondScore(notes, tempo, row_of_head, boxes, _heads_of_notes(heads, continued, row_of_head))


def _grace_and_length(row: Sequence[str]) -> tuple[float, float]:
    return float(row[4]), float(row[5])


def _box_downwards(x0: float, x1: float, y0: float, y1: float) -> Box:
    return Box(x0, -y1, x1, -y0)


def _score_starts(rows: Sequence[Sequence[str]]) -> dict[str, float]:
    """Return the quarter at which each score of the file begins, by its number."""
    lengths: dict[str, float] = {}
    for row in rows:
        lengths[row[1]] = max(lengths.get(row[1], 0.0), float(row[3]) + float(row[5]))
    starts, end = {}, 0.0
    for score in sorted(lengths, key=int):
        starts[score] = end
        end += lengths[score] + _GAP_QUARTER
    return starts


def _sounding(heads: Sequence[_Head], continued: Mapping[int, int]) -> tuple[ScoreNoteArray, dict[int, int]]:
    """Return the notes, and for each head at which a note is struck the row of that note."""
    by_number = {head.number: head for head in heads}
    struck = [
        head
        for head in heads
        if head.number not in set(continued.values()) and LOWEST_PITCH <= head.pitch <= HIGHEST_PITCH
    ]
    staves = {staff: place for place, staff in enumerate(dict.fromkeys(head.staff for head in heads))}
    notes = np.zeros(len(struck), SCORE_NOTE_DTYPE)
    for note, head in zip(notes, struck, strict=True):
        end_quarter = _tied(head.number, by_number, continued)[-1].end_quarter
        note["id"], note["pitch"] = str(head.number), head.pitch
        note["onset_quarter"] = head.onset_quarter
        note["duration_quarter"] = 0.0 if head.grace else end_quarter - head.onset_quarter
        note["grace"] = _grace_steps(head, heads)
        note["velocity"], note["held"] = DEFAULT_VELOCITY, 1.0
        note["staff"] = note["voice"] = staves[head.staff]
    return notes, {head.number: row for row, head in enumerate(struck)}


def _tied(number: int, by_number: Mapping[int, _Head], continued: Mapping[int, int]) -> list[_Head]:
    """Return a head and those that ties continue it to."""
    heads = [by_number[number]]
    while heads[-1].number in continued:
        heads.append(by_number[continued[heads[-1].number]])
    return heads


def _heads_of_notes(
    heads: Sequence[_Head], continued: Mapping[int, int], row_of_head: Mapping[int, int]
) -> npt.NDArray[np.void]:
    by_number = {head.number: head for head in heads}
    rows = []
    for number, row in row_of_head.items():
        tied = _tied(number, by_number, continued)
        rows += [
            (str(head.number), row, head.onset_quarter, head.end_quarter, head is tied[0], head is tied[-1])
            for head in tied
        ]
    return np.array(rows, HEAD_DTYPE)


def _grace_steps(head: _Head, heads: Sequence[_Head]) -> int:
    """Return how many grace notes of its staff there are from this one to the main note; 0 for other notes."""
    if not head.grace:
        return 0
    together = {
        other.grace
        for other in heads
        if other.grace and (other.staff, other.onset_quarter) == (head.staff, head.onset_quarter)
    }
    return sorted(together, reverse=True).index(head.grace) + 1


def read_svg_page(svg: str, boxes: Mapping[int, Box]) -> LilypondPage:
    """Find the systems, staves, bar lines and note heads of a page.

    Parameters
    ----------
    svg : str
    boxes : mapping
        Boxes of the heads, from `LilypondScore`.

    Returns
    -------
    LilypondPage
    """
    root = etree.fromstring(svg.encode())
    _, _, width, height = (float(value) for value in str(root.get("viewBox")).split())
    heads: dict[int, Box] = {}
    staves: list[tuple[str, Box]] = []
    bar_lines: list[tuple[float, float]] = []  # x and y
    for group in root.iter(f"{_SVG}g"):
        name = group.get("id") or ""
        if name.startswith("head") and int(name[4:]) in boxes:
            box = boxes[int(name[4:])]
            for x, y in _origins(group)[:1]:  # none for a head that is hidden
                heads[int(name[4:])] = Box(x + box.x0, y + box.y0, x + box.x1, y + box.y1)
        elif name.startswith("bar "):
            bar_lines += _origins(group)[:1]
        elif name.startswith("staff"):
            lines = [
                (x, y, _length(line))
                for (x, y), line in zip(_origins(group), group.iter(f"{_SVG}line"), strict=False)
            ]
            if lines:
                left, right = min(x for x, _, _ in lines), max(x + length for x, _, length in lines)
                staves.append(
                    (name, Box(left, min(y for _, y, _ in lines), right, max(y for _, y, _ in lines)))
                )
    grouped = _grouped(staves)
    systems = tuple(_around(group) for group in grouped)
    lines_of = [sorted(x for x, y in bar_lines if box.y0 <= y <= box.y1) for box in systems]
    return LilypondPage(
        width,
        height,
        systems,
        heads,
        tuple(_one_below_the_other(group) for group in grouped),
        tuple(tuple(lines) for lines in lines_of),
    )


def _origins(group: etree._Element) -> list[tuple[float, float]]:
    """Return the origins of the drawings of a grob."""
    found = [_TRANSLATE.match(inner.get("transform") or "") for inner in group.iterchildren(f"{_SVG}g")]
    return [(float(place[1]), float(place[2])) for place in found if place is not None]


def _length(line: etree._Element) -> float:
    return float(str(line.get("x2")))


def _grouped(staves: Sequence[tuple[str, Box]]) -> list[list[Box]]:
    """Group staves from top to bottom; a system begins where a staff comes again, or another score begins."""
    groups: list[dict[str, Box]] = []
    score = ""
    for name, box in sorted(staves, key=lambda staff: staff[1].y0):
        if not groups or name in groups[-1] or name.rpartition("-")[0] != score:
            groups.append({})
        groups[-1][name], score = box, name.rpartition("-")[0]
    return [list(group.values()) for group in groups]


def _around(boxes: Sequence[Box]) -> Box:
    return Box(
        min(box.x0 for box in boxes),
        min(box.y0 for box in boxes),
        max(box.x1 for box in boxes),
        max(box.y1 for box in boxes),
    )


def _one_below_the_other(boxes: Sequence[Box]) -> tuple[Box, ...]:
    """Join staves at the same height: a staff that stops and begins again in its system."""
    joined: list[Box] = []
    for box in boxes:
        if joined and box.y0 < joined[-1].y1:
            joined[-1] = _around([joined[-1], box])
        else:
            joined.append(box)
    return tuple(joined)
