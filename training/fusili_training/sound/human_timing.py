"""Reading human performances from match files, or from MIDI files that are aligned note by note.

The notes have the form that `expression.perform` gives, so they are synthesised in the same way. Notes that the
player added to the score sound too; their ids are empty.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

import mido
import numpy as np
import partitura as pt
from partitura.performance import Performance

from fusili_mir.boundary import reason
from fusili_mir.errors import InputError, MissingExtraError
from fusili_training.sound.notes import PERFORMED_DTYPE, PerformedArray, ScoreNoteArray, end_at_next_stroke

__all__ = [
    "played_notes_from_alignment",
    "played_notes_from_match",
    "played_notes_from_midi",
    "read_played_notes",
]

_LEAST_KNOWN = 0.5  # share of the aligned ids that must be in the score


def read_played_notes(filename: str | os.PathLike[str], notes: ScoreNoteArray) -> PerformedArray:
    """Read a performance from a MIDI file (.mid, .midi) or from a match file, as the two functions below do."""
    is_midi = os.fspath(filename).lower().endswith((".mid", ".midi"))
    return (played_notes_from_midi if is_midi else played_notes_from_match)(filename, notes)


def played_notes_from_match(filename: str | os.PathLike[str], notes: ScoreNoteArray) -> PerformedArray:
    """Read the played notes from a match file.

    Parameters
    ----------
    filename : path
    notes : np.ndarray [shape=(n,), dtype=SCORE_NOTE_DTYPE]
        Notes of the score, with the ids of the match file.

    Returns
    -------
    np.ndarray [shape=(m,), dtype=PERFORMED_DTYPE]
        Sorted by onset; second 0 is that of the file. Notes that the player left out are missing.
    """
    try:
        performance, alignment = pt.load_match(os.fspath(filename), quiet=True)
    except Exception as error:  # partitura raises all kinds of errors on a broken file
        raise InputError(f"{filename}: cannot be read ({reason(error)}); expected a match file") from error
    return played_notes_from_alignment(performance, alignment, notes)


def played_notes_from_midi(filename: str | os.PathLike[str], notes: ScoreNoteArray) -> PerformedArray:
    """Read the played notes from a MIDI file and match them with the score by parangonar.

    Parameters and result are those of `played_notes_from_match`. The repeats of the score must be unfolded as
    they were played.
    """
    try:
        from parangonar import DualDTWNoteMatcher
    except ImportError as error:
        raise MissingExtraError(
            "aligning a MIDI performance needs parangonar; install it with `pip install fusili-mir[integrations]`"
        ) from error
    try:
        performance = pt.load_performance_midi(os.fspath(filename))
    except (OSError, EOFError, ValueError, KeyError, IndexError, mido.KeySignatureError) as error:
        raise InputError(f"{filename}: cannot be read ({reason(error)}); expected a MIDI file") from error
    if not any(part.notes for part in performance.performedparts):
        raise InputError(f"the MIDI file {filename} has no notes")
    score = np.zeros(
        len(notes),
        dtype=[
            ("onset_beat", "f4"),
            ("duration_beat", "f4"),
            ("pitch", "i4"),
            ("voice", "i4"),
            ("id", "U256"),
            ("is_grace", "?"),
        ],
    )
    score["onset_beat"], score["duration_beat"] = notes["onset_quarter"], notes["duration_quarter"]
    for name in ("pitch", "voice", "id"):
        score[name] = notes[name]
    score["is_grace"] = notes["grace"] > 0
    alignment = DualDTWNoteMatcher()(score, performance.note_array())
    return played_notes_from_alignment(performance, alignment, notes)


def played_notes_from_alignment(
    performance: Performance, alignment: Iterable[Mapping[str, Any]], notes: ScoreNoteArray
) -> PerformedArray:
    """Return the notes of a performance with the ids of the score notes that they are matched with.

    Parameters
    ----------
    performance : partitura.performance.Performance
    alignment : iterable of dict
        Entries in partitura's form: `label`, `score_id`, `performance_id`.
    notes : np.ndarray [shape=(n,), dtype=SCORE_NOTE_DTYPE]

    Returns
    -------
    np.ndarray [shape=(m,), dtype=PERFORMED_DTYPE]
    """
    score_ids = {
        str(row["performance_id"]): str(row["score_id"]) for row in alignment if row["label"] == "match"
    }
    part_of = {str(note["id"]): int(note["part"]) for note in notes}
    known = sum(score_id in part_of for score_id in score_ids.values())
    if known < _LEAST_KNOWN * max(len(score_ids), 1) or not score_ids:
        raise InputError(
            f"only {known} of {len(score_ids)} matched notes are in the score; "
            "is this another edition, or are its repeats unfolded differently?"
        )
    rows = []
    for part in performance.performedparts:
        for note in part.notes:
            score_id = score_ids.get(str(note["id"]), "")
            score_id = score_id if score_id in part_of else ""
            held_sec = note["note_off"] - note["note_on"]
            rows.append(
                (
                    score_id,
                    note["midi_pitch"],
                    note["note_on"],
                    held_sec,
                    max(note.get("sound_off", note["note_off"]) - note["note_on"], held_sec),
                    note["velocity"],
                    part_of.get(score_id, 0),
                )
            )
    played = np.array(rows, dtype=PERFORMED_DTYPE)
    played = played[np.lexsort((played["pitch"], played["onset_sec"]))]
    end_at_next_stroke(played)
    return np.asarray(played)
