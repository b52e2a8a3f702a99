"""Alignment of embeddings: encoded pages and an encoded recording -> notes, measures, frames."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np

from fusili_mir.alignment.anchored_stops import (
    anchored_beats,
    anchored_note,
    check_anchors,
    pins_of_notes,
    pins_of_places,
)
from fusili_mir.alignment.anchors import Anchor, AnchorsLike, as_anchors
from fusili_mir.alignment.column_order import (
    bar_line_columns,
    choose_columns,
    column_lengths,
)
from fusili_mir.alignment.frame_places import frames_of_notes
from fusili_mir.alignment.note_places import NotePlaces
from fusili_mir.alignment.note_times import note_times
from fusili_mir.alignment.order_doubts import (
    doubt_of_silence,
    doubt_of_steps,
    doubt_of_strange_sounds,
)
from fusili_mir.alignment.passed_measures import with_passed_measures
from fusili_mir.alignment.place_decoding import decode_places
from fusili_mir.alignment.results import (
    ALIGNED_MEASURE_DTYPE,
    ALIGNED_NOTE_DTYPE,
    RELIABLE,
    Alignment,
    aligned_measures,
    aligned_notes,
    on_original_pages,
)
from fusili_mir.alignment.stop_pitches import pitches_of_notes
from fusili_mir.alignment.unfolding_choice import UnfoldChoice, Unfolding, choose_unfolding
from fusili_mir.decoding.onset_evidence import OnsetEvidence
from fusili_mir.decoding.rough_search import DecodingOptions
from fusili_mir.decoding.stop_pins import StopPin
from fusili_mir.decoding.warping_path import decode_path
from fusili_mir.errors import FusiliWarning
from fusili_mir.model.encoded import EncodedAudio, EncodedScore
from fusili_mir.pages.pages import Pages
from fusili_mir.scores.unfolding import Stretches

__all__ = ["AlignmentWarning", "align_encoded"]


class AlignmentWarning(FusiliWarning):
    """A result that should not be trusted."""


def align_encoded(
    pages: Pages,
    score: EncodedScore,
    audio: EncodedAudio,
    scale: float,
    unfold: UnfoldChoice | Stretches = "auto",
    jumps: bool = False,
    options: DecodingOptions | None = None,
    anchors: AnchorsLike = None,
    unfolding: Unfolding | None = None,
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

    Returns
    -------
    Alignment

    Warns
    -----
    AlignmentWarning
        If the recording does not seem to be of this score, or not to follow the repeat signs that were read from
        images, or the measures that were given.
    """
    options, anchored = options or DecodingOptions(), as_anchors(anchors)
    check_anchors(anchored, audio.grid)
    if pages.score is not None:
        chosen = unfolding or choose_unfolding(pages, score, audio, scale, unfold, options, jumps)
        alignment = _align_notes(pages, score, audio, scale, chosen, options, anchored)
    else:
        alignment = _align_columns(pages, score, audio, scale, unfold, jumps, options, anchored)
    alignment = replace(on_original_pages(with_passed_measures(alignment)), anchors=anchored)
    if not alignment.is_reliable:
        warnings.warn(
            f"the score hardly explains the recording (reliability {alignment.reliability:.2f}, expected at "
            f"least {RELIABLE:g}); is it a recording of {pages.filename}?",
            AlignmentWarning,
            stacklevel=2,
        )
        return alignment
    doubts, is_given = [], not isinstance(unfold, str)
    if is_given or (pages.score is None and pages.repeats is not None):
        doubts.append(doubt_of_strange_sounds(alignment, audio.sound.is_silent))
    if is_given:
        doubts.append(doubt_of_silence(alignment))
    for doubt in filter(None, doubts):
        warnings.warn(doubt, AlignmentWarning, stacklevel=2)
    return alignment


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
    doubt = doubt_of_steps(pages, order.stretches) if unfold == "auto" else None
    if doubt:
        warnings.warn(doubt, AlignmentWarning, stacklevel=3)

    def pins(places: NotePlaces) -> list[StopPin]:
        return pins_of_places(anchors, pages, places, order.columns, score.axis)

    is_mute, lengths = bar_line_columns(pages, score.axis), column_lengths(pages, score.axis)
    found = decode_places(score, audio, scale, order.columns, options, pins, is_mute, lengths)
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
        unfold_probability=order.probability,
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
    pitches = pitches_of_notes(chosen.played, chosen.on_course)
    evidence = OnsetEvidence(audio.onsets, audio.envelope, pitches, options.law)
    pins = pins_of_notes(anchors, pages, chosen.played, chosen.on_course)
    found = decode_path(chosen.similarity, audio.grid, scale, audio.sound, evidence, options, pins)
    known = anchored_beats(anchors, chosen.played) if anchors else None
    times = note_times(
        chosen.played,
        chosen.on_course,
        found.times,
        audio.grid,
        audio.onsets,
        options.law,
        evidence.certainty,
        known,
    )
    for anchor in anchors:
        if anchor.measure is None:
            note = anchored_note(anchor, pages, chosen.played.notes)
            times = times.with_onset(note, anchor.second)
    frames = frames_of_notes(found.path, chosen.played, times.tempo, score.axis, audio.grid)
    notes = aligned_notes(chosen.played, times, audio.grid)
    measures = aligned_measures(chosen.played, notes, times, audio.grid)
    return Alignment(
        pages,
        audio.grid,
        frames,
        notes,
        measures,
        chosen.played,
        score.axis,
        found.path,
        chosen.similarity,
        unfold_probability=chosen.probability,
    )
