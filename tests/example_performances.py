"""Performances of engraved scores for the pitch bundle: when each note is played, and how that sounds."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from example_bundles import sine_recording
from example_scores import measure, note, score

from fusili_mir.alignment.played import PlayedScore
from fusili_mir.audio.recording import AudioSamples
from fusili_mir.pages.score_axis import COLUMN_DTYPE, ScoreAxis

FRAME_SEC = 0.04  # of the pitch bundle

PITCHES = ("C4", "E4", "G4", "C5", "A4", "F4", "D5", "B4", "E5", "D4", "F5", "A4", "G4", "B4", "C5", "E4")
"""Sixteen notes, no two neighbours alike, that are not the same backwards."""


def tune(pitches: Sequence[str] = PITCHES) -> str:
    """One staff of quarter notes, two a measure."""
    bars = [
        measure("".join(note(pitch) for pitch in pitches[i : i + 2]), i // 2 + 1, first=i == 0)
        for i in range(0, len(pitches), 2)
    ]
    return score(bars)


def perform(
    played: PlayedScore,
    start_sec: float = 0.48,
    beat_sec: float = 0.48,
    grace_sec: float = 0.08,
    slower: float = 0.0,
) -> npt.NDArray[np.void]:
    """Play a score: onsets fall on frame borders unless `slower` stretches each beat a bit more than the last.

    A grace note takes its time before the note that it leads to; each other note ends a little early.
    """
    notes = played.notes
    beat = notes["onset_beat"] - notes["onset_beat"].min()
    performed = np.zeros(
        len(notes), [("id", "U32"), ("onset_sec", "f8"), ("duration_sec", "f8"), ("pitch", "i4")]
    )
    performed["id"], performed["pitch"] = notes["id"], notes["pitch"]
    performed["onset_sec"] = start_sec + beat * beat_sec + slower * beat**2
    performed["duration_sec"] = np.where(
        notes["is_grace"], grace_sec, notes["duration_beat"] * beat_sec - 0.08
    )
    performed["onset_sec"] -= np.where(notes["is_grace"], grace_sec, 0.0)
    return performed


def record(performed: npt.NDArray[np.void], end_sec: float | None = None) -> AudioSamples:
    """Record a performance, with a second of silence at the end."""
    end_sec = end_sec or float((performed["onset_sec"] + performed["duration_sec"]).max()) + 1.0
    return AudioSamples(sine_recording(performed, end_sec=end_sec), 16_000)


def axis_of(n_columns: int, n_systems: int = 1) -> ScoreAxis:
    """Lay out columns of 10 px, in systems of 100 px height that lie 200 px under each other on one page."""
    columns = np.zeros(n_columns * n_systems, COLUMN_DTYPE)
    columns["system"] = np.repeat(np.arange(n_systems), n_columns)
    columns["x0"] = 50 + np.tile(10 * np.arange(n_columns), n_systems)
    columns["x1"] = columns["x0"] + 10
    columns["y0"] = 100 + 200 * columns["system"]
    columns["y1"] = columns["y0"] + 100
    return ScoreAxis(columns)
