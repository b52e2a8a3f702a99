"""Reading the sounding notes of a score, with what its dynamic and articulation marks say."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from partitura import score as ps

from fusili_mir.arrays import Float64
from fusili_mir.errors import InputError
from fusili_training.sound.notes import (
    DEFAULT_VELOCITY,
    DYNAMIC_LEVELS,
    SCORE_NOTE_DTYPE,
    ScoreNoteArray,
)

__all__ = ["read_score_notes"]

_HAIRPIN_STEP = 16  # velocity change of a hairpin that no dynamic level follows
_SFORZATO = 20
_ACCENTS = {"accent": 12, "strong-accent": 18}
_HELD = {"staccato": 0.5, "staccatissimo": 0.3, "spiccato": 0.4, "detached-legato": 0.75}
_TEXT_HAIRPIN_QUARTER = 8.0  # length of a "cresc." without a written end


def read_score_notes(score_data: ps.Score | ps.Part | list[ps.Part]) -> ScoreNoteArray:
    """Read the sounding notes of a score, sorted by onset, then pitch.

    Parameters
    ----------
    score_data : partitura.score.Score, partitura.score.Part or list of Part
        Repeats are not unfolded: unfold the parts first to include them.

    Returns
    -------
    np.ndarray [shape=(n,), dtype=SCORE_NOTE_DTYPE]
    """
    parts = [score_data] if isinstance(score_data, ps.Part) else list(score_data)
    rows = [row for index, part in enumerate(parts) for row in _part_rows(index, part)]
    notes = np.array(rows, dtype=SCORE_NOTE_DTYPE)
    if len(np.unique(notes["id"])) != len(notes):
        raise InputError(
            f"the {len(notes)} notes of the score have only {len(np.unique(notes['id']))} different ids; "
            "expected a unique id for each note"
        )
    return np.asarray(notes[np.lexsort((notes["pitch"], notes["onset_quarter"]))])


def _part_rows(index: int, part: ps.Part) -> list[tuple[Any, ...]]:
    tied = list(part.notes_tied)
    if not tied:
        return []
    onset = np.asarray(part.quarter_map([note.start.t for note in tied]), dtype=np.float64)
    offset = np.asarray(
        part.quarter_map([note.start.t + note.duration_tied for note in tied]), dtype=np.float64
    )
    velocity = _marked_velocity(part, onset)
    rows = []
    for row, note in enumerate(tied):
        articulations = note.articulations or ()
        accent = max((_ACCENTS.get(name, 0) for name in articulations), default=0)
        rows.append(
            (
                "" if note.id is None else str(note.id),
                note.midi_pitch,
                onset[row],
                offset[row] - onset[row],
                _steps_to_main(note),
                int(np.clip(velocity[row] + accent, 1, 127)),
                min((_HELD.get(name, 1.0) for name in articulations), default=1.0),
                index,
                note.staff or 0,
                note.voice or 0,
            )
        )
    return rows


def _steps_to_main(note: ps.Note) -> int:
    if not isinstance(note, ps.GraceNote):
        return 0
    # partitura links the notes of a grace chord one after another: together they are one step.
    chordal = [grace.is_grace_chord for grace in note.iter_grace_seq()]
    return len(chordal) - sum(bool(here and after) for here, after in pairwise(chordal))


def _marked_velocity(part: ps.Part, onset_quarter: Float64) -> Float64:
    """Return the velocities (n,) that the dynamic levels and hairpins of a part give at some quarters (n,)."""
    directions = list(part.iter_all(ps.LoudnessDirection, include_subclasses=True))
    levels = sorted(
        (float(part.quarter_map(mark.start.t)), float(DYNAMIC_LEVELS[mark.text]))
        for mark in directions
        if mark.text in DYNAMIC_LEVELS
    )
    starts = [quarter for quarter, _ in levels]

    def level_from(quarter: float) -> float:
        passed = int(np.searchsorted(starts, quarter, side="right"))
        return levels[passed - 1][1] if passed else float(DEFAULT_VELOCITY)

    velocity = np.array([level_from(quarter) for quarter in onset_quarter])
    for mark in directions:
        first = float(part.quarter_map(mark.start.t))
        if isinstance(mark, ps.ImpulsiveLoudnessDirection):
            velocity[onset_quarter == first] += _SFORZATO
        elif isinstance(mark, ps.DynamicLoudnessDirection):
            rising = isinstance(mark, ps.IncreasingLoudnessDirection)
            last = first + _TEXT_HAIRPIN_QUARTER if mark.end is None else float(part.quarter_map(mark.end.t))
            reached = int(np.searchsorted(starts, first, side="right"))
            if reached < len(starts):
                last = min(last, starts[reached])
            begin = level_from(first)
            goal = begin + (_HAIRPIN_STEP if rising else -_HAIRPIN_STEP)
            if reached < len(starts) and last == starts[reached]:
                goal = levels[reached][1]
            inside = (onset_quarter >= first) & (onset_quarter < last)
            velocity[inside] += (goal - begin) * (onset_quarter[inside] - first) / max(last - first, 1e-9)
    return velocity
