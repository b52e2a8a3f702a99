"""Staves cut out of engraved pages, with what is written on them: the truth for a network that reads notes.

A strip is one staff of a system, from its clef on, as `staff_strips` cuts it: its middle line lies in the middle,
and half a staff space, one step of the scale, is `STEP_PX` high. So the row of a head says how many steps it lies
above the middle line, and clef and key say which pitch that is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from fusili_mir.arrays import Float64, GreyImage, Table
from fusili_mir.hearing.note_reading import (
    ALTERATIONS,
    COLUMN_PX,
    LOWEST_MIDDLE,
    MARGIN_SPACES,
    N_MIDDLES,
    N_ROWS,
    SPACE_PX,
    STEP_PX,
)
from fusili_mir.pages.pages import Pages
from fusili_mir.pages.segments import cut_segment, staff_strips
from fusili_mir.short_repr import short_repr
from fusili_training.rendering.print_defects import DefectLimits, PrintDefects

__all__ = ["HEAD_DTYPE", "LabelledStrip", "label_strips", "print_strip"]

HEAD_DTYPE = np.dtype(
    [("column", "i4"), ("row", "i4"), ("middle", "i4"), ("alteration", "i4"), ("is_struck", "?")]
)
"""One head: its cell, what the middle line means there, its alteration (both as classes), and whether its note
begins there or is tied to the one before."""

_STEPS = "CDEFGAB"
_STEPS_PER_OCTAVE = len(_STEPS)


@short_repr
@dataclass(frozen=True, eq=False)
class LabelledStrip:
    """A staff of a system.

    Attributes
    ----------
    image : np.ndarray [shape=(height, width)], uint8
    heads : np.ndarray of `HEAD_DTYPE`
    """

    image: GreyImage
    heads: Table


def label_strips(pages: Pages) -> Iterator[LabelledStrip]:
    """Cut all staves out of the pages of a symbolic score, with their heads."""
    if pages.score is None:
        return
    written = {
        str(note.id): (_STEPS.index(note.step) + _STEPS_PER_OCTAVE * note.octave, note.alter or 0)
        for part in pages.score.parts
        for note in part.notes_tied
    }
    for system in pages.systems["system"].tolist():
        segment = staff_strips(pages.systems, pages.staves, system, SPACE_PX, MARGIN_SPACES)
        image = cut_segment(segment, pages.images)
        heads = pages.notes[pages.notes["system"] == system]
        for staff, piece in enumerate(segment.pieces):
            top, bottom = round(piece.in_segment.y0), round(piece.in_segment.y1)
            own = heads[heads["staff"] == staff]
            x, y = piece.on_page.map_to(piece.in_segment, *_centres(own))
            labels = _labels(own, x, y - top, bottom - top, written)
            yield LabelledStrip(image[top:bottom], labels)


def print_strip(
    strip: LabelledStrip, limits: DefectLimits, rng: np.random.Generator, back: LabelledStrip | None = None
) -> LabelledStrip:
    """Give a strip the defects of an old print; the other strip is on the back of it.

    Strips are flat: in a curled one, rows would not say which step a head is on.
    """
    defects = PrintDefects.draw(limits, rng).flat()
    behind = None if back is None else back.image
    return LabelledStrip(defects.apply(strip.image, SPACE_PX, rng, behind), strip.heads)


def _centres(heads: Table) -> tuple[Float64, Float64]:
    return (
        (heads["x0"].astype(np.float64) + heads["x1"]) / 2,
        (heads["y0"].astype(np.float64) + heads["y1"]) / 2,
    )


def _labels(
    heads: Table, x: Float64, y: Float64, height_px: int, written: dict[str, tuple[int, int]]
) -> Table:
    """Say what the heads of one staff mean; heads beyond the strip, and those that mean nothing, are left out."""
    labels = []
    for head, x_px, y_px in zip(heads, x, y, strict=True):
        step, alteration = written.get(str(head["id"]), (None, 0))
        above = round((height_px / 2 - y_px) / STEP_PX)
        row = N_ROWS // 2 - above
        if step is None or not 0 <= row < N_ROWS or alteration not in ALTERATIONS:
            continue
        middle = step - above - LOWEST_MIDDLE
        if 0 <= middle < N_MIDDLES:
            is_struck = str(head["id"]).split("-")[0] == str(head["notated_id"]).split("-")[0]
            column = int(x_px // COLUMN_PX)
            labels.append((column, row, middle, ALTERATIONS.index(alteration), is_struck))
    return np.array(labels, HEAD_DTYPE)
