"""Alignment: which note, and which spot on which page, sounds at which second.

Three layers, each usable alone:

    alignment = align_encoded(pages, score, audio, scale)      # from embeddings
    alignment = align_recording(pages, recording)              # from pages and audio
    performance, alignment, score = align_score("piece.musicxml", "recording.wav")   # from files
    frames = align_pages(load_pages("scan.pdf"), "recording.wav")
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import partitura as pt

from fusili_mir.boxes import BoxArray
from fusili_mir.bundle import Bundle, default_bundle, load_bundle
from fusili_mir.course import Course, reading_course
from fusili_mir.decoding import DecodingOptions, RoughSearch, WarpingPath, decode_path, played_columns
from fusili_mir.embedding_cache import encode_pages_cached
from fusili_mir.encoded import EncodedAudio, EncodedScore
from fusili_mir.encoder import Encoder
from fusili_mir.engraving import EngravingOptions
from fusili_mir.errors import InputError
from fusili_mir.frame_places import FRAME_DTYPE, frames_of_columns, frames_of_notes
from fusili_mir.geometry import Float64, FrameGrid
from fusili_mir.note_times import NoteTimes, note_times, stop_times
from fusili_mir.pages import Pages, load_pages, render_pages
from fusili_mir.performance import NoteAlignment, note_alignment, performance_from_notes
from fusili_mir.played import PLAYED_MEASURE_DTYPE, PLAYED_NOTE_DTYPE, PlayedScore
from fusili_mir.recording import Recording
from fusili_mir.score_axis import ScoreAxis
from fusili_mir.similarity import CourseSimilarity
from fusili_mir.unfolding_choice import choose_unfolding

__all__ = [
    "ALIGNED_MEASURE_DTYPE",
    "ALIGNED_NOTE_DTYPE",
    "FRAME_DTYPE",
    "Alignment",
    "AlignmentWarning",
    "align_encoded",
    "align_pages",
    "align_recording",
    "align_score",
]

_TIMES: list[tuple[str, Any]] = [("onset_sec", "f8"), ("offset_sec", "f8"), ("confidence", "f4")]
ALIGNED_NOTE_DTYPE = np.dtype([*PLAYED_NOTE_DTYPE.descr, *_TIMES])
"""One note as it sounds. Times are NaN and confidence is 0 for notes that were not heard: those before the
start and after the end of the recording."""

_SPAN: list[tuple[str, Any]] = [("start_sec", "f8"), ("end_sec", "f8"), ("confidence", "f4")]
ALIGNED_MEASURE_DTYPE = np.dtype([*PLAYED_MEASURE_DTYPE.descr, *_SPAN])
"""One measure each time it is played; times are NaN for measures that were not heard."""

RELIABLE = 0.2
"""Least `Alignment.reliability` of a recording that is taken for one of the score."""


class AlignmentWarning(UserWarning):
    """A result that should not be trusted."""


@dataclass(frozen=True)
class Alignment:
    """A score and a recording, aligned.

    Attributes
    ----------
    pages : Pages
    grid : FrameGrid
        Of the recording.
    frames : np.ndarray of `FRAME_DTYPE` [shape=(M,)]
        The place on the pages in each audio frame.
    notes, measures : np.ndarray of `ALIGNED_NOTE_DTYPE`, `ALIGNED_MEASURE_DTYPE`
        In playing order; empty where only images are known.
    played : PlayedScore, optional
        The symbolic score as it was played.
    axis : ScoreAxis
        The columns of the pages.
    path : WarpingPath
        Frame -> stop of the course.
    similarity : CourseSimilarity
        Of the course and the recording.
    """

    pages: Pages
    grid: FrameGrid
    frames: BoxArray
    notes: BoxArray
    measures: BoxArray
    played: PlayedScore | None
    axis: ScoreAxis
    path: WarpingPath
    similarity: CourseSimilarity

    @property
    def reliability(self) -> float:
        """How far the score explains the order of sounds in the recording, 0 to 1; see `WarpingPath`."""
        return self.path.reliability

    @property
    def is_reliable(self) -> bool:
        """Whether the recording is taken for one of this score."""
        return self.reliability >= RELIABLE

    @property
    def note_alignment(self) -> NoteAlignment:
        """The alignment list of partitura."""
        return note_alignment(self.notes)

    @property
    def performance(self) -> pt.performance.Performance:
        """The performance of the notes that were heard."""
        return performance_from_notes(self.notes)


def align_encoded(
    pages: Pages,
    score: EncodedScore,
    audio: EncodedAudio,
    scale: float,
    unfold: str = "auto",
    jumps: bool = False,
    options: DecodingOptions | None = None,
) -> Alignment:
    """Align embeddings.

    Parameters
    ----------
    pages : Pages
        Of `load_pages`, or of `render_pages` with ``unfold="none"``.
    score, audio : EncodedScore, EncodedAudio
        Both encoded with the same bundle.
    scale : float
        Of the bundle's cosines.
    unfold : "auto", "maximal", "minimal" or "none"
        How the repeats of a symbolic score are played; "auto" finds out.
    jumps : bool
        Whether the music may go on at another place, as in repeats; for images, whose signs are not read.
    options : DecodingOptions, optional

    Returns
    -------
    Alignment

    Warns
    -----
    AlignmentWarning
        If the recording does not seem to be one of this score.
    """
    if pages.score is not None and jumps:
        raise InputError("jumps are for page images; the repeats of a symbolic score come from unfold")
    options = options or DecodingOptions()
    if pages.score is not None:
        alignment = _align_notes(pages, score, audio, scale, unfold, options)
    elif unfold in ("auto", "none"):
        alignment = _align_columns(pages, score, audio, scale, jumps, options)
    else:
        raise InputError(
            f"{pages.filename}: repeat signs are not read from images, so unfold cannot be {unfold!r}; "
            "use jumps to let repeats be found by ear"
        )
    if not alignment.is_reliable:
        warnings.warn(
            f"the score hardly explains the recording (reliability {alignment.reliability:.2f}, expected at "
            f"least {RELIABLE:g}); is it a recording of {pages.filename}?",
            AlignmentWarning,
            stacklevel=2,
        )
    return alignment


def align_recording(
    pages: Pages,
    recording: str | Path | Recording,
    model: str | Path | Bundle | Encoder | None = None,
    unfold: str = "auto",
    jumps: bool = False,
    cache: str | Path | None = None,
    progress: bool = False,
) -> Alignment:
    """Align a recording with pages.

    Parameters
    ----------
    pages : Pages
        Of `load_pages`, or of `render_pages` with ``unfold="none"``.
    recording : str, Path or Recording
        An audio file, or `AudioSamples`.
    model : str, Path, Bundle or Encoder, optional
        By default the bundle that is installed with the package.
    unfold, jumps
        See `align_encoded`.
    cache : str or Path, optional
        A file that keeps the embeddings of the score for the next recording.
    progress : bool
        Whether to show bars on a terminal.

    Returns
    -------
    Alignment
    """
    encoder = as_encoder(model)
    if cache is None:
        score = encoder.encode_pages(pages, progress)
    else:
        score = encode_pages_cached(pages, encoder, cache, progress)
    audio = encoder.encode_recording(recording, progress)
    return align_encoded(pages, score, audio, encoder.bundle.manifest.scale, unfold, jumps)


def align_score(
    filename: str | Path,
    audio: str | Path | Recording,
    model: str | Path | Bundle | Encoder | None = None,
    unfold: str = "auto",
    engraving: EngravingOptions | None = None,
) -> tuple[pt.performance.Performance, NoteAlignment, pt.score.Score]:
    """Align a recording with a symbolic score, in partitura's terms.

    Parameters
    ----------
    filename : str or Path
        MusicXML, MXL or MEI.
    audio : str, Path or Recording
        An audio file, or `AudioSamples`.
    model : str, Path, Bundle or Encoder, optional
        By default the bundle that is installed with the package.
    unfold : "auto", "maximal", "minimal" or "none"
        How repeats are played; "auto" finds out.
    engraving : EngravingOptions, optional
        How the score is engraved for the model.

    Returns
    -------
    performance : partitura.performance.Performance
        The notes that were heard, at their seconds.
    alignment : list of dict
        `label`, `score_id`, `performance_id`, `performance_time` and `confidence`.
    score : partitura.score.Score
        Unfolded as it was played, of one part into which all parts are merged: the one form in which
        `partitura.save_match` and the time maps take it. Ids are those of the file, with ``-1``, ``-2``, ...
        for each time that a note is played, if the score has repeats.
    """
    alignment = align_recording(render_pages(filename, engraving), audio, model, unfold)
    assert alignment.played is not None  # noqa: S101
    return alignment.performance, alignment.note_alignment, alignment.played.score


def align_pages(
    pages: Pages | str | Path | Sequence[str | Path],
    audio: str | Path | Recording,
    model: str | Path | Bundle | Encoder | None = None,
    jumps: bool = False,
) -> BoxArray:
    """Align a recording with page images.

    Parameters
    ----------
    pages : Pages, or files
        Of `load_pages`, or what it takes.
    audio : str, Path or Recording
        An audio file, or `AudioSamples`.
    model : str, Path, Bundle or Encoder, optional
        By default the bundle that is installed with the package.
    jumps : bool
        Whether the music may go on at another place, as in repeats.

    Returns
    -------
    np.ndarray of `FRAME_DTYPE` [shape=(M,)]
        A row for each audio frame: `onset_sec`, `page`, `system`, `x`, `y` (pixels of the page), `similarity`
        and `confidence`.
    """
    if not isinstance(pages, Pages):
        pages = load_pages(pages)
    return align_recording(pages, audio, model, jumps=jumps).frames


def as_encoder(model: str | Path | Bundle | Encoder | None) -> Encoder:
    """Open a model: a folder, a bundle, an encoder itself, or the one that is installed with the package."""
    if isinstance(model, Encoder):
        return model
    if model is None:
        return Encoder(default_bundle())
    return Encoder(model if isinstance(model, Bundle) else load_bundle(model))


def _align_columns(
    pages: Pages,
    score: EncodedScore,
    audio: EncodedAudio,
    scale: float,
    jumps: bool,
    options: DecodingOptions,
) -> Alignment:
    def along(course: Course) -> CourseSimilarity:
        return CourseSimilarity(score.embeddings, score.mask, audio.frames, course)

    similarity = along(reading_course(score.axis))
    if jumps:
        columns = played_columns(RoughSearch(similarity, scale, options))
        similarity = along(reading_course(score.axis, columns))
    path = decode_path(similarity, audio.grid.frame_sec, scale, options)
    frames = frames_of_columns(path, similarity.course, score.axis, audio.grid)
    notes, measures = np.empty(0, ALIGNED_NOTE_DTYPE), np.empty(0, ALIGNED_MEASURE_DTYPE)
    return Alignment(pages, audio.grid, frames, notes, measures, None, score.axis, path, similarity)


def _align_notes(
    pages: Pages,
    score: EncodedScore,
    audio: EncodedAudio,
    scale: float,
    unfold: str,
    options: DecodingOptions,
) -> Alignment:
    chosen = choose_unfolding(pages, score, audio, scale, unfold, options)
    path = decode_path(chosen.similarity, audio.grid.frame_sec, scale, options)
    stops = stop_times(path, chosen.similarity, audio.grid)
    times = note_times(chosen.played, chosen.on_course, stops, path.reliability)
    frames = frames_of_notes(path, chosen.played, times.tempo, score.axis, audio.grid)
    notes = _aligned_notes(chosen.played, times)
    measures = _aligned_measures(chosen.played, notes, times)
    return Alignment(
        pages, audio.grid, frames, notes, measures, chosen.played, score.axis, path, chosen.similarity
    )


def _aligned_notes(played: PlayedScore, times: NoteTimes) -> BoxArray:
    notes = np.empty(len(played.notes), ALIGNED_NOTE_DTYPE)
    for name in PLAYED_NOTE_DTYPE.names or ():
        notes[name] = played.notes[name]
    notes["onset_sec"], notes["offset_sec"] = times.onset_sec, times.offset_sec
    notes["confidence"] = times.confidence
    return notes


def _aligned_measures(played: PlayedScore, notes: BoxArray, times: NoteTimes) -> BoxArray:
    """Time the measures that have a part of what was heard; each is as sure as its notes on average."""
    measures = np.empty(len(played.measures), ALIGNED_MEASURE_DTYPE)
    for name in PLAYED_MEASURE_DTYPE.names or ():
        measures[name] = played.measures[name]
    heard = np.isfinite(notes["onset_sec"])
    begin = notes["onset_beat"][heard].min(initial=np.inf)
    end = (notes["onset_beat"] + notes["duration_beat"])[heard].max(initial=-np.inf)
    inside = (measures["end_beat"] > begin) & (measures["start_beat"] < end)
    for name, beat in (("start_sec", "start_beat"), ("end_sec", "end_beat")):
        seconds: Float64 = np.maximum(times.tempo.to_seconds(measures[beat]), 0.0)
        measures[name] = np.where(inside, seconds, np.nan)
    measures["confidence"] = np.where(inside, _measure_confidence(measures, notes), 0.0)
    return measures


def _measure_confidence(measures: BoxArray, notes: BoxArray) -> Float64:
    """Average the notes of each measure; a measure without any is as sure as its neighbours."""
    measure = np.searchsorted(measures["start_beat"].round(6), notes["onset_beat"].round(6), side="right") - 1
    measure = np.maximum(measure, 0)
    counts = np.bincount(measure, minlength=len(measures))
    sums = np.bincount(measure, weights=notes["confidence"], minlength=len(measures))
    known = np.flatnonzero(counts)
    return np.interp(np.arange(len(measures)), known, sums[known] / counts[known])
