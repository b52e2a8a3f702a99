"""A score as a person played it, with notes left out and notes added."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from fusili_mir.errors import InputError
from fusili_training.sound.notes import PerformedArray
from fusili_training.sound.score_clock import read_score_clock
from fusili_training.sound.sounding_score import SoundingScore

__all__ = ["HumanRendition", "follow_performance"]


@dataclass(frozen=True, eq=False)
class HumanRendition:
    """A score of which every note was played; row i of `performed` says how note i was played."""

    score: SoundingScore
    performed: PerformedArray


def follow_performance(score: SoundingScore, performed: PerformedArray) -> HumanRendition:
    """Reduce a score to the notes that were played, and insert the added notes where they were heard.

    Parameters
    ----------
    score : SoundingScore
    performed : np.ndarray [shape=(m,), dtype=PERFORMED_DTYPE]
        Notes as `fusili_training.sound.human_timing` reads them: with ids of the score, or empty ids for added
        notes.

    Returns
    -------
    HumanRendition
        Without the notes that were left out and their heads; added notes have no heads.
    """
    row_of = {str(note_id): row for row, note_id in enumerate(performed["id"]) if note_id}
    kept = np.array([str(note_id) in row_of for note_id in score.notes["id"]], dtype=bool)
    if not kept.any():
        raise InputError("none of the notes of the score was played; is this a performance of another piece?")
    notes = score.notes[kept]
    played = performed[[row_of[str(note_id)] for note_id in notes["id"]]]
    clock = read_score_clock(notes, played)
    extra = performed[performed["id"] == ""]
    added = np.zeros(len(extra), dtype=notes.dtype)
    added["pitch"], added["part"], added["velocity"] = extra["pitch"], extra["part"], extra["velocity"]
    added["onset_quarter"] = np.interp(extra["onset_sec"], clock.onsets_sec, clock.quarters)
    added["grace"] = 1  # so that the clock does not follow them
    new_row = np.cumsum(kept) - 1
    heads = score.heads[kept[score.heads["note"]]]
    heads["note"] = new_row[heads["note"]]
    return HumanRendition(
        replace(score, notes=np.concatenate([notes, added]), heads=heads), np.concatenate([played, extra])
    )
