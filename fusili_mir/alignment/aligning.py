"""Alignment: which note, and which spot on which page, sounds at which second.

Three layers, each usable alone:

    alignment = align_encoded(pages, score, audio, scale)      # from embeddings
    alignment = align_recording("scan.pdf", "recording.wav")   # everything at once
    performance, alignment, score = align_score("piece.musicxml", "recording.wav")   # partitura's types
    frames = align_pages("scan.pdf", "recording.wav")          # a table

Scores and recordings are files or objects: see `open_pages`, `render_pages` and `open_recording`.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import partitura as pt

from fusili_mir.alignment.anchored_stops import (
    anchored_beats,
    anchored_note,
    check_anchors,
    pins_of_notes,
    pins_of_places,
)
from fusili_mir.alignment.anchors import Anchor, AnchorsLike, anchors_at_speed, as_anchors
from fusili_mir.alignment.column_order import bar_line_columns, choose_columns, unwritten_steps
from fusili_mir.alignment.encoded_pair import EncodedPair
from fusili_mir.alignment.frame_places import FRAME_DTYPE, frames_of_notes
from fusili_mir.alignment.note_places import NotePlaces
from fusili_mir.alignment.note_times import note_times
from fusili_mir.alignment.passed_measures import with_passed_measures
from fusili_mir.alignment.performance import NoteAlignment
from fusili_mir.alignment.pitch_options import check_pitch
from fusili_mir.alignment.pitch_shift import find_pitch
from fusili_mir.alignment.place_decoding import decode_places
from fusili_mir.alignment.playing_speed import result_at_own_speed
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
from fusili_mir.alignment.stop_pitches import evidence_of, pitches_of_notes
from fusili_mir.alignment.unfolding_choice import UnfoldChoice, Unfolding, check_unfold, choose_unfolding
from fusili_mir.arrays import Table
from fusili_mir.audio.heard_recording import HeardRecording
from fusili_mir.audio.recording import RecordingLike, open_recording
from fusili_mir.dataclass_tables import read_table
from fusili_mir.decoding.stop_pins import StopPin
from fusili_mir.decoding.timing_law import TimingLaw
from fusili_mir.decoding.warping_path import DecodingOptions, decode_path
from fusili_mir.errors import FusiliWarning, InputError
from fusili_mir.model.bundle import Bundle, default_bundle, load_bundle
from fusili_mir.model.embedding_cache import encode_pages_cached
from fusili_mir.model.encoded import EncodedAudio, EncodedScore
from fusili_mir.model.encoder import Encoder
from fusili_mir.pages.engraving import EngravingOptions
from fusili_mir.pages.pages import Pages, check_score, open_pages
from fusili_mir.progress import stage
from fusili_mir.scores.playing_graph import playing_graph
from fusili_mir.scores.playing_order import (
    PlayingOrder,
    parse_playing_order,
    read_playing_order,
    write_playing_order,
)
from fusili_mir.scores.unfolding import Stretches, stretches_of

__all__ = [
    "FRAME_DTYPE",
    "Alignment",
    "AlignmentWarning",
    "align_encoded",
    "align_pages",
    "align_pair",
    "align_recording",
    "align_score",
    "as_encoder",
    "decoding_options",
    "encode_pair",
]


class AlignmentWarning(FusiliWarning):
    """A result that should not be trusted."""


def align_encoded(
    pages: Pages,
    score: EncodedScore,
    audio: EncodedAudio,
    scale: float,
    unfold: str | Stretches = "auto",
    jumps: bool = False,
    options: DecodingOptions | None = None,
    anchors: AnchorsLike = None,
    unfolding: Unfolding | None = None,
    repeats: PlayingOrder | None = None,
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
    unfold : "auto", "maximal", "minimal", "none" or stretches of measures
        How repeats are played, as written or as read from images; "auto" finds out from the recording.
    jumps : bool
        Whether the music is expected to go on at measures that no repeat sign leads to.
    options : DecodingOptions, optional
    anchors : file, mapping or sequence, optional
        Seconds that are known for measures, notes or places: ``{17: 42.5}``, a table, or what `as_anchors` reads.
        What lies between two anchors does not depend on anything else.
    unfolding : Unfolding, optional
        The repeats as they are played, if that is known already.
    repeats : str, Path or sequence, optional
        Measures as they are played, such as "1-8 1-8 9-16", or a text file of them; instead of `unfold`.

    Returns
    -------
    Alignment

    Warns
    -----
    AlignmentWarning
        If the recording does not seem to be of this score, or does not follow the repeat signs that were read
        from images.
    """
    requested = _chosen_repeats(pages, unfold, jumps, repeats)
    options, anchored = options or DecodingOptions(), as_anchors(anchors)
    check_anchors(anchored, audio.grid)
    if pages.score is not None:
        chosen = unfolding or choose_unfolding(pages, score, audio, scale, requested, options, jumps)
        alignment = _align_notes(pages, score, audio, scale, chosen, options, anchored)
    else:
        alignment = _align_columns(pages, score, audio, scale, requested, jumps, options, anchored)
    alignment = replace(on_original_pages(with_passed_measures(alignment)), anchors=anchored)
    if not alignment.is_reliable:
        warnings.warn(
            f"the score hardly explains the recording (reliability {alignment.reliability:.2f}, expected at "
            f"least {RELIABLE:g}); is it a recording of {pages.filename}?",
            AlignmentWarning,
            stacklevel=2,
        )
    return alignment


def align_recording(
    pages: Any,
    recording: RecordingLike | HeardRecording,
    model: str | Path | Bundle | Encoder | None = None,
    unfold: str = "auto",
    jumps: bool = False,
    cache: str | Path | None = None,
    progress: bool = False,
    start_sec: float | None = None,
    end_sec: float | None = None,
    transpose: str | float = "auto",
    tuning: str | float | None = None,
    anchors: AnchorsLike = None,
    repeats: PlayingOrder | None = None,
) -> Alignment:
    """Align a recording with pages.

    Parameters
    ----------
    pages : Pages, file, image or symbolic score
        Pages from `load_pages`, or from `render_pages` with ``unfold="none"``, or what `open_pages` opens.
    recording : str, Path, (samples, rate), file object or Recording
        Anything that `open_recording` opens, such as an audio file or ``(y, sr)`` from librosa.
    model : str, Path, Bundle or Encoder, optional
        Model to encode with; by default the bundle that is installed with the package.
    unfold, jumps, repeats
        See `align_encoded`.
    cache : str or Path, optional
        A file that keeps the embeddings of the score for the next recording.
    progress : bool
        Whether to show progress bars on a terminal.
    start_sec, end_sec : float, optional
        Stretch of the recording to align; times in the result are those of the whole recording.
    transpose : "auto" or float
        Semitones by which the recording sounds above the score; "auto" finds out. With a number, nothing is
        looked for: 0 takes the recording as it is.
    tuning : "auto" or float, optional
        Frequency of A in the recording, apart from any transposition, in Hz. By default it is looked for if
        `transpose` is "auto", and is 440 Hz otherwise.
    anchors : file, mapping or sequence, optional
        Seconds that are known beforehand; see `align_encoded`.

    Returns
    -------
    Alignment
    """
    anchored = as_anchors(anchors)
    pair = encode_pair(
        pages,
        recording,
        model,
        unfold,
        jumps,
        cache,
        progress,
        start_sec,
        end_sec,
        transpose,
        tuning,
        repeats,
    )
    return align_pair(pair, anchored, progress)


def encode_pair(
    pages: Any,
    recording: RecordingLike | HeardRecording,
    model: str | Path | Bundle | Encoder | None = None,
    unfold: str = "auto",
    jumps: bool = False,
    cache: str | Path | None = None,
    progress: bool = False,
    start_sec: float | None = None,
    end_sec: float | None = None,
    transpose: str | float = "auto",
    tuning: str | float | None = None,
    repeats: PlayingOrder | None = None,
) -> EncodedPair:
    """Encode pages and a recording, to align them once or, with other anchors, many times.

    Parameters
    ----------
    pages, recording, model, unfold, jumps, cache, progress, start_sec, end_sec, transpose, tuning, repeats
        See `align_recording`.

    Returns
    -------
    EncodedPair
    """
    encoder = as_encoder(model)
    if isinstance(recording, HeardRecording):
        opened = recording.recording
    else:
        recording = opened = open_recording(recording, start_sec, end_sec)
    check_pitch(transpose, tuning)
    pages = open_pages(pages, progress=progress)
    requested = _chosen_repeats(pages, unfold, jumps, repeats)
    with _heard(recording, encoder, progress) as heard:  # before the score: it may turn out to be silent
        if cache is None:
            score = encoder.encode_pages(pages, progress)
        else:
            score = encode_pages_cached(pages, encoder, cache, progress)
        with stage("comparing pitches", shown=progress):
            pitch = find_pitch(pages, score, heard, encoder, transpose, tuning)
        audio = encoder.encode_recording(heard, progress, pitch.above_pages)
    made_with = find_provenance(
        pages,
        opened,
        encoder.bundle,
        unfold=unfold,
        jumps=jumps,
        repeats=None if repeats is None else read_playing_order(repeats),
        transpose=transpose,
        tuning=tuning,
    )
    options = decoding_options(encoder.bundle)
    return EncodedPair(
        pages, opened, score, audio, encoder.bundle, pitch, options, requested, jumps, made_with
    )


def align_pair(pair: EncodedPair, anchors: AnchorsLike = None, progress: bool = False) -> Alignment:
    """Align encoded pages and an encoded recording.

    Parameters
    ----------
    pair : EncodedPair
    anchors : file, mapping or sequence, optional
        See `align_encoded`.
    progress : bool
        Whether to show on a terminal that it is at work.

    Returns
    -------
    Alignment
    """
    anchored, grid = as_anchors(anchors), pair.audio.grid
    check_anchors(anchored, grid)
    with stage("decoding", shown=progress):
        alignment = align_encoded(
            pair.pages,
            pair.score,
            pair.audio_at_speed,
            pair.scale,
            pair.unfold,
            pair.jumps,
            options=pair.options,
            anchors=anchors_at_speed(anchored, grid.audio_start_sec, pair.speed),
            unfolding=pair.unfolding,
        )
        alignment = result_at_own_speed(alignment, grid)
    made_with = pair.made_with
    if anchored:
        options = {**made_with.options, "anchors": [anchor.to_json() for anchor in anchored]}
        made_with = replace(made_with, options=options)
    return replace(
        alignment, anchors=anchored, made_with=made_with, pitch=pair.pitch, recording=pair.recording
    )


def align_score(
    score: Any,
    audio: RecordingLike,
    model: str | Path | Bundle | Encoder | None = None,
    unfold: str = "auto",
    engraving: EngravingOptions | None = None,
    start_sec: float | None = None,
    end_sec: float | None = None,
    transpose: str | float = "auto",
    tuning: str | float | None = None,
    anchors: AnchorsLike = None,
    repeats: PlayingOrder | None = None,
) -> tuple[pt.performance.Performance, NoteAlignment, pt.score.Score]:
    """Align a recording with a symbolic score, in partitura's terms.

    Parameters
    ----------
    score : str, Path, partitura score or Pages
        Anything that `render_pages` engraves, or its pages.
    audio : str, Path, (samples, rate), file object or Recording
        Anything that `open_recording` opens, such as an audio file or ``(y, sr)`` from librosa.
    model : str, Path, Bundle or Encoder, optional
        Model to encode with; by default the bundle that is installed with the package.
    unfold : "auto", "maximal", "minimal" or "none"
        How repeats are played; "auto" finds out from the recording.
    engraving : EngravingOptions, optional
        How the score is engraved for the model.
    start_sec, end_sec : float, optional
        Stretch of the recording to align; times in the result are those of the whole recording.
    transpose, tuning, anchors, repeats
        See `align_recording`.

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
    encoder, recording = as_encoder(model), open_recording(audio, start_sec, end_sec)
    if not check_score(score):
        name = score.filename if isinstance(score, Pages) else score
        raise InputError(
            f"{name}: only images are known, so there are no notes to align; use align_pages, or give a symbolic "
            "score"
        )
    pages = open_pages(score, engraving)
    alignment = align_recording(
        pages,
        recording,
        encoder,
        unfold,
        transpose=transpose,
        tuning=tuning,
        anchors=anchors,
        repeats=repeats,
    )
    assert alignment.played is not None  # noqa: S101
    return alignment.performance, alignment.note_alignment, alignment.played.score


def align_pages(
    pages: Any,
    audio: RecordingLike,
    model: str | Path | Bundle | Encoder | None = None,
    jumps: bool = False,
    start_sec: float | None = None,
    end_sec: float | None = None,
    transpose: str | float = "auto",
    tuning: str | float | None = None,
    anchors: AnchorsLike = None,
    unfold: str = "auto",
    repeats: PlayingOrder | None = None,
) -> Table:
    """Align a recording with page images.

    Parameters
    ----------
    pages : Pages, file, image, or a sequence of files or images
        Pages from `load_pages`, or anything that `open_pages` opens.
    audio : str, Path, (samples, rate), file object or Recording
        Anything that `open_recording` opens, such as an audio file or ``(y, sr)`` from librosa.
    model : str, Path, Bundle or Encoder, optional
        Model to encode with; by default the bundle that is installed with the package.
    jumps : bool
        Whether the music is expected to go on at measures that no repeat sign leads to.
    start_sec, end_sec : float, optional
        Stretch of the recording to align; times in the result are those of the whole recording.
    transpose, tuning, unfold, anchors, repeats
        See `align_recording`.

    Returns
    -------
    np.ndarray of `FRAME_DTYPE` [shape=(M,)]
        One row per audio frame: `onset_sec`, `page`, `system`, `x`, `y` (pixels of the original page),
        `similarity` and `confidence`.
    """
    return align_recording(
        pages,
        audio,
        model,
        unfold,
        jumps,
        repeats=repeats,
        start_sec=start_sec,
        end_sec=end_sec,
        transpose=transpose,
        tuning=tuning,
        anchors=anchors,
    ).frames


def as_encoder(model: str | Path | Bundle | Encoder | None) -> Encoder:
    """Open a model: a folder, a bundle, an encoder itself or, for None, the one installed with the package."""
    if isinstance(model, Encoder):
        return model
    if model is None:
        return Encoder(default_bundle())
    if not isinstance(model, str | os.PathLike | Bundle):
        raise InputError(f"the model: {type(model).__name__}, expected the folder of a bundle, or None")
    return Encoder(model if isinstance(model, Bundle) else load_bundle(model))


def decoding_options(bundle: Bundle) -> DecodingOptions:
    """Return how a bundle is decoded: with the law of timing that was fitted for it, or the usual one."""
    law = bundle.manifest.decoder.get("law", {})
    return DecodingOptions(law=read_table(TimingLaw, law, "decoder.law"))


@contextmanager
def _heard(
    recording: RecordingLike | HeardRecording, encoder: Encoder, progress: bool
) -> Iterator[HeardRecording]:
    """Read a recording, unless it has been read already."""
    if isinstance(recording, HeardRecording):
        yield recording
        return
    with HeardRecording(recording, encoder.bundle.audio.sample_rate_hz, progress) as heard:
        yield heard


def _chosen_repeats(
    pages: Pages, unfold: str | Stretches, jumps: bool, repeats: PlayingOrder | None
) -> UnfoldChoice | Stretches:
    """Return how repeats are played, as requested; raise an error if these pages cannot be played so."""
    if not isinstance(unfold, str):
        return unfold
    check_unfold(unfold)
    if repeats is None:
        return cast(UnfoldChoice, unfold)
    if unfold != "auto" or jumps:
        raise InputError(
            "repeats were given, and unfold or jumps, too; expected one of them: repeats say what is played"
        )
    if not len(pages.measures):
        raise InputError(
            f"{pages.filename}: no measures are known, so repeats cannot name them; leave them out"
        )
    order = np.argsort(pages.measures["measure"], kind="stable")
    return stretches_of(parse_playing_order(repeats, pages.measures["number"][order].tolist()))


def _align_columns(
    pages: Pages,
    score: EncodedScore,
    audio: EncodedAudio,
    scale: float,
    unfold: UnfoldChoice | Stretches,
    jumps: bool,
    options: DecodingOptions,
    anchors: tuple[Anchor, ...],
) -> Alignment:
    order = choose_columns(pages, score, audio, scale, unfold, jumps, options)
    if unfold == "auto":
        _warn_of_unwritten_steps(pages, order.stretches)

    def pins(places: NotePlaces) -> list[StopPin]:
        return pins_of_places(anchors, pages, places, order.columns, score.axis)

    is_mute = bar_line_columns(pages, score.axis)
    found = decode_places(score, audio, scale, order.columns, options, pins, is_mute)
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
        stretches=order.stretches or None,
    )


def _warn_of_unwritten_steps(pages: Pages, stretches: Stretches) -> None:
    """Warn if a recording goes on at measures that no sign on the images leads to."""
    if pages.repeats is None or len(stretches) < 2:
        return
    steps = unwritten_steps(stretches, playing_graph(pages.repeats))
    numbers = pages.measures["number"].tolist()
    if steps:
        found = ", ".join(f"from measure {numbers[last]} to {numbers[first]}" for last, first in steps[:3])
        more = f" and {len(steps) - 3} more" if len(steps) > 3 else ""
        warnings.warn(
            f"the recording goes {found}{more}, where no sign was read on the pages; if that is wrong, say what "
            f"is played: repeats {write_playing_order(stretches, numbers)!r} is what was found",
            AlignmentWarning,
            stacklevel=4,
        )


def _align_notes(
    pages: Pages,
    score: EncodedScore,
    audio: EncodedAudio,
    scale: float,
    chosen: Unfolding,
    options: DecodingOptions,
    anchors: tuple[Anchor, ...],
) -> Alignment:
    evidence = evidence_of(audio, pitches_of_notes(chosen.played, chosen.on_course), options.law)
    pins = pins_of_notes(anchors, pages, chosen.played, chosen.on_course)
    found = decode_path(chosen.similarity, audio.grid, scale, options, audio.sound, evidence, pins)
    known = anchored_beats(anchors, chosen.played) if anchors else None
    times = note_times(
        chosen.played, chosen.on_course, found.times, audio.grid, audio.attacks, options.law.bias_sec, known
    )
    for anchor in anchors:
        if anchor.measure is None:
            note = anchored_note(anchor, pages, chosen.played.notes)
            times = times.with_onset(note, anchor.second)
    frames = frames_of_notes(found.path, chosen.played, times.tempo, score.axis, audio.grid)
    notes = aligned_notes(chosen.played, times)
    measures = aligned_measures(chosen.played, notes, times, audio.grid)
    return Alignment(
        pages, audio.grid, frames, notes, measures, chosen.played, score.axis, found.path, chosen.similarity
    )
