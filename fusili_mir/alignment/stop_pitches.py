"""The pitches of stops: known from a symbolic score, or read from page images."""

from __future__ import annotations

import numpy as np

from fusili_mir.alignment.played import PlayedScore
from fusili_mir.alignment.playing_course import PlayingCourse
from fusili_mir.arrays import Float32
from fusili_mir.audio.onset_map import N_PITCHES, pitch_index
from fusili_mir.decoding.course import Course
from fusili_mir.decoding.onset_evidence import StopPitches

__all__ = ["pitches_of_notes", "pitches_of_places"]

_MOST_NOTES = 6.0  # set by hand: read from one place of an image
_FEWEST_NOTES = 0.05  # set by hand: where fewer are read, nothing is read that could be doubtful


def pitches_of_notes(played: PlayedScore, on_course: PlayingCourse) -> StopPitches:
    """Return the pitches of the notes that begin at each stop."""
    weights = np.zeros((len(on_course.course), N_PITCHES), np.float32)
    placed = on_course.stop_of_note >= 0
    weights[on_course.stop_of_note[placed], pitch_index(played.notes["pitch"][placed])] = 1.0
    n_notes = np.maximum(weights.sum(axis=1), 1.0)
    return StopPitches(np.asarray(weights / n_notes[:, None], np.float32), n_notes)


def pitches_of_places(pitches: Float32, course: Course) -> StopPitches:
    """Return the pitches that are read at each place.

    Parameters
    ----------
    pitches : np.ndarray [shape=(C, 88)]
        Probabilities for each column.
    course : Course
        The places.

    Returns
    -------
    StopPitches
        The most certain column of a place counts, pitch by pitch. Where nothing at all is read, no pitch counts.
    """
    weights = np.maximum.reduceat(pitches[course.columns], course.first[:-1], axis=0)
    expected = weights.sum(axis=1)
    n_notes = np.where(expected > 0, np.clip(expected, 1.0, _MOST_NOTES), 0.0).astype(np.float32)
    doubtful = np.asarray(np.sum(weights * (1 - weights), axis=1) / (expected + _FEWEST_NOTES), np.float32)
    return StopPitches(
        weights / np.maximum(expected, 1e-6)[:, None], n_notes, are_read=True, doubtful=doubtful
    )
