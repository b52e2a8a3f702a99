"""From the times of stops to the onsets and offsets of notes.

Notes of a chord begin with the onsets of their own pitches; notes that share a stop with earlier ones are placed
by the tempo. Notes before the first or after the last stop that was heard have no time.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fusili_mir.alignment.played import PlayedScore
from fusili_mir.alignment.playing_course import PlayingCourse
from fusili_mir.alignment.tempo_map import TempoMap
from fusili_mir.arrays import Bool, Float64, Int32, Int64
from fusili_mir.audio.onset_map import OnsetMap, pitch_index
from fusili_mir.decoding.certainty import Certainty
from fusili_mir.decoding.stop_times import StopTimes
from fusili_mir.decoding.timing_law import TimingLaw
from fusili_mir.geometry import FrameGrid
from fusili_mir.short_repr import short_repr

__all__ = ["NoteTimes", "note_times"]

_MIN_DURATION_SEC = 0.02  # a cell of the grid on which stops are timed
_LEAST_CHORD_SEC = (
    0.02  # how far notes of a chord may be from their stop, however near other stops are: a cell
)
_USUAL_ASYNCHRONY_SEC = 0.02  # set by hand: over which an onset counts less by a factor of e


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
    margin_sec : np.ndarray [shape=(n_notes,)]
        By how much each may begin earlier or later; see `StopTimes`.
    tempo : TempoMap
        Map between beats and seconds of the whole performance.
    """

    onset_sec: Float64
    offset_sec: Float64
    confidence: Float64
    margin_sec: Float64
    tempo: TempoMap

    def with_onset(self, note: int, second: float) -> NoteTimes:
        """Return the times with that of a note which is known."""
        onset_sec, offset_sec, confidence, margin_sec = (
            values.copy() for values in (self.onset_sec, self.offset_sec, self.confidence, self.margin_sec)
        )
        onset_sec[note], confidence[note], margin_sec[note] = second, 1.0, 0.0
        offset_sec[note] = np.fmax(offset_sec[note], second + _MIN_DURATION_SEC)
        return NoteTimes(onset_sec, offset_sec, confidence, margin_sec, self.tempo)


def note_times(
    played: PlayedScore,
    on_course: PlayingCourse,
    stops: StopTimes,
    grid: FrameGrid,
    onsets: OnsetMap,
    law: TimingLaw,
    certainty: Certainty | None,
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
    onsets : OnsetMap
        Onset activations of the recording: each note of a chord begins with its own pitch.
    law : TimingLaw
        How late onsets are heard, and how far the notes of a chord may be from each other.
    certainty : Certainty or None
        How sure notes are whose pitches are heard more or less clearly than the others of their stop.
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
    if law.chord_sec:
        onset_sec = _own_onsets(onset_sec, notes["pitch"], stops, stop, onsets, law)
    offset_sec = tempo.to_seconds(notes["onset_beat"] + notes["duration_beat"])
    first_sec = grid.audio_start_sec
    onset_sec = np.clip(onset_sec, first_sec, max(grid.end_sec - _MIN_DURATION_SEC, first_sec))
    offset_sec = grid.within(np.maximum(offset_sec, onset_sec + _MIN_DURATION_SEC))
    heard = _is_heard(played, on_course, stops)
    placed = on_course.stop_of_note >= 0
    confidence = np.where(placed, stops.confidence[stop], 0.0)
    margin_sec = np.where(placed, stops.margin_sec[stop], np.nanmax(stops.margin_sec))
    if certainty is not None:
        heard_so = _activation(onsets, onset_sec + law.bias_sec, notes["pitch"])
        confidence, margin_sec = certainty.of_notes(confidence, margin_sec, heard_so - stops.activation[stop])
    return NoteTimes(
        onset_sec=np.where(heard, onset_sec, np.nan),
        offset_sec=np.where(heard, offset_sec, np.nan),
        confidence=np.where(heard, confidence, 0.0),
        margin_sec=np.where(heard, margin_sec, np.nan),
        tempo=tempo,
    )


def _own_onsets(
    onset_sec: Float64, pitch: Int32, stops: StopTimes, stop: Int64, onsets: OnsetMap, law: TimingLaw
) -> Float64:
    """Move each note to the onset of its own pitch, no further than half-way to the stops around its own."""
    heard = np.flatnonzero(stops.is_heard)
    times = stops.onset_sec[heard]
    gap_sec = np.diff(times, prepend=times[0] - 2 * law.chord_sec, append=times[-1] + 2 * law.chord_sec)
    nearest_sec = np.full(len(stops.onset_sec), law.chord_sec)
    nearest_sec[heard] = np.minimum(gap_sec[:-1], gap_sec[1:])
    reach_sec = np.clip(nearest_sec[stop] / 2, _LEAST_CHORD_SEC, law.chord_sec)
    known = np.isfinite(onset_sec)
    moved = onset_sec.copy()
    moved[known] = onsets.nearest(
        onset_sec[known] + law.bias_sec, pitch_index(pitch[known]), reach_sec[known], _USUAL_ASYNCHRONY_SEC
    )
    moved[known] -= law.bias_sec
    return moved


def _activation(onsets: OnsetMap, seconds: Float64, pitch: Int32) -> Float64:
    """Return how likely each note begins at its second, in nats [shape=(n_notes,)]; 0 without a time."""
    known = np.isfinite(seconds)
    activation = np.zeros(len(seconds))
    rows = onsets.at(seconds[known])
    activation[known] = rows[np.arange(len(rows)), pitch_index(pitch[known])]
    return activation


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
