"""The result of an alignment: notes, measures and frames with their seconds and places.

Places are in pixels of the user's own pages; see `fusili_mir.pages.original_pixels`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt
import partitura as pt

from fusili_mir.alignment.anchors import Anchor, AnchorsLike, as_anchors
from fusili_mir.alignment.intervals import INTERVAL_FIELDS, put_interval
from fusili_mir.alignment.note_times import NoteTimes
from fusili_mir.alignment.performance import NoteAlignment, note_alignment, performance_from_notes
from fusili_mir.alignment.played import PLAYED_MEASURE_DTYPE, PLAYED_NOTE_DTYPE, PlayedScore
from fusili_mir.alignment.position_maps import (
    PlaceCertainty,
    PlaceMoments,
    PositionMaps,
    are_played,
    get_certainty_map,
    get_position_maps,
)
from fusili_mir.alignment.provenance import Provenance
from fusili_mir.alignment.recording_pitch import RecordingPitch
from fusili_mir.arrays import Float64, Int64, Table
from fusili_mir.audio.audio_samples import Recording
from fusili_mir.decoding.similarity import CourseSimilarity
from fusili_mir.decoding.warping_path import WarpingPath
from fusili_mir.errors import InputError
from fusili_mir.geometry import FrameGrid
from fusili_mir.pages.original_pixels import boxes_to_original, places_to_original
from fusili_mir.pages.pages import Pages
from fusili_mir.pages.score_axis import ScoreAxis
from fusili_mir.scores.playing_order import write_playing_order
from fusili_mir.scores.unfolding import Stretches

__all__ = [
    "ALIGNED_MEASURE_DTYPE",
    "ALIGNED_NOTE_DTYPE",
    "RELIABLE",
    "Alignment",
    "aligned_measures",
    "aligned_notes",
    "on_original_pages",
]

_TIMES: list[tuple[str, Any]] = [("onset_sec", "f8"), ("offset_sec", "f8"), ("confidence", "f4")]
ALIGNED_NOTE_DTYPE = np.dtype([*PLAYED_NOTE_DTYPE.descr, *_TIMES, *INTERVAL_FIELDS])
"""One note as it sounds. Times are NaN and confidence is 0 for notes that were not heard: those before the
start and after the end of the recording. The onset lies between `earliest_sec` and `latest_sec`, with a
probability of `INTERVAL_PROBABILITY`."""

_SPAN: list[tuple[str, Any]] = [("start_sec", "f8"), ("end_sec", "f8"), ("confidence", "f4")]
ALIGNED_MEASURE_DTYPE = np.dtype([*PLAYED_MEASURE_DTYPE.descr, *_SPAN, *INTERVAL_FIELDS])
"""One measure, each time it is played; times are NaN for measures that were not heard. Where only images are
known, beats are NaN. The notes that begin it lie between `earliest_sec` and `latest_sec`."""

_SAME_BEAT = 1e-6

RELIABLE = 0.5
"""Smallest `Alignment.reliability` at which the recording is taken to be of the score."""


@dataclass(frozen=True, repr=False)
class Alignment:
    """A score and a recording, aligned.

    Attributes
    ----------
    pages : Pages
    grid : FrameGrid
        Frames of the recording.
    frames : np.ndarray of `FRAME_DTYPE` [shape=(M,)]
        The place in each audio frame, in pixels of the original pages.
    notes, measures : np.ndarray of `ALIGNED_NOTE_DTYPE`, `ALIGNED_MEASURE_DTYPE`
        Notes and measures in playing order, with boxes in pixels of the original pages. If only images are
        known, there are no notes, and measures only if `Pages.measures` has some.
    played : PlayedScore, optional
        The symbolic score as it was played.
    axis : ScoreAxis
        The columns of the deskewed pages.
    path : WarpingPath
        Path from frame to stop of the course.
    similarity : CourseSimilarity
        Similarity of the course and the recording.
    moments : PlaceMoments, optional
        If only images are known: the places where something begins to sound, and when.
    made_with : Provenance, optional
        Files, model and options that it was made with; known to `align_recording`.
    pitch : RecordingPitch, optional
        At which pitch the recording sounds, compared with the score; known to `align_recording`.
    recording : Recording, optional
        The recording itself, to listen to; known to `align_recording`.
    anchors : tuple of Anchor
        Seconds that were given beforehand.
    stretches : tuple of (int, int), optional
        If only images are known: the measures as they are played, the first of each stretch, counted from 0, and
        the one after its last.
    unfold_probability : float
        Probability of this way of playing the repeats among all ways, if it was chosen; otherwise 1.
    align : callable, optional
        Decodes it with other anchors; see `again`.
    """

    pages: Pages
    grid: FrameGrid
    frames: Table
    notes: Table
    measures: Table
    played: PlayedScore | None
    axis: ScoreAxis
    path: WarpingPath
    similarity: CourseSimilarity
    moments: PlaceMoments | None = None
    made_with: Provenance | None = None
    pitch: RecordingPitch | None = None
    recording: Recording | None = None
    anchors: tuple[Anchor, ...] = ()
    stretches: Stretches | None = None
    unfold_probability: float = 1.0
    align: Callable[[Sequence[Anchor]], Alignment] | None = None

    def again(self, anchors: AnchorsLike) -> Alignment:
        """Decode it again with these anchors, and no others; nothing is read or encoded anew.

        Parameters
        ----------
        anchors : file, mapping or sequence
            See `AlignOptions`.
        """
        if self.align is None:
            raise InputError("this result was made from embeddings; expected one of Aligner.align")
        return self.align(as_anchors(anchors))

    def __repr__(self) -> str:
        pages, grid = self.pages, self.grid
        made_with = "" if self.made_with is None else f" with {self.made_with.recording.name}"
        counts = [(len(pages.images), "page"), (len(pages.systems), "system")]
        counts += [(len(table), noun) for table, noun in ((self.measures, "measure"),) if len(table)]
        score = ", ".join(f"{number} {noun}{'' if number == 1 else 's'}" for number, noun in counts)
        lines = [
            f"Alignment of {pages.filename}{made_with}",
            f"  score: {score}",
            f"  recording: {grid.audio_start_sec:.2f} to {grid.end_sec:.2f} s, {len(grid)} frames",
        ]
        if self.played is not None:
            n_heard = int(np.isfinite(self.notes["onset_sec"]).sum())
            lines.append(f"  heard: {n_heard} of {len(self.notes)} notes; repeats: {self.repeats}")
        elif self.repeats is not None:
            lines.append(f"  repeats: {self.repeats}")
        doubt = "" if self.is_reliable else ", LOW: is it a recording of this score?"
        if self.made_with is not None and not self.made_with.model.is_calibrated:
            doubt += ", not calibrated for this model"
        return "\n".join([*lines, f"  reliability: {self.reliability:.2f}{doubt}"])

    def _repr_html_(self) -> str:
        """Return what notebooks show: the viewer, or a page with its seconds."""
        # Pictures belong to a later room, which this one may not import.
        shown: str = import_module("fusili_mir.output.alignment_html").alignment_html(self)
        return shown

    @property
    def repeats(self) -> str | None:
        """How repeats are played: "none", "maximal", "minimal", or the measures as played; None if unknown."""
        if self.played is not None:
            return self.played.repeats
        if self.stretches is None or self.pages.repeats is None:
            return None
        if self.stretches == ((0, len(self.pages.measures)),):
            return "none"
        return write_playing_order(self.stretches, self.pages.measures["number"].tolist())

    @cached_property
    def position_maps(self) -> PositionMaps:
        """Maps between seconds and places on the original pages."""
        return get_position_maps(self.frames, self.moments, self.pages.skews)

    def certainty_at(self, page: npt.ArrayLike, x: npt.ArrayLike, y: npt.ArrayLike) -> PlaceCertainty:
        """Say how sure the seconds of places are, which `position_maps` finds.

        Parameters
        ----------
        page, x, y : array_like [shape=(...)]
            Places on the original pages, such as note heads on images.

        Returns
        -------
        PlaceCertainty
            The probability that each begins to sound within 0.1 s of its second, and an interval. Places off the
            systems that are played have the probability 0 and the whole recording as their interval. A measure
            that is left out between others of its system is as sure as these.
        """
        found = get_certainty_map(self.frames, self.moments, self.pages.skews)(page, x, y)
        off = ~are_played(self.pages.systems, self.frames, self.pages.skews, page, x, y)
        off &= np.isfinite(found.confidence)
        return PlaceCertainty(
            np.where(off, 0.0, found.confidence),
            np.where(off, self.grid.audio_start_sec, self.grid.within(found.earliest_sec)),
            np.where(off, self.grid.end_sec, self.grid.within(found.latest_sec)),
        )

    @property
    def reliability(self) -> float:
        """Probability that the recording is of this score, if it is as likely as not beforehand."""
        return self.path.reliability

    @property
    def is_reliable(self) -> bool:
        """Whether the recording is taken to be of this score."""
        return self.reliability >= RELIABLE

    @property
    def note_alignment(self) -> NoteAlignment:
        """The alignment as partitura's list of dicts."""
        return note_alignment(self.notes)

    @property
    def performance(self) -> pt.performance.Performance:
        """The performance of the notes that were heard."""
        return performance_from_notes(self.notes)


def on_original_pages(alignment: Alignment) -> Alignment:
    """Move the places of a result that was found on deskewed pages to the original pages."""
    skews = alignment.pages.skews
    frames = alignment.frames.copy()
    frames["x"], frames["y"] = places_to_original(skews, frames["page"], frames["x"], frames["y"])
    return replace(
        alignment,
        frames=frames,
        notes=boxes_to_original(skews, alignment.notes),
        measures=boxes_to_original(skews, alignment.measures),
    )


def aligned_notes(played: PlayedScore, times: NoteTimes, grid: FrameGrid) -> Table:
    """Combine the notes of a score with their times."""
    notes = np.empty(len(played.notes), ALIGNED_NOTE_DTYPE)
    for name in PLAYED_NOTE_DTYPE.names or ():
        notes[name] = played.notes[name]
    notes["onset_sec"], notes["offset_sec"] = times.onset_sec, times.offset_sec
    notes["confidence"] = times.confidence
    put_interval(notes, times.onset_sec, times.margin_sec, grid)
    return notes


def aligned_measures(played: PlayedScore, notes: Table, times: NoteTimes, grid: FrameGrid) -> Table:
    """Time the measures that were heard at least in part; their confidence is the mean of their notes."""
    measures = np.empty(len(played.measures), ALIGNED_MEASURE_DTYPE)
    for name in PLAYED_MEASURE_DTYPE.names or ():
        measures[name] = played.measures[name]
    heard = np.isfinite(notes["onset_sec"])
    begin = notes["onset_beat"][heard].min(initial=np.inf)
    end = (notes["onset_beat"] + notes["duration_beat"])[heard].max(initial=-np.inf)
    inside = (measures["end_beat"] > begin) & (measures["start_beat"] < end)
    for name, beat in (("start_sec", "start_beat"), ("end_sec", "end_beat")):
        measures[name] = np.where(inside, grid.within(times.tempo.to_seconds(measures[beat])), np.nan)
    measures["confidence"] = np.where(inside, _measure_confidence(measures, notes), 0.0)
    _put_measure_intervals(measures, notes, np.flatnonzero(heard), times.margin_sec, grid)
    return measures


def _put_measure_intervals(
    measures: Table, notes: Table, heard: Int64, margin_sec: Float64, grid: FrameGrid
) -> None:
    """Let the interval of a measure hold those of all notes that begin it, or be as wide as those around it."""
    if not len(heard):
        return
    order = heard[np.argsort(notes["onset_beat"][heard], kind="stable")]
    # Column by column: rows with ids of 256 letters are large.
    note_beat, earliest_sec, latest_sec = (
        notes[name][order] for name in ("onset_beat", "earliest_sec", "latest_sec")
    )
    usual_sec = np.interp(measures["start_beat"], note_beat, margin_sec[order])
    put_interval(measures, measures["start_sec"], usual_sec, grid)
    beat = measures["start_beat"]
    first = np.searchsorted(note_beat, beat - _SAME_BEAT)
    end = np.searchsorted(note_beat, beat + _SAME_BEAT)
    for row in np.flatnonzero((end > first) & np.isfinite(measures["start_sec"])):
        begins, start_sec = slice(first[row], end[row]), measures["start_sec"][row]
        measures["earliest_sec"][row] = min(start_sec, earliest_sec[begins].min())
        measures["latest_sec"][row] = max(start_sec, latest_sec[begins].max())


def _measure_confidence(measures: Table, notes: Table) -> Float64:
    """Average the confidence of the notes of each measure; measures without notes are interpolated."""
    measure = np.searchsorted(measures["start_beat"].round(6), notes["onset_beat"].round(6), side="right") - 1
    measure = np.maximum(measure, 0)
    counts = np.bincount(measure, minlength=len(measures))
    sums = np.bincount(measure, weights=notes["confidence"], minlength=len(measures))
    known = np.flatnonzero(counts)
    return np.interp(np.arange(len(measures)), known, sums[known] / counts[known])
