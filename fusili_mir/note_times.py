"""From a warping path to the onsets and offsets of notes, finer than frames.

The path is in one frame at one stop and in the next at another: the onset lies nearby, where the new one gains
most over the old one, on a line from one frame's middle to the other's. Notes of a chord share an onset. Stops
that the path passed by are placed between their neighbours as the score has them. What lies before the first
stop or after the last one that was heard has no time.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fusili_mir.course import PlayingCourse
from fusili_mir.decoding import WarpingPath
from fusili_mir.errors import InputError
from fusili_mir.geometry import Float64, FrameGrid, Int64
from fusili_mir.played import PlayedScore
from fusili_mir.similarity import CourseSimilarity
from fusili_mir.sound_envelope import SoundEnvelope
from fusili_mir.tempo_map import TempoMap

__all__ = ["NoteTimes", "StopTimes", "note_times", "stop_times"]

_MIN_DURATION_SEC = 0.02
_NEAR_FRAMES = 6  # to either side of the path's change of stops, where the onset is looked for
_ONSET_REACH_SEC = 0.07
_LEVEL_FRAMES = 2  # to either side of the steepest rise, between whose levels the onset lies


@dataclass(frozen=True)
class StopTimes:
    """When the stops of a course are played.

    Attributes
    ----------
    onset_sec : np.ndarray [shape=(P,)]
        Within the recording; NaN for stops before the first or after the last one that was heard.
    end_sec : float
        When the last one that was heard ends.
    confidence : np.ndarray [shape=(P,)]
        Mean over its frames; 0 for stops without any.
    """

    onset_sec: Float64
    end_sec: float
    confidence: Float64

    @property
    def is_heard(self) -> npt.NDArray[np.bool_]:
        """Whether stops lie within what was heard [shape=(P,)]."""
        return np.isfinite(self.onset_sec)


@dataclass(frozen=True)
class NoteTimes:
    """When the notes of a score are played.

    Attributes
    ----------
    onset_sec, offset_sec : np.ndarray [shape=(n_notes,)]
        Within the recording; NaN for notes that were not heard.
    confidence : np.ndarray [shape=(n_notes,)]
        Within [0, 1]; 0 for notes that were not heard.
    tempo : TempoMap
        Beats <-> seconds of the whole performance.
    """

    onset_sec: Float64
    offset_sec: Float64
    confidence: Float64
    tempo: TempoMap


def stop_times(
    path: WarpingPath,
    similarity: CourseSimilarity,
    grid: FrameGrid,
    envelope: SoundEnvelope | None = None,
) -> StopTimes:
    """Find when each stop begins.

    Parameters
    ----------
    path : WarpingPath
    similarity : CourseSimilarity
        That the path was found with.
    grid : FrameGrid
        Of the recording.
    envelope : SoundEnvelope, optional
        Of the recording, which the path was found with: a stop begins with the onset next to it.

    Returns
    -------
    StopTimes
    """
    music = np.flatnonzero(~path.is_filler)
    n_stops = len(similarity.course)
    if not len(music):
        raise InputError("nothing in the recording sounds like the score; is it a recording of this piece?")
    visited, first = np.unique(path.stop[music], return_index=True)
    frame = music[first]
    onset_sec = np.full(n_stops, np.nan)
    if envelope is None:
        onset_sec[visited] = grid.start_sec + _crossing(path, similarity, visited, frame) * grid.frame_sec
    else:  # the onset lies between the middle of the frame before and that of the first one
        onset_sec[visited] = envelope.nearest_onset(grid.start_sec + frame * grid.frame_sec, _ONSET_REACH_SEC)
    heard = np.arange(visited[0], visited[-1] + 1)
    passed = heard[np.isnan(onset_sec[heard])]
    onset_sec[passed] = np.interp(
        similarity.course.start[passed], similarity.course.start[visited], onset_sec[visited]
    )
    onset_sec[heard] = np.maximum.accumulate(grid.within(onset_sec[heard]))
    counts = np.bincount(path.stop[music], minlength=n_stops)
    sums = np.bincount(path.stop[music], weights=path.confidence[music], minlength=n_stops)
    return StopTimes(
        onset_sec=onset_sec,
        end_sec=float(grid.within(grid.start_sec + (music[-1] + 1) * grid.frame_sec)),
        confidence=sums / np.maximum(counts, 1),
    )


def _crossing(path: WarpingPath, similarity: CourseSimilarity, stops: Int64, frames: Int64) -> Float64:
    """Return where stops begin that are first heard in some frames, in frames from the start.

    What a stop leads over the one before rises steeply when it begins; before that it creeps up while the old
    sound fades. The onset is half-way up the steep part.
    """
    before = np.maximum(frames - 1, 0)
    follows = (frames > 0) & ~path.is_filler[before] & (path.stop[before] != stops)
    old = np.where(follows, path.stop[before], stops)
    # One row a stop: frames around the first one it is heard in, as far as it and the stop before reach.
    near = frames[:, None] + np.arange(-_NEAR_FRAMES, _NEAR_FRAMES)
    from_frame = np.append(0, frames[:-1])
    to_frame = np.append(frames[1:], len(path.stop))
    inside = (near >= from_frame[:, None]) & (near < to_frame[:, None])
    heard = np.clip(near, from_frame[:, None], to_frame[:, None] - 1)
    shape = heard.shape
    lead = similarity.pairs(heard.ravel(), np.repeat(stops, shape[1])).reshape(shape)
    lead -= similarity.pairs(heard.ravel(), np.repeat(old, shape[1])).reshape(shape)
    rise = np.where(inside[:, 1:] & inside[:, :-1], np.diff(lead, axis=1), -np.inf)
    steepest = rise.argmax(axis=1)  # from this frame of the row to the next one
    row = np.arange(len(stops))
    around = steepest[:, None] + np.arange(-_LEVEL_FRAMES, _LEVEL_FRAMES + 2)
    levels = lead[row[:, None], np.clip(around, 0, shape[1] - 1)]
    low, high = levels[:, :_LEVEL_FRAMES].mean(axis=1), levels[:, _LEVEL_FRAMES + 2 :].mean(axis=1)
    here, there = lead[row, steepest], lead[row, steepest + 1]
    rises = follows & (there > here) & (high > low)
    share = np.where(rises, ((low + high) / 2 - here) / np.where(rises, there - here, 1), 0.5)
    onset = near[row, steepest] + 0.5 + np.clip(share, 0.0, 1.0)
    return np.asarray(np.where(rises, onset, frames), dtype=np.float64)


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
        Of the path; confidences are lowered by it.
    grid : FrameGrid
        Of the recording.

    Returns
    -------
    NoteTimes
        A note ends where the score says; a grace note where the note begins that it leads to.
    """
    notes = played.notes
    tempo = _tempo_map(played, on_course, stops)
    stop = np.maximum(on_course.stop_of_note, 0)
    own_stop = (on_course.stop_of_note >= 0) & on_course.begins_stop
    onset_sec = np.where(own_stop, stops.onset_sec[stop], tempo.to_seconds(notes["onset_beat"]))
    offset_sec = tempo.to_seconds(notes["onset_beat"] + notes["duration_beat"])
    onset_sec = np.clip(onset_sec, 0.0, max(grid.end_sec - _MIN_DURATION_SEC, 0.0))
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
    """Pair the beats of onsets, grace notes left out, with their seconds; and the end, too."""
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


def _is_heard(played: PlayedScore, on_course: PlayingCourse, stops: StopTimes) -> npt.NDArray[np.bool_]:
    """Say which notes lie within what was heard; those without a place on the pages, by their beat."""
    placed = on_course.stop_of_note >= 0
    heard: npt.NDArray[np.bool_] = placed & stops.is_heard[np.maximum(on_course.stop_of_note, 0)]
    if heard.any():
        onset = played.notes["onset_beat"]
        heard |= ~placed & (onset >= onset[heard].min()) & (onset <= onset[heard].max())
    return heard
