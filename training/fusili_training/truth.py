"""The truth about a segment: where each note head lies, and when its note sounds.

A tied note has several heads. Each has its own row, for the time it represents; only the first head is struck.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from fusili_mir.boundary import reason
from fusili_mir.errors import InputError

__all__ = ["TRUTH_DTYPE", "TruthArray", "first_struck_sec", "truth_from_json", "truth_to_json"]

TruthArray: TypeAlias = npt.NDArray[np.void]

TRUTH_DTYPE = np.dtype(
    [
        ("id", "U32"),
        ("pitch", "i4"),
        ("measure", "i4"),
        ("staff", "i4"),
        ("x0", "f4"),
        ("y0", "f4"),
        ("x1", "f4"),
        ("y1", "f4"),
        ("onset_sec", "f8"),
        ("offset_sec", "f8"),
        ("struck", "?"),
    ]
)
"""One note head of a segment: its box in pixels of the segment image, its time in seconds of the clip. `pitch` is
a MIDI pitch, `measure` counts from 0 within the piece, `staff` from 0 within the system, `id` names the head."""

_DECIMALS = {"x0": 2, "y0": 2, "x1": 2, "y1": 2, "onset_sec": 5, "offset_sec": 5}


def first_struck_sec(truth: TruthArray) -> float:
    """Return when the first note is struck, 0 if none is."""
    struck = truth["onset_sec"][truth["struck"]]
    return float(struck.min()) if len(struck) else 0.0


def truth_to_json(truth: TruthArray) -> list[dict[str, Any]]:
    """Return the rows as JSON objects, with pixels rounded to 0.01 and seconds to 0.00001."""
    return [
        {
            name: round(float(row[name]), _DECIMALS[name]) if name in _DECIMALS else row[name].item()
            for name in TRUTH_DTYPE.names or ()
        }
        for row in truth
    ]


def truth_from_json(notes: list[dict[str, Any]]) -> TruthArray:
    """Return the rows of `truth_to_json` as an array."""
    names = TRUTH_DTYPE.names or ()
    try:
        return np.array([tuple(note[name] for name in names) for note in notes], dtype=TRUTH_DTYPE)
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(
            f"the notes of a segment cannot be read ({reason(error)}); "
            f"expected objects with {', '.join(names)}"
        ) from error
