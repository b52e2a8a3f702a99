"""Notes as structured arrays: as written in the score, and as played.

Conventions
----------- Score time is in quarter notes as partitura counts them (0 is the first downbeat, a pickup is
negative). Performed time is in seconds; 0 is where the written tempo starts. Notes may be earlier, such as a
grace note before the first beat. Parts are counted from 0 in score order.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from partitura import score as ps

from fusili_mir.arrays import Float64
from fusili_mir.errors import InputError

__all__ = [
    "DEFAULT_VELOCITY",
    "DYNAMIC_LEVELS",
    "PERFORMED_DTYPE",
    "SCORE_NOTE_DTYPE",
    "PerformedArray",
    "ScoreNoteArray",
    "end_at_next_stroke",
    "read_score_notes",
]

ScoreNoteArray: TypeAlias = npt.NDArray[np.void]
PerformedArray: TypeAlias = npt.NDArray[np.void]

SCORE_NOTE_DTYPE = np.dtype(
    [
        ("id", "U256"),
        ("pitch", "i4"),
        ("onset_quarter", "f8"),
        ("duration_quarter", "f8"),
        ("grace", "i4"),
        ("velocity", "i4"),
        ("held", "f4"),
        ("part", "i4"),
        ("staff", "i4"),
        ("voice", "i4"),
    ]
)
"""One sounding note of the score; tied notes count as one. `grace` counts the steps to the main note (0: not a
grace note, 1: the last grace note before it). `velocity` follows the dynamic marks, `held` is the share of the
duration for which articulation marks let the note be held."""

PERFORMED_DTYPE = np.dtype(
    [
        ("id", "U256"),
        ("pitch", "i4"),
        ("onset_sec", "f8"),
        ("duration_sec", "f8"),
        ("sounding_sec", "f8"),
        ("velocity", "i4"),
        ("part", "i4"),
    ]
)
"""One played note. `duration_sec` is how long the key is held, `sounding_sec` how long the note is heard before
its release: the pedal prolongs it, and striking the same key again ends it. `id` is the id in the score, or empty
for a note that is not in the score."""

DEFAULT_VELOCITY = 64

DYNAMIC_LEVELS = {
    "pppp": 16,
    "ppp": 24,
    "pp": 36,
    "p": 48,
    "mp": 58,
    "mf": 70,
    "f": 86,
    "ff": 102,
    "fff": 114,
    "ffff": 122,
}
"""Velocity of each dynamic mark."""
_HAIRPIN_STEP = 16  # velocity change of a hairpin that no dynamic level follows
_SFORZATO = 20
_ACCENTS = {"accent": 12, "strong-accent": 18}
_HELD = {"staccato": 0.5, "staccatissimo": 0.3, "spiccato": 0.4, "detached-legato": 0.75}
_RESTRIKE_SEC = 0.05  # the same key cannot be struck twice within this time
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


def end_at_next_stroke(played: PerformedArray) -> None:
    """Shorten `sounding_sec`, in place, of notes whose key is struck again in the same part."""
    order = np.lexsort((played["onset_sec"], played["pitch"], played["part"]))
    notes = played[order]
    wait_sec = np.diff(notes["onset_sec"])
    again = (np.diff(notes["pitch"]) == 0) & (np.diff(notes["part"]) == 0) & (wait_sec > _RESTRIKE_SEC)
    limit_sec = np.full(len(played), np.inf)
    limit_sec[order[:-1]] = np.where(again, wait_sec, np.inf)
    played["sounding_sec"] = np.minimum(played["sounding_sec"], limit_sec)


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
