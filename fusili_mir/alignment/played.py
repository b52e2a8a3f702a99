"""A symbolic score as it is played: notes and measures in playing order, each with its place on the pages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import partitura as pt
from partitura.utils.music import note_array_from_note_list

from fusili_mir.arrays import Table
from fusili_mir.errors import InputError
from fusili_mir.pages.pages import Pages
from fusili_mir.scores.merging import merge_score
from fusili_mir.scores.playing_order import write_playing_order
from fusili_mir.scores.unfolding import Unfold, UnfoldedScore, unfold_score
from fusili_mir.short_repr import short_repr

__all__ = ["PLAYED_MEASURE_DTYPE", "PLAYED_NOTE_DTYPE", "PlayedScore", "play_pages"]

_BOX: list[tuple[str, Any]] = [("x0", "f4"), ("y0", "f4"), ("x1", "f4"), ("y1", "f4")]
_PLACE: list[tuple[str, Any]] = [("page", "i4"), ("system", "i4"), *_BOX]

PLAYED_NOTE_DTYPE = np.dtype(
    [
        ("id", "U256"),
        ("notated_id", "U256"),
        ("measure", "i4"),
        ("onset_beat", "f8"),
        ("duration_beat", "f8"),
        ("pitch", "i4"),
        ("is_grace", "?"),
        *_PLACE,
    ]
)
"""One note as it sounds: a row of partitura's note array. The place is that of its (first) head; for a note
without an engraved head, page and system are -1 and the box is NaN."""

PLAYED_MEASURE_DTYPE = np.dtype(
    [("measure", "i4"), ("number", "U16"), ("start_beat", "f8"), ("end_beat", "f8"), *_PLACE]
)
"""One measure, each time it is played; `measure` is the index of the printed measure, from 0."""


@short_repr
@dataclass(frozen=True)
class PlayedScore:
    """A score in the order in which it is played.

    Attributes
    ----------
    score : partitura.score.Score
        The unfolded score, with its parts merged into one.
    notes : np.ndarray of `PLAYED_NOTE_DTYPE`
        Notes by onset; grace notes come before the notes that they lead to.
    measures : np.ndarray of `PLAYED_MEASURE_DTYPE`
        Measures in playing order.
    unfold : "none", "maximal", "minimal" or stretches of measures
        How repeats were written out; see `unfold_score`.
    """

    score: pt.score.Score
    notes: Table
    measures: Table
    unfold: Unfold

    @property
    def repeats(self) -> str:
        """How repeats were written out: a name, or measures as played, such as ``1-8 1-8 9-16``."""
        if isinstance(self.unfold, str):
            return self.unfold
        number_of = dict(
            zip(self.measures["measure"].tolist(), self.measures["number"].tolist(), strict=True)
        )
        n_measures = max(end for _, end in self.unfold)
        numbers = [number_of.get(index, f"({index})") for index in range(n_measures)]  # not played: no name
        return write_playing_order(self.unfold, numbers)


def play_pages(pages: Pages, unfold: Unfold = "none") -> PlayedScore:
    """Write out the repeats of engraved pages.

    Parameters
    ----------
    pages : Pages
        Pages from `render_pages` with ``unfold="none"``.
    unfold : "none", "maximal", "minimal" or stretches of measures
        See `unfold_score`.

    Returns
    -------
    PlayedScore
    """
    if pages.score is None:
        raise InputError(f"{pages.filename}: only images are known; expected MusicXML, MXL or MEI")
    unfolded = unfold_score(pages.score, unfold)
    score = merge_score(unfolded.score)
    notes = _played_notes(pages, unfolded, score.parts[0])
    measures = _played_measures(pages, score.parts[0])
    if unfold != "none":
        # Repeated numbers mislead readers of .match files; `name` keeps the printed number.
        for number, measure in enumerate(score.parts[0].iter_all(pt.score.Measure), start=1):
            measure.number = number
    if len(notes) and np.all(notes["page"] < 0):
        raise InputError(
            f"{pages.filename}: none of the notes that sound is printed on the pages; expected pages from "
            "render_pages with unfold none"
        )
    if not len(notes) or not len(measures):
        raise InputError(
            f"{pages.filename}: {len(notes)} notes sound in {len(measures)} measures; expected both"
        )
    return PlayedScore(score, notes, measures, unfold)


def _played_notes(pages: Pages, unfolded: UnfoldedScore, part: pt.score.Part) -> Table:
    sounding = _note_array(part)
    first_head = {note.id: note.notated_ids[0] for note in unfolded.notes}
    row_of_head = {head: row for row, head in enumerate(pages.notes["notated_id"].tolist())}
    notes = np.zeros(len(sounding), dtype=PLAYED_NOTE_DTYPE)
    for name in ("id", "onset_beat", "duration_beat", "pitch"):
        notes[name] = sounding[name]
    notes["is_grace"] = sounding["is_grace"] == 1
    heads = [first_head.get(str(note_id), "") for note_id in sounding["id"]]
    notes["notated_id"] = heads
    rows = np.array([row_of_head.get(head, -1) for head in heads])
    for name in ("page", "system", "measure", "x0", "y0", "x1", "y1"):
        notes[name] = np.where(rows >= 0, pages.notes[name][rows], np.nan if name[0] in "xy" else -1)
    order = np.lexsort((notes["x0"], ~notes["is_grace"], notes["onset_beat"].round(6)))
    played: Table = notes[order]
    return played


def _note_array(part: pt.score.Part) -> Table:
    """Return ``part.note_array(include_grace_notes=True)`` without quarters; partitura maps times one by one."""
    notes = part.notes_tied
    times = np.unique([time for note in notes for time in (note.start.t, note.start.t + note.duration_tied)])
    beat_at = dict(zip(times.tolist(), np.asarray(part.beat_map(times)).tolist(), strict=True))
    array: Table = note_array_from_note_list(
        notes, beat_map=lambda some: [beat_at[time] for time in some], include_grace_notes=True
    )
    return array


def _played_measures(pages: Pages, part: pt.score.Part) -> Table:
    assert pages.score is not None  # noqa: S101
    notated = list(pages.score.parts[0].iter_all(pt.score.Measure))
    index_of = {(measure.number, measure.name): index for index, measure in enumerate(notated)}
    box_of = {int(row["measure"]): row for row in pages.measures}
    sounding = list(part.iter_all(pt.score.Measure))
    ends = part.beat_map([[measure.start.t, measure.end.t] for measure in sounding]) if sounding else []
    played = []
    for measure, (start, end) in zip(sounding, ends, strict=True):
        index = index_of.get((measure.number, measure.name), -1)
        if index in box_of:
            box = box_of[index]
            played.append((index, box["number"], start, end, *(box[name] for name, _ in _PLACE)))
    measures = np.array(played, dtype=PLAYED_MEASURE_DTYPE)
    return measures[np.argsort(measures["start_beat"], kind="stable")]
