"""From the times of stops to the onsets and offsets of notes.

Notes of a chord share an onset; notes that share a stop with earlier ones are placed by the tempo. Notes
before the first or after the last stop that was heard have no time.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fusili_mir.alignment.played import PlayedScore
from fusili_mir.alignment.playing_course import PlayingCourse
from fusili_mir.alignment.tempo_map import TempoMap
from fusili_mir.arrays import Bool, Float64
from fusili_mir.decoding.stop_times import StopTimes
from fusili_mir.geometry import FrameGrid
from fusili_mir.short_repr import short_repr

__all__ = ["NoteTimes", "note_times"]

_MIN_DURATION_SEC = 0.02


@short_repr
@dataclass(frozen=True)
class NoteTimes:
    """When the notes of a score are played.

    Attributes
    ----------
    onset_sec, offset_sec : np.ndarray [shape=(n_notes,)]
        Times within the recording; NaN for notes that were not heard.
    confidence : np.ndarray [shape=(n_notes,)]
        Confidence within [0, 1]; 0 for notes that were not heard.
    tempo : TempoMap
        Map between beats and seconds of the whole performance.
    """

    onset_sec: Float64
    offset_sec: Float64
    confidence: Float64
    tempo: TempoMap


def note_times(
    played: PlayedScore, on_course: PlayingCourse, stops: StopTimes, reliability: float, grid: FrameGrid
) -> NoteTimes:
    """Find when each note begins and ends.

    Parameters
    ----------
    played : PlayedScore
    on_course : PlayingCourse
        The same notes on the course.
    stops : StopTimes
    reliability : float
        Reliability of the path; confidences are multiplied by it.
    grid : FrameGrid
        Frames of the recording.

    Returns
    -------
    NoteTimes
        A note ends where the score says, a grace note where the note that it leads to begins.
    """
    notes = played.notes
    tempo = _tempo_map(played, on_course, stops)
    stop = np.maximum(on_course.stop_of_note, 0)
    own_stop = (on_course.stop_of_note >= 0) & on_course.begins_stop
    onset_sec = np.where(own_stop, stops.onset_sec[stop], tempo.to_seconds(notes["onset_beat"]))
    offset_sec = tempo.to_seconds(notes["onset_beat"] + notes["duration_beat"])
    first_sec = grid.audio_start_sec
    onset_sec = np.clip(onset_sec, first_sec, max(grid.end_sec - _MIN_DURATION_SEC, first_sec))
    offset_sec = grid.within(np.maximum(offset_sec, onset_sec + _MIN_DURATION_SEC))
    heard = _is_heard(played, on_course, stops)
    confidence = np.where(on_course.stop_of_note >= 0, stops.confidence[stop], 0.0) * reliability
    return NoteTimes(
        onset_sec=np.where(heard, onset_sec, np.nan),
        offset_sec=np.where(heard, offset_sec, np.nan),
        confidence=np.where(heard, confidence, 0.0),
        tempo=tempo,
    )


def _tempo_map(played: PlayedScore, on_course: PlayingCourse, stops: StopTimes) -> TempoMap:
    """Pair the beats of onsets, except grace notes, and of the end with their seconds."""
    notes = played.notes
    known = on_course.begins_stop & (on_course.stop_of_note >= 0)
    if np.any(known & ~notes["is_grace"]):
        known &= ~notes["is_grace"]
    known &= stops.is_heard[np.maximum(on_course.stop_of_note, 0)]
    if not known.any():  # only onsets that share a stop with others
        known = stops.is_heard[np.maximum(on_course.stop_of_note, 0)] & (on_course.stop_of_note >= 0)
    beats, first = np.unique(notes["onset_beat"][known].round(6), return_index=True)
    seconds = stops.onset_sec[on_course.stop_of_note[known][first]]
    last = int(np.flatnonzero(stops.is_heard)[-1])
    end_beat = float(on_course.course.start[last + 1])
    if end_beat > beats[-1]:
        beats, seconds = np.append(beats, end_beat), np.append(seconds, stops.end_sec)
    return TempoMap(beats, np.maximum.accumulate(seconds))


def _is_heard(played: PlayedScore, on_course: PlayingCourse, stops: StopTimes) -> Bool:
    """Return which notes lie within what was heard; for those without a place on the pages, the beat decides."""
    placed = on_course.stop_of_note >= 0
    heard: Bool = placed & stops.is_heard[np.maximum(on_course.stop_of_note, 0)]
    if heard.any():
        onset = played.notes["onset_beat"]
        heard |= ~placed & (onset >= onset[heard].min()) & (onset <= onset[heard].max())
    return heard
