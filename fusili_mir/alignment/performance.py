"""Alignments in partitura's own terms: alignment list and `Performance`."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import partitura as pt

from fusili_mir.alignment.tempo_map import TempoMap
from fusili_mir.argument_kinds import checked
from fusili_mir.arrays import Float64, Table
from fusili_mir.errors import InputError

__all__ = [
    "NoteAlignment",
    "anchors_from_alignment",
    "note_alignment",
    "performance_from_alignment",
    "performance_from_notes",
]

NoteAlignment: TypeAlias = list[dict[str, Any]]
"""partitura's list of dicts: `label`, `score_id`, `performance_id`; our matches also have `performance_time`
(seconds) and `confidence`."""

_VELOCITY = 64  # loudness is not measured
_MIN_DURATION_SEC = 0.02


def note_alignment(notes: Table) -> NoteAlignment:
    """Pair the notes of the score with those of the performance.

    Parameters
    ----------
    notes : structured array with id, onset_sec and confidence
        `onset_sec` is NaN for notes that were not heard.

    Returns
    -------
    list of dict
        A `match` for every note that was heard, a `deletion` for every other. The note ``x`` of the score is
        the note ``nx`` of the performance: partitura expects ids of performed notes to begin with n.

    Examples
    --------
    >>> fields = [("id", "U8"), ("onset_sec", "f8"), ("confidence", "f8")]
    >>> heard, missing = note_alignment(np.array([("a", 0.5, 0.9), ("b", np.nan, 0.0)], fields))
    >>> heard["label"], heard["performance_id"], missing
    ('match', 'na', {'label': 'deletion', 'score_id': 'b'})
    """
    return [
        {
            "label": "match",
            "score_id": str(note["id"]),
            "performance_id": f"n{note['id']}",
            "performance_time": float(note["onset_sec"]),
            "confidence": float(note["confidence"]),
        }
        if np.isfinite(note["onset_sec"])
        else {"label": "deletion", "score_id": str(note["id"])}
        for note in notes
    ]


def performance_from_notes(notes: Table) -> pt.performance.Performance:
    """Make a performance from the notes of an alignment.

    Parameters
    ----------
    notes : structured array with id, pitch, onset_sec and offset_sec
        `onset_sec` is NaN for notes that were not heard; they are left out.

    Returns
    -------
    partitura.performance.Performance
        Performance with one part.
    """
    heard = notes[np.isfinite(notes["onset_sec"])]
    performed = [
        {
            "id": f"n{note['id']}",
            "midi_pitch": int(note["pitch"]),
            "note_on": float(note["onset_sec"]),
            "note_off": float(note["offset_sec"]),
            "velocity": _VELOCITY,
            "track": 0,
            "channel": 1,
        }
        for note in heard[np.argsort(heard["onset_sec"], kind="stable")]
    ]
    return pt.performance.Performance(pt.performance.PerformedPart(performed, id="P0"))


@checked
def performance_from_alignment(
    alignment: NoteAlignment, score_data: pt.score.ScoreLike
) -> pt.performance.Performance:
    """Make a performance of a score from an alignment.

    Parameters
    ----------
    alignment : list of dict
        Alignment whose matches have a `performance_time`, in seconds.
    score_data : partitura.score.Score or Part
        The score that the alignment belongs to; its first part is played.

    Returns
    -------
    partitura.performance.Performance
        Onsets are those of the alignment; offsets follow from the durations in the score and the tempo between
        onsets.
    """
    rows, seconds = _matched(alignment, score_data)
    anchors = anchors_from_alignment(alignment, score_data)
    tempo = TempoMap(anchors[:, 0], np.maximum.accumulate(anchors[:, 1]))
    notes = np.zeros(len(rows), [("id", "U256"), ("pitch", "i4"), ("onset_sec", "f8"), ("offset_sec", "f8")])
    notes["id"], notes["pitch"], notes["onset_sec"] = rows["id"], rows["pitch"], seconds
    ends = tempo.to_seconds(rows["onset_beat"] + rows["duration_beat"])
    notes["offset_sec"] = np.maximum(ends, seconds + _MIN_DURATION_SEC)
    return performance_from_notes(notes)


@checked
def anchors_from_alignment(
    alignment: NoteAlignment, score_data: pt.score.ScoreLike, spacing_beat: float = 0.0
) -> Float64:
    """Pair beats with seconds, as `parangonar.AnchorPointNoteMatcher` expects them.

    Parameters
    ----------
    alignment : list of dict
        Alignment whose matches have a `performance_time`, in seconds.
    score_data : partitura.score.Score or Part
        The score that the alignment belongs to.
    spacing_beat : float
        Smallest distance between two anchors; by default there is one per onset of the score.

    Returns
    -------
    np.ndarray [shape=(n, 2)]
        Rows of (beat, second) with strictly increasing beats. Of notes that begin together, the first one heard
        counts; grace notes are left out.
    """
    rows, seconds = _matched(alignment, score_data)
    main = rows["is_grace"] == 0
    if main.any():
        rows, seconds = rows[main], seconds[main]
    order = np.lexsort((seconds, rows["onset_beat"]))
    beats, first = np.unique(rows["onset_beat"][order].astype(np.float64), return_index=True)
    anchors = np.column_stack((beats, seconds[order][first]))
    kept = [0]
    for row in range(1, len(anchors)):
        if anchors[row, 0] - anchors[kept[-1], 0] >= spacing_beat:
            kept.append(row)
    return anchors[kept]


def _matched(alignment: NoteAlignment, score_data: pt.score.ScoreLike) -> tuple[Table, Float64]:
    """Return the rows of the score's note array that are matched, and when they are played."""
    if not isinstance(score_data, pt.score.Part) and not len(list(score_data)):
        raise InputError("the score has no parts; expected the one that belongs to the alignment")
    part = score_data if isinstance(score_data, pt.score.Part) else score_data[0]
    note_array = part.note_array(include_grace_notes=True)
    row_of = {str(note_id): row for row, note_id in enumerate(note_array["id"])}
    matches = [entry for entry in alignment if entry["label"] == "match"]
    if not matches:
        raise InputError("the alignment has no matches; expected at least one note that was heard")
    unknown = [entry["score_id"] for entry in matches if entry["score_id"] not in row_of]
    if unknown:
        raise InputError(
            f"{len(unknown)} notes of the alignment are not in the score ({unknown[0]!r}, ...); expected the "
            "unfolded score that it belongs to"
        )
    if "performance_time" not in matches[0]:
        raise InputError("the alignment has no performance_time; expected one from align_score")
    rows: Table = note_array[[row_of[entry["score_id"]] for entry in matches]]
    return rows, np.array([float(entry["performance_time"]) for entry in matches])
