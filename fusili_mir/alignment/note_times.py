"""From the times of stops to the onsets and offsets of notes.

Notes of a chord begin with the attacks of their own pitches; notes that share a stop with earlier ones are placed
by the tempo. Notes before the first or after the last stop that was heard have no time.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fusili_mir.alignment.played import PlayedScore
from fusili_mir.alignment.playing_course import PlayingCourse
from fusili_mir.alignment.tempo_map import TempoMap
from fusili_mir.arrays import Bool, Float64, Int32, Int64
from fusili_mir.audio.attack_map import AttackMap, pitch_index
from fusili_mir.decoding.stop_times import StopTimes
from fusili_mir.geometry import FrameGrid
from fusili_mir.short_repr import short_repr

__all__ = ["NoteTimes", "note_times"]

_MIN_DURATION_SEC = 0.02
_REACH_SEC, _LEAST_REACH_SEC = 0.08, 0.02  # how far notes of a chord may be from each other
_USUAL_ASYNCHRONY_SEC = 0.02


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

    def with_onset(self, note: int, second: float) -> NoteTimes:
        """Return the times with that of a note which is known."""
        onset_sec, offset_sec, confidence = (
            values.copy() for values in (self.onset_sec, self.offset_sec, self.confidence)
        )
        onset_sec[note], confidence[note] = second, 1.0
        offset_sec[note] = np.fmax(offset_sec[note], second + _MIN_DURATION_SEC)
        return NoteTimes(onset_sec, offset_sec, confidence, self.tempo)


def note_times(
    played: PlayedScore,
    on_course: PlayingCourse,
    stops: StopTimes,
    grid: FrameGrid,
    attacks: AttackMap | None = None,
    bias_sec: float = 0.0,
    known: tuple[Float64, Float64] | None = None,
) -> NoteTimes:
    """Find when each note begins and ends.

    Parameters
    ----------
    played : PlayedScore
    on_course : PlayingCourse
        The same notes on the course.
    stops : StopTimes
    grid : FrameGrid
        Frames of the recording.
    attacks : AttackMap, optional
        Attacks in the recording: each note of a chord begins with that of its own pitch.
    bias_sec : float
        How late attacks are seen.
    known : (beats, seconds), optional
        Beats whose seconds are known, although nothing may begin there.

    Returns
    -------
    NoteTimes
        A note ends where the score says, a grace note where the note that it leads to begins.
    """
    notes = played.notes
    tempo = _tempo_map(played, on_course, stops)
    if known is not None:
        tempo = tempo.through(*known)
    stop = np.maximum(on_course.stop_of_note, 0)
    own_stop = (on_course.stop_of_note >= 0) & on_course.begins_stop
    onset_sec = np.where(own_stop, stops.onset_sec[stop], tempo.to_seconds(notes["onset_beat"]))
    if attacks is not None:
        onset_sec = _own_onsets(onset_sec, notes["pitch"], stops, stop, attacks, bias_sec)
    offset_sec = tempo.to_seconds(notes["onset_beat"] + notes["duration_beat"])
    first_sec = grid.audio_start_sec
    onset_sec = np.clip(onset_sec, first_sec, max(grid.end_sec - _MIN_DURATION_SEC, first_sec))
    offset_sec = grid.within(np.maximum(offset_sec, onset_sec + _MIN_DURATION_SEC))
    heard = _is_heard(played, on_course, stops)
    confidence = np.where(on_course.stop_of_note >= 0, stops.confidence[stop], 0.0)
    return NoteTimes(
        onset_sec=np.where(heard, onset_sec, np.nan),
        offset_sec=np.where(heard, offset_sec, np.nan),
        confidence=np.where(heard, confidence, 0.0),
        tempo=tempo,
    )


def _own_onsets(
    onset_sec: Float64, pitch: Int32, stops: StopTimes, stop: Int64, attacks: AttackMap, bias_sec: float
) -> Float64:
    """Move each note to the attack of its own pitch, no further than half-way to the stops around its own."""
    heard = np.flatnonzero(stops.is_heard)
    times = stops.onset_sec[heard]
    gap_sec = np.diff(times, prepend=times[0] - 2 * _REACH_SEC, append=times[-1] + 2 * _REACH_SEC)
    nearest_sec = np.full(len(stops.onset_sec), _REACH_SEC)
    nearest_sec[heard] = np.minimum(gap_sec[:-1], gap_sec[1:])
    reach_sec = np.clip(nearest_sec[stop] / 2, _LEAST_REACH_SEC, _REACH_SEC)
    known = np.isfinite(onset_sec)
    moved = onset_sec.copy()
    moved[known] = attacks.nearest(
        onset_sec[known] + bias_sec, pitch_index(pitch[known]), reach_sec[known], _USUAL_ASYNCHRONY_SEC
    )
    moved[known] -= bias_sec
    return moved


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
