"""Notes as structured arrays: as written in the score, and as played.

Conventions
-----------
Score time is in quarter notes as partitura counts them (0 is the first downbeat, a pickup is
negative). Performed time is in seconds; 0 is where the written tempo starts. Notes may be earlier, such as a
grace note before the first beat. Parts are counted from 0 in score order.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

__all__ = [
    "DEFAULT_VELOCITY",
    "DYNAMIC_LEVELS",
    "PERFORMED_DTYPE",
    "SCORE_NOTE_DTYPE",
    "PerformedArray",
    "ScoreNoteArray",
    "end_at_next_stroke",
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
_RESTRIKE_SEC = 0.05  # the same key cannot be struck twice within this time


def end_at_next_stroke(played: PerformedArray) -> None:
    """Shorten `sounding_sec`, in place, of notes whose key is struck again in the same part."""
    order = np.lexsort((played["onset_sec"], played["pitch"], played["part"]))
    notes = played[order]
    wait_sec = np.diff(notes["onset_sec"])
    again = (np.diff(notes["pitch"]) == 0) & (np.diff(notes["part"]) == 0) & (wait_sec > _RESTRIKE_SEC)
    limit_sec = np.full(len(played), np.inf)
    limit_sec[order[:-1]] = np.where(again, wait_sec, np.inf)
    played["sounding_sec"] = np.minimum(played["sounding_sec"], limit_sec)
