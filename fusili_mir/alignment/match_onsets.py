"""When the notes of a score begin in a performance, read from a match file of partitura's."""

from __future__ import annotations

from pathlib import Path

import partitura as pt

from fusili_mir.boundary import reason, refuse_address
from fusili_mir.errors import InputError

__all__ = ["TOLERANCES_MS", "reference_onsets"]

TOLERANCES_MS = (25, 50, 100, 250, 500, 1000)
"""Onset errors within which the field counts notes, in milliseconds."""


def reference_onsets(filename: str | Path) -> dict[str, float]:
    """Read the onsets of the matched score notes from a match file.

    Parameters
    ----------
    filename : str or Path

    Returns
    -------
    dict of str to float
        Score note id -> onset in seconds. Notes that were not played are missing.
    """
    refuse_address(filename)
    if not Path(filename).is_file():
        raise InputError(f"{filename}: not found; expected a match file")
    try:
        performance, alignment = pt.load_match(str(filename))[:2]
    except Exception as error:  # partitura raises whatever its parsing trips over
        raise InputError(f"{filename}: cannot be read ({reason(error)}); expected a match file") from error
    onset_sec = {str(row["id"]): float(row["onset_sec"]) for row in performance.note_array()}
    return {
        str(entry["score_id"]): onset_sec[str(entry["performance_id"])]
        for entry in alignment
        if entry["label"] == "match"
    }
