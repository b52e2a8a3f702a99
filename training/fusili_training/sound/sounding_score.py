"""A score as it is to be played: which notes sound, which heads represent them, where the measures begin.

Cue notes and notes without a head do not sound. Notes that are not printed (``print-object="no"``) sound, but
have no heads. Repeats are not unfolded: every measure is played once.
"""

from __future__ import annotations

import io
import tempfile
import warnings
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import partitura as pt
from lxml import etree
from partitura import score as ps

from fusili_mir.arrays import Float64, Int32
from fusili_mir.boundary import reason
from fusili_mir.errors import InputError
from fusili_mir.scores.score_file import ScoreFile
from fusili_mir.scores.unfolding import unfold_score
from fusili_training.pitches import HIGHEST_PITCH, LOWEST_PITCH
from fusili_training.sound.notes import ScoreNoteArray
from fusili_training.sound.score_notes import read_score_notes
from fusili_training.sound.tempo import WrittenTempo, read_written_tempo

__all__ = ["HEAD_DTYPE", "SoundingScore", "read_sounding_score"]

HEAD_DTYPE = np.dtype(
    [
        ("id", "U32"),
        ("note", "i4"),
        ("onset_quarter", "f8"),
        ("end_quarter", "f8"),
        ("first", "?"),
        ("last", "?"),
    ]
)
"""A printed head: the row of its note in `SoundingScore.notes`, the time it represents, and whether it is the
first and whether it is the last head of that note."""


@dataclass(frozen=True, eq=False)
class SoundingScore:
    """The notes, heads and measures of a score, as they are to be played.

    Attributes
    ----------
    notes : np.ndarray of `SCORE_NOTE_DTYPE`
        The notes that sound, within the range of the sound banks; `part` is an index into `part_ids`.
    tempo : WrittenTempo
    heads : np.ndarray of `HEAD_DTYPE`
    measure_quarters : np.ndarray [shape=(n_measures + 1,)]
        Where each measure begins, and where the last one ends.
    part_ids : tuple of str
        Ids of the parts; for MusicXML, those of the file.
    sung_parts : frozenset of int
        Parts with words under their notes.
    """

    notes: ScoreNoteArray
    tempo: WrittenTempo
    heads: npt.NDArray[np.void]
    measure_quarters: Float64
    part_ids: tuple[str, ...]
    sung_parts: frozenset[int] = frozenset()

    @cached_property
    def row_of_head(self) -> dict[str, int]:
        """Row in `heads` of each head, by its id."""
        return {str(head): row for row, head in enumerate(self.heads["id"])}


def read_sounding_score(score_file: ScoreFile) -> SoundingScore:
    """Read a score with partitura.

    Parameters
    ----------
    score_file : ScoreFile

    Returns
    -------
    SoundingScore
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return _read(score_file, _load(score_file))
    except InputError:
        raise
    except Exception as error:  # partitura raises all kinds of errors
        raise InputError(
            f"{score_file.filename}: partitura cannot read it ({reason(error)}); is it a complete score?"
        ) from error


def _read(score_file: ScoreFile, score: ps.Score) -> SoundingScore:
    marks = _Marks(score_file)
    notes = read_score_notes(score)
    notes["pitch"] += _transpositions(score, notes)
    audible = (notes["pitch"] >= LOWEST_PITCH) & (notes["pitch"] <= HIGHEST_PITCH)
    notes = notes[audible & ~np.isin(notes["id"], list(marks.silent))]
    measure_quarters = _measure_quarters(score)
    if len(measure_quarters) - 1 != len(score_file.measure_ids()):
        raise InputError(
            f"{score_file.filename}: partitura reads {len(measure_quarters) - 1} measures; "
            f"expected {len(score_file.measure_ids())}, as in the file"
        )
    return SoundingScore(
        notes=notes,
        tempo=read_written_tempo(score),
        heads=_heads(score, notes, marks.hidden),
        measure_quarters=measure_quarters,
        part_ids=tuple(str(part.id) for part in score.parts),
        sung_parts=frozenset(int(note["part"]) for note in notes if str(note["id"]) in marks.sung),
    )


def _load(score_file: ScoreFile) -> ps.Score:
    if score_file.kind == "musicxml":
        return pt.load_musicxml(io.BytesIO(score_file.to_bytes()), quiet=True)
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "score.mei"
        copy.write_bytes(score_file.to_bytes())
        return pt.load_mei(copy, quiet=True)


class _Marks:
    """The ids of the notes that a file marks as silent or hidden, and of those with words."""

    def __init__(self, score_file: ScoreFile) -> None:
        ids = {str(note.get(score_file.id_attribute)): note for note in score_file.notes()}
        self.silent = {note_id for note_id, note in ids.items() if _is_silent(note)}
        self.hidden = {note_id for note_id, note in ids.items() if _is_hidden(note)} | self.silent
        self.sung = {note_id for note_id, note in ids.items() if _is_sung(note)}


def _is_silent(note: etree._Element) -> bool:
    return (
        note.find("cue") is not None
        or (note.findtext("notehead") or "").strip() == "none"
        or note.get("cue") == "true"
        or note.get("head.visible") == "false"
    )


def _is_hidden(note: etree._Element) -> bool:
    return note.get("print-object") == "no" or note.get("visible") == "false"


def _is_sung(note: etree._Element) -> bool:
    return any(
        etree.QName(child).localname in ("lyric", "verse", "syl") for child in note.iterchildren("{*}*")
    )


def _transpositions(score: ps.Score, notes: ScoreNoteArray) -> Int32:
    """Return the semitones from the written to the sounding pitch of each note, (n,)."""
    semitones = np.zeros(len(notes), dtype=np.int32)
    for index, part in enumerate(score.parts):
        for change in part.iter_all(ps.Transposition):
            from_here = notes["onset_quarter"] >= float(part.quarter_map(change.start.t))
            semitones[(notes["part"] == index) & from_here] = int(change.chromatic or 0)
    return semitones


def _measure_quarters(score: ps.Score) -> Float64:
    part = score.parts[0]
    measures = list(part.iter_all(ps.Measure))
    starts = [measure.start.t for measure in measures]
    end = max([measure.end.t for measure in measures if measure.end is not None], default=0)
    return np.asarray(part.quarter_map([*starts, end]), dtype=np.float64)


def _heads(score: ps.Score, notes: ScoreNoteArray, hidden: set[str]) -> npt.NDArray[np.void]:
    row_of = {str(note_id): row for row, note_id in enumerate(notes["id"])}
    quarters: dict[str, tuple[float, float]] = {}
    for part in score.parts:
        printed = list(part.notes)
        begin = part.quarter_map([note.start.t for note in printed]) if printed else []
        end = part.quarter_map([note.end.t for note in printed]) if printed else []
        quarters.update(
            (str(note.id), (float(b), float(e))) for note, b, e in zip(printed, begin, end, strict=True)
        )
    rows: list[tuple[Any, ...]] = [
        (
            head,
            row_of[note.id],
            *quarters[head],
            head == note.notated_ids[0],
            head == note.notated_ids[-1],
        )
        for note in unfold_score(score, "none").notes
        if note.id in row_of
        for head in note.notated_ids
        if head not in hidden
    ]
    return np.array(rows, dtype=HEAD_DTYPE)
