"""Reading the boxes of staves, systems, measures and note heads from Verovio's SVG.

Verovio's bounding box of a system is only its left line, and that of a measure is empty; so both are taken from
the staff lines drawn inside them. Coordinates are in page pixels: a shift by the page margin, and one scale.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from lxml import etree

from fusili_mir.arrays import Table
from fusili_mir.boxes import MEASURE_DTYPE, NOTE_DTYPE, STAFF_DTYPE, SYSTEM_DTYPE
from fusili_mir.scores.score_file import ScoreFile

__all__ = ["SvgLayout"]

_SVG = "{http://www.w3.org/2000/svg}"

_Row = tuple[Any, ...]
_Box = tuple[float, float, float, float]


class SvgLayout:
    """Collects the boxes of a score, page by page.

    Parameters
    ----------
    score_file : ScoreFile
        The engraved score: only notes and measures with ids of this score are collected.
    px_per_unit : float
        Page pixels per drawing unit of the SVG.
    space_px : float
        Requested distance between staff lines; used for staves of one line.
    """

    def __init__(self, score_file: ScoreFile, px_per_unit: float, space_px: float) -> None:
        self._px_per_unit = px_per_unit
        self._space_px = space_px
        self._measure_index = {m: i for i, m in enumerate(score_file.measure_ids())}
        self._measure_numbers = score_file.measure_numbers()
        self._note_ids = {str(note.get(score_file.id_attribute)) for note in score_file.notes()}
        self._n_pages = 0
        self._notes: list[_Row] = []
        self._measures: list[_Row] = []
        self._systems: list[_Row] = []
        self._staves: list[_Row] = []

    def notes(self) -> Table:
        """Return the note heads found so far; both `id` and `notated_id` are the id of the head."""
        return np.array(self._notes, NOTE_DTYPE)

    def measures(self, last: int | None = None) -> Table:
        """Return the measures, up to the `last` that was to be drawn (by default that of the score).

        Those inside a multi-measure rest get equal shares of its box.
        """
        numbers = self._measure_numbers[: None if last is None else last + 1]
        return _with_hidden_measures(np.array(self._measures, MEASURE_DTYPE), numbers)

    def systems(self) -> Table:
        """Return the systems."""
        return np.array(self._systems, SYSTEM_DTYPE)

    def staves(self) -> Table:
        """Return the staves."""
        return np.array(self._staves, STAFF_DTYPE)

    def add_page(self, svg: etree._Element) -> None:
        """Collect the boxes of the next page."""
        margin = next(group for group in svg.iter(f"{_SVG}g") if group.get("class") == "page-margin")
        place = _Place(*_translation(margin), self._px_per_unit)
        for system in _groups(margin, "system"):
            self._add_system(system, place)
        self._n_pages += 1

    def _add_system(self, group: etree._Element, place: _Place) -> None:
        page, system = self._n_pages, len(self._systems)
        measures = [(measure, _measure_lines(measure, place)) for measure in _groups(group, "measure")]
        numbers = sorted({number for _, lines in measures for number in lines})
        if not numbers:
            return
        for measure, lines in measures:
            index = self._measure_index.get(measure.get("id", ""))
            if index is not None and lines:
                box = _outer_box(list(lines.values()))
                self._measures.append((index, self._measure_numbers[index], page, system, *box))
        rows = [_joined([lines[number] for _, lines in measures if number in lines]) for number in numbers]
        spaces = [row.space_px for row in rows if row.space_px is not None]
        space_px = float(np.mean(spaces)) if spaces else self._space_px
        for staff, row in enumerate(rows):
            self._staves.append((page, system, staff, *_outer_box([row]), row.space_px or space_px))
        self._systems.append((page, system, len(rows), *_outer_box(rows), space_px))
        staff_of_number = {number: staff for staff, number in enumerate(numbers)}
        for measure, _ in measures:
            self._add_notes(measure, place, staff_of_number)

    def _add_notes(self, measure: etree._Element, place: _Place, staff_of_number: dict[int, int]) -> None:
        page, system = self._n_pages, len(self._systems) - 1
        index = self._measure_index.get(measure.get("id", ""), -1)
        for group in _groups(measure, "staff"):
            own = _staff_number(group)
            for note in _groups(group, "note"):
                note_id = note.get("id", "")
                box = _head_box(note, place)
                if note_id in self._note_ids and box is not None:
                    staff = staff_of_number.get(_cross_staff_number(note) or own, staff_of_number.get(own, 0))
                    self._notes.append((note_id, note_id, page, system, index, staff, *box))


@dataclass(frozen=True)
class _Place:
    """The map of a page from drawing units to page pixels."""

    dx: float
    dy: float
    px_per_unit: float

    def x_px(self, x: float) -> float:
        return (x + self.dx) * self.px_per_unit

    def y_px(self, y: float) -> float:
        return (y + self.dy) * self.px_per_unit


@dataclass(frozen=True)
class _Lines:
    """The lines of a staff, in page pixels."""

    x0: float
    x1: float
    ys: tuple[float, ...]

    @property
    def space_px(self) -> float | None:
        """Distance between neighbouring lines; None if there is only one."""
        return (self.ys[-1] - self.ys[0]) / (len(self.ys) - 1) if len(self.ys) > 1 else None


def _groups(parent: etree._Element, name: str) -> Iterator[etree._Element]:
    """Yield the groups of one class inside an element, without bounding boxes, which have a second class.

    A group may have more classes: Verovio adds the ``type`` of the MEI element.
    """
    for group in parent.iter(f"{_SVG}g"):
        classes = group.get("class", "")
        if classes == name or (classes.startswith(f"{name} ") and "bounding-box" not in classes.split()):
            yield group


def _translation(group: etree._Element) -> tuple[float, float]:
    inner = group.get("transform", "translate(0, 0)").removeprefix("translate(").rstrip(")")
    x, y = (float(value) for value in inner.split(","))
    return x, y


def _staff_number(group: etree._Element) -> int:
    """Return the number of a staff in the score, from 1 at the top."""
    return int(group.get("data-n", "0"))


def _cross_staff_number(note: etree._Element) -> int | None:
    """Return the number of the staff on which a cross-staff note is drawn; None for other notes."""
    for element in (note, note.getparent()):
        if element is not None and element.get("data-staff"):
            return int(element.get("data-staff", "0"))
    return None


def _measure_lines(measure: etree._Element, place: _Place) -> dict[int, _Lines]:
    """Return the staff lines of a measure by staff number."""
    found = {_staff_number(staff): _staff_lines(staff, place) for staff in _groups(measure, "staff")}
    return {number: lines for number, lines in found.items() if lines is not None}


def _staff_lines(staff: etree._Element, place: _Place) -> _Lines | None:
    paths = [_horizontal(path.get("d", "")) for path in staff.iterchildren(f"{_SVG}path")]
    lines = [path for path in paths if path is not None]
    if not lines:
        return None
    return _Lines(
        place.x_px(min(x0 for x0, _, _ in lines)),
        place.x_px(max(x1 for _, x1, _ in lines)),
        tuple(sorted({place.y_px(y) for _, _, y in lines})),
    )


def _horizontal(path: str) -> tuple[float, float, float] | None:
    """Return (x0, x1, y) of a path that is a single horizontal line, None for other paths.

    >>> _horizontal("M1510 1267 L5986 1267")
    (1510.0, 5986.0, 1267.0)
    """
    numbers = path.replace("M", " ").replace("L", " ").split()
    if path.count("L") != 1 or len(numbers) != 4 or numbers[1] != numbers[3]:
        return None
    x0, x1 = sorted((float(numbers[0]), float(numbers[2])))
    return x0, x1, float(numbers[1])


def _head_box(note: etree._Element, place: _Place) -> _Box | None:
    """Return the box of a note head, which is the bounding box that Verovio gives to the note."""
    for child in note:
        if child.get("id") == f"bbox-{note.get('id')}":
            for rect in child.iter(f"{_SVG}rect"):
                x, y, width, height = (float(rect.get(name, "0")) for name in ("x", "y", "width", "height"))
                return place.x_px(x), place.y_px(y), place.x_px(x + width), place.y_px(y + height)
    return None


def _joined(lines: list[_Lines]) -> _Lines:
    """Join the lines of one staff across the measures of a system."""
    longest = max(lines, key=lambda line: len(line.ys))
    return _Lines(min(line.x0 for line in lines), max(line.x1 for line in lines), longest.ys)


def _outer_box(lines: list[_Lines]) -> _Box:
    return (
        min(line.x0 for line in lines),
        min(line.ys[0] for line in lines),
        max(line.x1 for line in lines),
        max(line.ys[-1] for line in lines),
    )


def _with_hidden_measures(measures: Table, numbers: list[str]) -> Table:
    drawn = set(measures["measure"].tolist())
    rows: list[Table] = []
    for row in measures:
        first = int(row["measure"])
        end = first + 1
        while end < len(numbers) and end not in drawn:
            end += 1
        shares = np.repeat(row[None], end - first)
        edges = np.linspace(row["x0"], row["x1"], end - first + 1)
        shares["measure"], shares["number"] = np.arange(first, end), numbers[first:end]
        shares["x0"], shares["x1"] = edges[:-1], edges[1:]
        rows.append(shares)
    return np.concatenate(rows) if rows else measures
