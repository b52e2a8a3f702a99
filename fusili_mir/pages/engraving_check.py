"""Whether an engraving shows the score: notes have heads, on their staff, in the order in which they sound."""

from __future__ import annotations

import warnings

import numpy as np

from fusili_mir.arrays import Bool, Float64, Table
from fusili_mir.pages.engraving import Engraving
from fusili_mir.scores.loading import LoadedScore
from fusili_mir.scores.part_times import quarters_of
from fusili_mir.scores.score_file import ScoreFile
from fusili_mir.scores.score_warning import ScoreWarning
from fusili_mir.scores.unfolding import unfold_score

__all__ = ["heads_off_staff", "heads_out_of_order", "hidden_notes", "warn_of_disagreement"]

FAR_SPACES = 12.0
"""Distance from its staff at which a head is called far, in staff spaces: nobody prints so many ledger lines."""

_BACK_HEADS = 1.5  # how far left of an earlier note a head may be, in head widths: seconds in chords


def warn_of_disagreement(loaded: LoadedScore, engraving: Engraving) -> None:
    """Warn if notes have no head, or if heads are far from their staff or out of order.

    Parameters
    ----------
    loaded : LoadedScore
    engraving : Engraving
        Its `notated_id` are ids of `loaded.score`.
    """
    drawn = set(engraving.notes["notated_id"].tolist())
    hidden = {loaded.note_ids.get(note, "") for note in hidden_notes(loaded.score_file)}
    notes = unfold_score(loaded.score, "none").notes
    missing = [note.id for note in notes if not drawn & set(note.notated_ids) and note.id not in hidden]
    _warn(loaded, missing, len(notes), "notes have no head on the pages, and cannot be located")
    far = engraving.notes[heads_off_staff(engraving.notes, engraving.staves) > FAR_SPACES]
    _warn(
        loaded,
        far["notated_id"].tolist(),
        len(engraving.notes),
        f"heads are more than {FAR_SPACES:g} ledger lines from their staff; are clefs or staves missing?",
    )
    if loaded.is_rounded:
        return
    onset_quarter = _onset_quarters(loaded)
    onsets = np.array([onset_quarter.get(head, np.nan) for head in engraving.notes["notated_id"].tolist()])
    late = engraving.notes[heads_out_of_order(engraving.notes, onsets)]
    _warn(
        loaded,
        late["notated_id"].tolist(),
        len(engraving.notes),
        "heads are left of notes that sound before them; are durations wrong?",
    )


def hidden_notes(score_file: ScoreFile) -> set[str]:
    """Return the ids of the notes of a file that are not printed because the file says so."""
    return {
        str(note.get(score_file.id_attribute))
        for note in score_file.notes()
        if note.get("print-object") == "no"
        or (note.findtext("notehead") or "").strip() == "none"
        or note.get("visible") == "false"
        or note.get("head.visible") == "false"
    }


def heads_off_staff(notes: Table, staves: Table) -> Float64:
    """Return how far heads are above or below their staff, in staff spaces; negative within it.

    Parameters
    ----------
    notes, staves : np.ndarray of `NOTE_DTYPE`, `STAFF_DTYPE`

    Returns
    -------
    np.ndarray [shape=(n,)]
    """
    row_of = {(int(row["system"]), int(row["staff"])): index for index, row in enumerate(staves)}
    own = staves[[row_of[int(head["system"]), int(head["staff"])] for head in notes]]
    away = np.maximum(own["y0"] - notes["y1"], notes["y0"] - own["y1"]) / own["space_px"]
    return np.asarray(away, np.float64)


def heads_out_of_order(notes: Table, onset_quarter: Float64) -> Bool:
    """Return which heads are left of heads in the same measure that begin earlier.

    Parameters
    ----------
    notes : np.ndarray of `NOTE_DTYPE` [shape=(n,)]
    onset_quarter : np.ndarray [shape=(n,)]
        Onsets; NaN for heads that are not compared, such as grace notes.

    Returns
    -------
    np.ndarray of bool [shape=(n,)]
    """
    out = np.zeros(len(notes), bool)
    middle = (notes["x0"].astype(np.float64) + notes["x1"]) / 2
    places = np.stack((notes["page"], notes["system"], notes["measure"]), axis=1)
    known = np.flatnonzero(np.isfinite(onset_quarter))
    _, measure = np.unique(places[known], axis=0, return_inverse=True)
    order = known[np.lexsort((middle[known], onset_quarter[known].round(4), measure.ravel()))]
    rank = dict(zip(known.tolist(), measure.ravel().tolist(), strict=True))
    furthest = earlier = -np.inf
    last = (-1, np.nan)
    for row in order.tolist():
        here = (rank[row], round(float(onset_quarter[row]), 4))
        if here[0] != last[0]:
            furthest = earlier = -np.inf
        elif here != last:
            earlier = furthest
        allowed = _BACK_HEADS * float(notes["x1"][row] - notes["x0"][row])
        out[row] = middle[row] < earlier - allowed
        furthest = max(furthest, middle[row])
        last = here
    return out


def _onset_quarters(loaded: LoadedScore) -> dict[str, float]:
    onsets: dict[str, float] = {}
    for part in loaded.score.parts:
        notes = [note for note in part.notes if note.duration]
        if notes:
            quarters = quarters_of(part)([note.start.t for note in notes])
            onsets.update((str(note.id), float(onset)) for note, onset in zip(notes, quarters, strict=True))
    return onsets


def _warn(loaded: LoadedScore, ids: list[str], n_all: int, what: str) -> None:
    if ids:
        warnings.warn(
            f"{loaded.filename}: {len(ids)} of {n_all} {what} (first: {ids[0]!r})", ScoreWarning, stacklevel=4
        )
