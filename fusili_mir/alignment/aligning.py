"""Alignment: which note, and which spot on which page, sounds at which second.

Three layers, each usable alone:

    alignment = align_encoded(pages, score, audio, scale)      # from embeddings
    alignment = align_recording("scan.pdf", "recording.wav")   # everything at once
    performance, alignment, score = align_score("piece.musicxml", "recording.wav")   # partitura's types
    frames = align_pages("scan.pdf", "recording.wav")          # a table

Scores and recordings are files or objects: see `open_pages`, `render_pages` and `open_recording`.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import partitura as pt

from fusili_mir.alignment.anchored_stops import check_anchors
from fusili_mir.alignment.anchors import AnchorsLike, anchors_at_speed, as_anchors
from fusili_mir.alignment.encoded_alignment import AlignmentWarning, align_encoded
from fusili_mir.alignment.encoded_pages import encode_pages_once
from fusili_mir.alignment.encoded_pair import EncodedPair, encode_pair
from fusili_mir.alignment.fitted_decoding import decoding_options
from fusili_mir.alignment.frame_places import FRAME_DTYPE
from fusili_mir.alignment.performance import NoteAlignment
from fusili_mir.alignment.playing_speed import result_at_own_speed
from fusili_mir.alignment.results import Alignment
from fusili_mir.alignment.swapped_files import refuse_swapped
from fusili_mir.argument_kinds import checked
from fusili_mir.arrays import Table
from fusili_mir.audio.heard_recording import HeardRecording
from fusili_mir.audio.recording import RecordingLike, open_recording
from fusili_mir.errors import InputError
from fusili_mir.model.bundle import Bundle
from fusili_mir.model.encoder import Encoder
from fusili_mir.model.opened_encoder import as_encoder
from fusili_mir.pages.engraving import EngravingOptions
from fusili_mir.pages.pages import Pages, check_score, open_pages
from fusili_mir.progress import stage
from fusili_mir.scores.playing_order import PlayingOrder

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
    "encode_pages_once",
    "encode_pair",
]


@checked
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
        Pages from `load_pages`, or from `render_pages` with ``unfold="none"``, or what `open_pages` opens. Pages
        from `encode_pages_once` are encoded already: give them with one recording after another.
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


@checked
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
    refuse_swapped(score, audio)
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


@checked
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
