"""How far a score sounds from where its notes stand on the pages.

The model reads the place of a note on its staff. A clarinet in B flat sounds a whole tone lower than that, and a
tenor who reads a treble clef with an 8 below it, or a guitar, an octave lower.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
import partitura as pt

from fusili_mir.pages.pages import Pages

__all__ = ["semitones_above_pages"]


def semitones_above_pages(pages: Pages) -> int:
    """Return how many semitones above its place on the pages most of a score sounds; 0 for images alone."""
    if pages.score is None:
        return 0
    by_clef = _semitones_by_clef(pages.score)
    if not pages.transpositions and not by_clef:
        return 0
    heads = np.unique(pages.notes["notated_id"]).tolist()
    semitones = Counter(pages.transpositions.get(head, 0) + by_clef.get(head, 0) for head in heads)
    return max(semitones, key=lambda each: (semitones[each], -abs(each)), default=0)


def _semitones_by_clef(score: pt.score.Score) -> dict[str, int]:
    """Return the semitones of the notes whose clef has an 8 or a 15 above or below it."""
    found: dict[str, int] = {}
    for part in score.parts:
        clefs = list(part.iter_all(pt.score.Clef))
        if not any(clef.octave_change for clef in clefs):
            continue
        by_staff = {
            staff: sorted(
                (clef.start.t, clef.octave_change or 0) for clef in clefs if (clef.staff or 1) == staff
            )
            for staff in {clef.staff or 1 for clef in clefs}
        }
        for note in part.iter_all(pt.score.Note, include_subclasses=True):
            changes = [octave for start, octave in by_staff.get(note.staff or 1, []) if start <= note.start.t]
            if changes and changes[-1]:
                found[note.id] = 12 * changes[-1]
    return found
