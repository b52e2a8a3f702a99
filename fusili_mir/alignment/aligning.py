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
from dataclasses import replace
from pathlib import Path

import numpy as np
import partitura as pt

from fusili_mir.alignment.frame_places import FRAME_DTYPE, frames_of_notes
from fusili_mir.alignment.note_times import note_times
from fusili_mir.alignment.passed_measures import with_passed_measures
from fusili_mir.alignment.performance import NoteAlignment
from fusili_mir.alignment.place_decoding import decode_places
from fusili_mir.alignment.provenance import find_provenance
from fusili_mir.alignment.results import (
    ALIGNED_MEASURE_DTYPE,
    ALIGNED_NOTE_DTYPE,
    RELIABLE,
    Alignment,
    aligned_measures,
    aligned_notes,
    on_original_pages,
)
from fusili_mir.alignment.unfolding_choice import choose_unfolding
from fusili_mir.arrays import Table
from fusili_mir.audio.recording import Recording, open_recording
from fusili_mir.decoding.course import reading_course
from fusili_mir.decoding.similarity import CourseSimilarity
from fusili_mir.decoding.stop_times import stop_times
from fusili_mir.decoding.warping_path import DecodingOptions, RoughSearch, decode_path, played_columns
from fusili_mir.errors import FusiliWarning, InputError
from fusili_mir.model.bundle import Bundle, default_bundle, load_bundle
from fusili_mir.model.embedding_cache import encode_pages_cached
from fusili_mir.model.encoded import EncodedAudio, EncodedScore
from fusili_mir.model.encoder import Encoder
from fusili_mir.pages.engraving import EngravingOptions
from fusili_mir.pages.pages import Pages, load_pages, render_pages

__all__ = [
    "FRAME_DTYPE",
    "Alignment",
    "AlignmentWarning",
    "align_encoded",
    "align_pages",
    "align_recording",
    "align_score",
    "as_encoder",
]


class AlignmentWarning(FusiliWarning):
    """A result that should not be trusted."""


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
        Pages from `load_pages`, or from `render_pages` with ``unfold="none"``.
    score, audio : EncodedScore, EncodedAudio
        Both encoded with the same bundle.
    scale : float
        The bundle's scale of cosines.
    unfold : "auto", "maximal", "minimal" or "none"
        How the repeats of a symbolic score are played; "auto" finds out from the recording.
    jumps : bool
        Whether the music may continue elsewhere, as in repeats; for images, whose repeat signs are not read.
    options : DecodingOptions, optional

    Returns
    -------
    Alignment

    Warns
    -----
    AlignmentWarning
        If the recording does not seem to be of this score.
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
            "use jumps to find repeats in the recording"
        )
    alignment = on_original_pages(with_passed_measures(alignment))
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
        Pages from `load_pages`, or from `render_pages` with ``unfold="none"``.
    recording : str, Path or Recording
        An audio file, or `AudioSamples`.
    model : str, Path, Bundle or Encoder, optional
        Model to encode with; by default the bundle that is installed with the package.
    unfold, jumps
        See `align_encoded`.
    cache : str or Path, optional
        A file that keeps the embeddings of the score for the next recording.
    progress : bool
        Whether to show progress bars on a terminal.

    Returns
    -------
    Alignment
    """
    encoder, recording = as_encoder(model), open_recording(recording)
    if cache is None:
        score = encoder.encode_pages(pages, progress)
    else:
        score = encode_pages_cached(pages, encoder, cache, progress)
    audio = encoder.encode_recording(recording, progress)
    alignment = align_encoded(pages, score, audio, encoder.bundle.manifest.scale, unfold, jumps)
    made_with = find_provenance(pages, recording, encoder.bundle, unfold=unfold, jumps=jumps)
    return replace(alignment, made_with=made_with)


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
        Model to encode with; by default the bundle that is installed with the package.
    unfold : "auto", "maximal", "minimal" or "none"
        How repeats are played; "auto" finds out from the recording.
    engraving : EngravingOptions, optional
        How the score is engraved for the model.

    Returns
    -------
    performance : partitura.performance.Performance
        The notes that were heard, with their times in seconds.
    alignment : list of dict
        `label`, `score_id`, `performance_id`, `performance_time` and `confidence`.
    score : partitura.score.Score
        Unfolded as it was played, with all parts merged into one: the only form that `partitura.save_match` and
        the time maps accept. Ids are those of the file; if the score has repeats, each time that a note is
        played adds ``-1``, ``-2``, ...
    """
    alignment = align_recording(render_pages(filename, engraving), audio, model, unfold)
    assert alignment.played is not None  # noqa: S101
    return alignment.performance, alignment.note_alignment, alignment.played.score


def align_pages(
    pages: Pages | str | Path | Sequence[str | Path],
    audio: str | Path | Recording,
    model: str | Path | Bundle | Encoder | None = None,
    jumps: bool = False,
) -> Table:
    """Align a recording with page images.

    Parameters
    ----------
    pages : Pages, or files
        Pages from `load_pages`, or files that it accepts.
    audio : str, Path or Recording
        An audio file, or `AudioSamples`.
    model : str, Path, Bundle or Encoder, optional
        Model to encode with; by default the bundle that is installed with the package.
    jumps : bool
        Whether the music may continue elsewhere, as in repeats.

    Returns
    -------
    np.ndarray of `FRAME_DTYPE` [shape=(M,)]
        One row per audio frame: `onset_sec`, `page`, `system`, `x`, `y` (pixels of the original page),
        `similarity` and `confidence`.
    """
    if not isinstance(pages, Pages):
        pages = load_pages(pages)
    return align_recording(pages, audio, model, jumps=jumps).frames


def as_encoder(model: str | Path | Bundle | Encoder | None) -> Encoder:
    """Open a model: a folder, a bundle, an encoder itself or, for None, the one installed with the package."""
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
    columns = np.arange(len(score.axis))
    if jumps:
        heard = audio.frames[audio.sound.sounding]
        similarity = CourseSimilarity(score.embeddings, score.mask, heard, reading_course(columns))
        columns = played_columns(RoughSearch(similarity, audio.grid.frame_sec, scale, options))
    found = decode_places(score, audio, scale, columns, options)
    notes, measures = np.empty(0, ALIGNED_NOTE_DTYPE), np.empty(0, ALIGNED_MEASURE_DTYPE)
    return Alignment(
        pages,
        audio.grid,
        found.frames,
        notes,
        measures,
        None,
        score.axis,
        found.path,
        found.similarity,
        found.moments,
    )


def _align_notes(
    pages: Pages,
    score: EncodedScore,
    audio: EncodedAudio,
    scale: float,
    unfold: str,
    options: DecodingOptions,
) -> Alignment:
    chosen = choose_unfolding(pages, score, audio, scale, unfold, options)
    path = decode_path(chosen.similarity, audio.grid.frame_sec, scale, options, audio.sound)
    stops = stop_times(path, chosen.similarity, audio.grid, audio.envelope)
    times = note_times(chosen.played, chosen.on_course, stops, path.reliability, audio.grid)
    frames = frames_of_notes(path, chosen.played, times.tempo, score.axis, audio.grid)
    notes = aligned_notes(chosen.played, times)
    measures = aligned_measures(chosen.played, notes, times, audio.grid)
    return Alignment(
        pages, audio.grid, frames, notes, measures, chosen.played, score.axis, path, chosen.similarity
    )
