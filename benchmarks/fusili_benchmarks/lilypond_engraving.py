"""Pages of LilyPond in the form of our own engravings: the same tables, and a score with the same measures.

A measure lies between two bar lines and has heads; one of rests belongs to the next. It begins with its first
head.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from fusili_benchmarks.held_out_lilypond import LilypondPage, LilypondScore
from fusili_benchmarks.lilypond_run import SIZE_MM
from fusili_mir.arrays import Float64, Table
from fusili_mir.boxes import MEASURE_DTYPE, NOTE_DTYPE, STAFF_DTYPE, SYSTEM_DTYPE
from fusili_mir.errors import InputError
from fusili_mir.pages.engraving import Engraving
from fusili_mir.pages.segments import Box
from fusili_training.sound.sounding_score import SoundingScore

__all__ = ["EngravedScore", "engraved_score"]

N_LINES = 5


@dataclass(frozen=True, eq=False)
class EngravedScore:
    """An engraving, and the score that it shows."""

    engraving: Engraving
    score: SoundingScore


@dataclass(frozen=True)
class _Head:
    id: str
    box: Box
    onset_quarter: float
    part_staff: int  # as the score counts staves, which may be hidden in a system

    @property
    def x(self) -> float:
        return (self.box.x0 + self.box.x1) / 2


@dataclass(frozen=True)
class _Measure:
    box: Box
    heads: tuple[_Head, ...]

    @property
    def onset_quarter(self) -> float:
        return min(head.onset_quarter for head in self.heads)


@dataclass(frozen=True)
class _System:
    """A system with heads; all boxes are in staff spaces."""

    page: int
    box: Box
    staves: tuple[Box, ...]
    bar_lines: tuple[float, ...]
    heads: tuple[_Head, ...]

    @property
    def space(self) -> float:
        return sum(_space(staff) for staff in self.staves) / len(self.staves)

    def measures(self) -> list[_Measure]:
        edges = [self.box.x0]
        for x in self.bar_lines:
            before = any(edges[-1] <= head.x < x for head in self.heads)
            if before and any(head.x >= x for head in self.heads):
                edges.append(x)
        edges.append(self.box.x1)
        return [
            _Measure(
                Box(x0, self.box.y0, x1, self.box.y1),
                tuple(head for head in self.heads if x0 <= head.x < x1),
            )
            for x0, x1 in pairwise(edges)
        ]

    def staff_of(self) -> dict[int, int]:
        """Map each staff of the score to that of the system to which most of its heads are nearest."""
        nearest: dict[int, Counter[int]] = {}
        for head in self.heads:
            distances = [_distance(staff, head.box) for staff in self.staves]
            nearest.setdefault(head.part_staff, Counter())[int(np.argmin(distances))] += 1
        return {staff: places.most_common(1)[0][0] for staff, places in nearest.items()}


def engraved_score(
    svgs: Sequence[str], pages: Sequence[LilypondPage], score: LilypondScore, space_px: float
) -> EngravedScore:
    """Lay out the pages of a score with some pixels to the staff space.

    Parameters
    ----------
    svgs : sequence of str
        The pages, as LilyPond writes them.
    pages : sequence of LilypondPage
        What lies on them.
    score : LilypondScore
    space_px : float

    Returns
    -------
    EngravedScore
        Its table of notes is without heads that do not lie in the measure in which they sound.
    """
    systems = [system for number, page in enumerate(pages) for system in _systems_of(number, page, score)]
    if not systems:
        raise InputError("no note heads on the pages; expected at least one")
    measures = [(number, measure) for number, system in enumerate(systems) for measure in system.measures()]
    begins = [measure.onset_quarter for _, measure in measures]
    quarters = np.maximum.accumulate([*begins, float(score.heads["end_quarter"].max())])
    engraving = Engraving(
        svgs=tuple(_in_pixels(svg, page, space_px) for svg, page in zip(svgs, pages, strict=True)),
        notes=_note_table(systems, measures, quarters, space_px),
        measures=np.array(
            [
                (number, str(number + 1), systems[place].page, place, *_px(measure.box, space_px))
                for number, (place, measure) in enumerate(measures)
            ],
            MEASURE_DTYPE,
        ),
        systems=np.array(
            [
                (system.page, place, len(system.staves), *_px(system.box, space_px), system.space * space_px)
                for place, system in enumerate(systems)
            ],
            SYSTEM_DTYPE,
        ),
        staves=np.array(
            [
                (system.page, place, number, *_px(staff, space_px), _space(staff) * space_px)
                for place, system in enumerate(systems)
                for number, staff in enumerate(system.staves)
            ],
            STAFF_DTYPE,
        ),
    )
    sounding = SoundingScore(score.notes, score.tempo, score.heads, quarters, ("piano",))
    return EngravedScore(engraving, sounding)


def _systems_of(number: int, page: LilypondPage, score: LilypondScore) -> list[_System]:
    """Return the systems of a page that have heads; a head belongs to the nearest system."""
    heads_of: list[list[_Head]] = [[] for _ in page.systems]
    for head, part_staff in zip(score.heads, score.notes["staff"][score.heads["note"]], strict=True):
        box = page.heads.get(int(head["id"]))
        if box is not None:
            place = int(np.argmin([_distance(system, box) for system in page.systems]))
            found = _Head(str(head["id"]), box, float(head["onset_quarter"]), int(part_staff))
            heads_of[place].append(found)
    return [
        _System(number, box, staves, lines, tuple(heads))
        for box, staves, lines, heads in zip(page.systems, page.staves, page.bar_lines, heads_of, strict=True)
        if heads
    ]


def _note_table(
    systems: Sequence[_System], measures: Sequence[tuple[int, _Measure]], quarters: Float64, space_px: float
) -> Table:
    staff_of = [system.staff_of() for system in systems]
    rows = []
    for number, (place, measure) in enumerate(measures):
        for head in measure.heads:
            if quarters[number] <= head.onset_quarter < quarters[number + 1]:
                where = systems[place].page, place, number, staff_of[place][head.part_staff]
                rows.append((head.id, head.id, *where, *_px(head.box, space_px)))
    return np.array(rows, NOTE_DTYPE)


def _distance(box: Box, head: Box) -> float:
    """Return how far above or below a box the middle of a head lies."""
    y = (head.y0 + head.y1) / 2
    return max(box.y0 - y, y - box.y1, 0.0)


def _space(staff: Box) -> float:
    return (staff.y1 - staff.y0) / (N_LINES - 1)


def _px(box: Box, space_px: float) -> tuple[float, float, float, float]:
    return box.x0 * space_px, box.y0 * space_px, box.x1 * space_px, box.y1 * space_px


def _in_pixels(svg: str, page: LilypondPage, space_px: float) -> str:
    """Put a page into an SVG whose view box is in pixels."""
    width_px, height_px = round(page.width * space_px), round(page.height * space_px)
    size = f'width="{width_px}" height="{height_px}"'
    inner = SIZE_MM.sub(size, svg[svg.index("<svg") :], count=1)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} viewBox="0 0 {width_px} {height_px}">{inner}</svg>'
    )
