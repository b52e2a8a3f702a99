"""Onset errors: how far from its true time a note is placed by the decoded path.

A path is decoded for a segment along its own columns, for a whole piece from page images alone, or for a whole
piece with its symbolic score. A note that was not found has an infinite error, which is within no tolerance.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from fusili_mir.alignment.encoded_alignment import AlignmentWarning, align_encoded
from fusili_mir.alignment.place_decoding import decode_places
from fusili_mir.alignment.position_maps import get_position_maps
from fusili_mir.alignment.results import Alignment
from fusili_mir.arrays import Float32, Float64, Int64
from fusili_mir.audio.onset_map import N_PITCHES
from fusili_mir.errors import InputError
from fusili_mir.geometry import FrameGrid
from fusili_mir.model.encoded import EncodedAudio, EncodedScore
from fusili_mir.model.encoder import Encoder
from fusili_mir.pages.original_pixels import places_to_original
from fusili_mir.pages.score_axis import COLUMN_DTYPE, ScoreAxis
from fusili_training.evaluation.bootstrap import Interval, bootstrap, ratio_interval, weighted_median
from fusili_training.evaluation.pair_encoder import EncodedPair
from fusili_training.evaluation.whole_pieces import WholePiece
from fusili_training.random_streams import random_stream

__all__ = [
    "ComparedErrors",
    "errors_of_piece",
    "errors_of_segment",
    "median_error_ms",
    "share_within",
]


@dataclass(frozen=True, eq=False)
class ComparedErrors:
    """Absolute errors of the notes of a piece or segment beside those of two baselines, in seconds, (n,) each.

    `model` holds the errors of the decoded path, `straight` those of reading at an even pace from the start to
    the end of the recording, `shuffled` those of the path decoded from the recording's frames in random order.
    """

    model: Float64
    straight: Float64
    shuffled: Float64


def errors_of_segment(pair: EncodedPair, scale: float) -> ComparedErrors:
    """Decode the path of a segment that shows one line of music, and compare its onsets with the truth.

    Its notes are not read: the encoders are judged, and onsets of anything count.

    Parameters
    ----------
    pair : EncodedPair
    scale : float
        Scale of the bundle's cosines.

    Returns
    -------
    ComparedErrors
        Errors of the notes that are struck.
    """
    grid = pair.patch_grid
    columns = np.zeros(grid.cols, COLUMN_DTYPE)
    columns["x0"] = np.arange(grid.cols) * grid.patch_width_px
    columns["x1"] = columns["x0"] + np.float32(grid.patch_width_px)
    columns["y1"] = grid.height_px
    axis = ScoreAxis(columns)
    by_column = pair.patches.reshape(grid.rows, grid.cols, -1).swapaxes(0, 1)  # (C, R, d)
    heads = pair.truth[pair.truth["struck"]]
    x = (heads["x0"].astype(np.float64) + heads["x1"]) / 2
    y = np.full(len(heads), grid.height_px / 2)
    page = np.zeros(len(heads), dtype=np.int64)

    nothing_read = np.zeros((len(axis), N_PITCHES), np.float32)
    score = EncodedScore(axis, by_column, np.ones(by_column.shape[:2], dtype=bool), pitches=nothing_read)

    def found_sec(frames: Float32) -> Float64:
        try:
            found = decode_places(score, replace(pair.audio, frames=frames), scale, np.arange(grid.cols))
        except InputError:  # nothing sounds like the score, which can happen with shuffled frames
            return np.full(len(heads), np.nan)
        return get_position_maps(found.frames, found.moments).position_to_seconds(page, x, y)

    true_sec = heads["onset_sec"]
    order = random_stream(0, "onsets", pair.key).permutation(len(pair.frames))
    return ComparedErrors(
        _errors(found_sec(pair.frames), true_sec),
        _errors(_even_pace(axis, page, x, y, pair.frame_grid), true_sec),
        _errors(found_sec(pair.frames[order]), true_sec),
    )


def errors_of_piece(piece: WholePiece, encoder: Encoder, progress: bool = False) -> ComparedErrors:
    """Align a whole piece, and compare its onsets with the truth.

    Parameters
    ----------
    piece : WholePiece
    encoder : Encoder
    progress : bool
        Whether to show bars on a terminal.

    Returns
    -------
    ComparedErrors
        Errors of the note heads on page images, or of the notes of a symbolic score.
    """
    score = encoder.encode_pages(piece.pages, progress)
    audio = encoder.encode_recording(piece.recording, progress)
    order = random_stream(0, "onsets", piece.name).permutation(len(audio.frames))
    nothing_heard = replace(audio.onsets, activation=np.zeros_like(audio.onsets.activation))
    shuffled = replace(audio, frames=audio.frames[order], onsets=nothing_heard)
    scale = encoder.bundle.manifest.scale
    heads = piece.heads
    straight_sec = _even_pace(score.axis, heads["page"], heads["x"], heads["y"], audio.grid)
    return ComparedErrors(
        _found_errors(piece, score, audio, scale),
        _errors(straight_sec, heads["onset_sec"]),
        _found_errors(piece, score, shuffled, scale),
    )


def _found_errors(piece: WholePiece, score: EncodedScore, audio: EncodedAudio, scale: float) -> Float64:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AlignmentWarning)  # the errors will show it
        try:
            alignment = align_encoded(piece.pages, score, audio, scale)
        except InputError:  # nothing sounds like the score, which can happen with shuffled frames
            return np.full(len(piece.heads), np.inf)
    heads = piece.heads
    if alignment.played is None:
        x, y = places_to_original(piece.pages.skews, heads["page"], heads["x"], heads["y"])
        found_sec = alignment.position_maps.position_to_seconds(heads["page"], x, y)
        return _errors(found_sec, heads["onset_sec"])
    return _errors(_note_seconds(alignment, heads["id"]), heads["onset_sec"])


def _note_seconds(alignment: Alignment, ids: npt.NDArray[np.str_]) -> Float64:
    """Return the seconds at which notes of a symbolic score were found; NaN for notes that were not."""
    notes = alignment.notes
    seconds = dict(zip(notes["notated_id"].tolist(), notes["onset_sec"].tolist(), strict=True))
    seconds |= dict(zip(notes["id"].tolist(), notes["onset_sec"].tolist(), strict=True))
    return np.array([seconds.get(str(note), np.nan) for note in ids], dtype=np.float64)


def _even_pace(axis: ScoreAxis, page: Int64, x: Float64, y: Float64, grid: FrameGrid) -> Float64:
    column = axis.index(page, x, y)
    return np.where(column >= 0, (column + 0.5) / len(axis) * grid.duration_sec, np.nan)


def _errors(found_sec: Float64, true_sec: Float64) -> Float64:
    errors = np.abs(found_sec - true_sec)
    return np.where(np.isnan(errors), np.inf, errors)


def median_error_ms(pieces: Sequence[Float64]) -> Interval:
    """Return the median absolute error of all notes in milliseconds, with an interval over pieces."""
    if not sum(len(errors) for errors in pieces):
        raise InputError("no notes to measure; expected pieces with known onsets")
    found = bootstrap(len(pieces), weighted_median(pieces))
    return Interval(1000 * found.value, 1000 * found.low, 1000 * found.high)


def share_within(pieces: Sequence[Float64], tolerance_ms: int) -> Interval:
    """Return the share of notes whose error is at most `tolerance_ms`."""
    within = [np.count_nonzero(errors <= tolerance_ms / 1000 + 1e-9) for errors in pieces]
    return ratio_interval(within, [len(errors) for errors in pieces])
