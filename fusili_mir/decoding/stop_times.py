"""From a warping path to the times at which stops begin, finer than frames.

Where the path moves from one stop to another between two frames, the new stop begins with the onset nearest to
that change. Stops that the path skipped are interpolated between their neighbours in score time. Stops before the
first or after the last one that was heard have no time.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fusili_mir.arrays import Bool, Float64
from fusili_mir.audio.sound_envelope import SoundEnvelope
from fusili_mir.decoding.similarity import CourseSimilarity
from fusili_mir.decoding.warping_path import WarpingPath
from fusili_mir.errors import InputError
from fusili_mir.geometry import FrameGrid

__all__ = ["StopTimes", "stop_times"]

_ONSET_REACH_SEC = 0.07


@dataclass(frozen=True)
class StopTimes:
    """When the stops of a course are played.

    Attributes
    ----------
    onset_sec : np.ndarray [shape=(P,)]
        Onsets within the recording; NaN for stops before the first or after the last one that was heard.
    end_sec : float
        End of the last stop that was heard.
    confidence : np.ndarray [shape=(P,)]
        Mean confidence over the frames of each stop; 0 for stops without frames.
    """

    onset_sec: Float64
    end_sec: float
    confidence: Float64

    @property
    def is_heard(self) -> Bool:
        """Whether each stop lies within what was heard [shape=(P,)]."""
        return np.isfinite(self.onset_sec)


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
        Similarity that the path was found with.
    grid : FrameGrid
        Frames of the recording.
    envelope : SoundEnvelope, optional
        Envelope of the recording: a stop begins with the onset nearest to its first frame. Without an envelope,
        or without an onset nearby, it begins with that frame.

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
    begin_sec = grid.start_sec + frame * grid.frame_sec  # half-way between the middles of two frames
    onset_sec = np.full(n_stops, np.nan)
    onset_sec[visited] = (
        begin_sec if envelope is None else envelope.nearest_onset(begin_sec, _ONSET_REACH_SEC)
    )
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
