"""The sound of a segment: a clip of the performance of the whole piece.

A clip lasts from the first onset of the segment to the end of its last measure, with a lead before and after. It
contains the notes of the segment and, unless it is played alone, earlier notes that still sound, but no later
notes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fusili_mir.arrays import Bool, Float32, Float64
from fusili_training.rendering.segment_spans import Span
from fusili_training.sound.notes import PerformedArray
from fusili_training.sound.score_clock import ScoreClock
from fusili_training.sound.sounding_score import SoundingScore
from fusili_training.sound.synthesis import Instrument, synthesise

__all__ = ["ClipTimes", "HeadTimes", "Rendition"]


_LONGEST_RING_SEC = 3.0  # longest time for which a note is heard after its release


@dataclass(frozen=True)
class ClipTimes:
    """The place of a clip, in seconds of the performance."""

    start_sec: float
    duration_sec: float


@dataclass(frozen=True, eq=False)
class HeadTimes:
    """When heads sound, in seconds of the performance, (n,) each; `struck` is true where a note begins."""

    onset_sec: Float64
    offset_sec: Float64
    struck: Bool


@dataclass(frozen=True, eq=False)
class Rendition:
    """A score with one performance of it.

    Attributes
    ----------
    score : SoundingScore
    performed : np.ndarray [shape=(n,), dtype=PERFORMED_DTYPE]
        The notes of the score as played.
    clock : ScoreClock
    banks : mapping from part to SoundBank or Singer
        Instruments of the parts that are heard; the other parts are silent.
    """

    score: SoundingScore
    performed: PerformedArray
    clock: ScoreClock
    banks: Mapping[int, Instrument]

    def clip_times(self, span: Span, lead_in_sec: float, lead_out_sec: float) -> ClipTimes:
        """Return the place of the clip in which a span of measures is played."""
        own = self._onsets_within(span)
        borders_sec = self.clock.seconds(self._borders(span))
        start_sec = min([float(borders_sec[0]), *self.performed["onset_sec"][own].tolist()])
        end_sec = max([float(borders_sec[1]), *self.performed["onset_sec"][own].tolist()])
        return ClipTimes(start_sec - lead_in_sec, end_sec - start_sec + lead_in_sec + lead_out_sec)

    def sound_of(self, span: Span, clip: ClipTimes, alone: bool = False) -> Float32:
        """Return the samples of a clip, (samples,); `alone` without the notes of earlier measures."""
        notes = self.notes_of(span, clip, alone)
        return synthesise(notes, self.banks, clip.duration_sec, clip.start_sec)

    def notes_of(self, span: Span, clip: ClipTimes, alone: bool = False) -> PerformedArray:
        """Return the notes that are heard in a clip; `alone` without those of earlier measures."""
        begin, end = self._borders(span)
        onset = self.score.notes["onset_quarter"]
        before = (onset < end) & ((onset >= begin) | (not alone))
        lasting = np.maximum(self.performed["duration_sec"], self.performed["sounding_sec"])
        heard_until = self.performed["onset_sec"] + lasting + _LONGEST_RING_SEC
        heard = before & self._audible() & (heard_until > clip.start_sec)
        return np.asarray(self.performed[heard])

    def times_of(self, heads: npt.NDArray[np.void]) -> HeadTimes:
        """Return when heads (rows of `SoundingScore.heads`) sound; tied heads share the time of their note."""
        played = self.performed[heads["note"]]
        dies_away = np.array([not self.banks[int(part)].sustained for part in played["part"]], dtype=bool)
        ends_sec = played["onset_sec"] + np.where(dies_away, played["sounding_sec"], played["duration_sec"])
        onset_sec = np.where(heads["first"], played["onset_sec"], self.clock.seconds(heads["onset_quarter"]))
        offset_sec = np.where(heads["last"], ends_sec, self.clock.seconds(heads["end_quarter"]))
        return HeadTimes(onset_sec, np.maximum(offset_sec, onset_sec), heads["first"])

    def is_heard(self, heads: npt.NDArray[np.void]) -> Bool:
        """Return which heads belong to a part that is heard."""
        return np.asarray(self._audible()[heads["note"]])

    def _audible(self) -> Bool:
        return np.isin(self.score.notes["part"], list(self.banks))

    def _borders(self, span: Span) -> Float64:
        return self.score.measure_quarters[[span.first, span.last + 1]]

    def _onsets_within(self, span: Span) -> Bool:
        begin, end = self._borders(span)
        onset = self.score.notes["onset_quarter"]
        return np.asarray((onset >= begin) & (onset < end) & self._audible())
