"""Encoding a score or a recording for an index, or as a query to one.

Pooled embeddings are made of whole systems and of their overlapping halves, and of overlapping clips of ten
seconds. A recording that is tuned higher or lower than A at 440 Hz is read at that pitch.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

import numpy as np

from fusili_mir.arrays import Int64, Table
from fusili_mir.audio.heard_recording import HeardRecording
from fusili_mir.audio.pitch_curve import PitchCurve, Retuning
from fusili_mir.audio.recording import open_recording
from fusili_mir.audio.spectral_peaks import find_peaks
from fusili_mir.audio.tuning import estimate_tuning
from fusili_mir.collection.encoded_piece import EncodedPiece
from fusili_mir.collection.kinds import kind_of
from fusili_mir.model.clips import ClipLayout
from fusili_mir.model.encoder import Encoder
from fusili_mir.model.manifest import AudioSpec
from fusili_mir.model.score_segments import halve_systems, segment_pages
from fusili_mir.pages.original_pixels import boxes_to_original
from fusili_mir.pages.pages import Pages
from fusili_mir.pages.score_axis import COLUMN_DTYPE
from fusili_mir.pages.seen_pages import open_seen_pages

__all__ = ["encode_file", "encode_score", "encode_sound", "tuning_cents"]

_CLIP_SEC = 10.0
_LEAST_CENTS = 5.0  # of a tuning that is worth correcting


def encode_file(filename: str | os.PathLike[str], encoder: Encoder) -> EncodedPiece:
    """Encode a file, whatever it is."""
    if kind_of(filename) == "score":
        return encode_score(open_seen_pages(filename), encoder)
    with HeardRecording(open_recording(filename), encoder.bundle.audio.sample_rate_hz) as heard:
        return encode_sound(heard, encoder, tuning_cents(heard))


def encode_score(pages: Pages, encoder: Encoder) -> EncodedPiece:
    """Encode the pages of a score."""
    spec = encoder.bundle.image
    encoded = encoder.embed_pages(pages)
    whole, halves = segment_pages(pages, spec), halve_systems(pages, spec)
    assert encoded.segment_embeddings is not None  # noqa: S101
    last = np.cumsum([len(segment.columns) for segment in whole])
    spans = np.stack([np.append(0, last[:-1]), last], axis=1)
    columns = encoded.axis.columns
    windows = np.concatenate([encoded.segment_embeddings, encoder.pool_segments(halves, pages)])
    return EncodedPiece(
        "score",
        encoded.embeddings.astype(np.float16),
        encoded.mask,
        windows.astype(np.float16),
        np.concatenate([spans, _spans(columns, (half.columns for half in halves))]),
        boxes_to_original(pages.skews, columns),
    )


def encode_sound(
    heard: HeardRecording, encoder: Encoder, cents: float = 0.0, clip_sec: float = _CLIP_SEC
) -> EncodedPiece:
    """Encode a recording as if it sounded some cents lower than it does, with windows of some seconds."""
    spec = encoder.bundle.audio
    layout = _overlapping(spec, clip_sec)
    blocks, ratio = heard.blocks(), 1.0
    if cents:
        retuning = Retuning(PitchCurve.constant(cents), len(heard), heard.sample_rate_hz, heard.start_sec)
        blocks, ratio = retuning.read(blocks), retuning.mean_ratio
    frames, windows = encoder.encode_blocks(blocks, layout)
    first = np.arange(len(windows)) * (layout.clip_frames - 2 * layout.context_frames)
    spans = np.stack([first, np.minimum(first + layout.clip_frames, len(frames))], axis=1)
    full = spans[:, 1] - spans[:, 0] >= layout.clip_frames // 2  # what remains at the end may be a moment
    full[0] = True
    return EncodedPiece(
        "recording",
        frames[:, None].astype(np.float16),
        np.ones((len(frames), 1), bool),
        windows[full].astype(np.float16),
        spans[full],
        np.empty(0, COLUMN_DTYPE),
        heard.start_sec,
        spec.frame_sec / ratio,
    )


def tuning_cents(heard: HeardRecording) -> float:
    """Return by how many cents a recording is tuned above A at 440 Hz, -50 to 50; 0 if that is not clear."""
    tuning = estimate_tuning(find_peaks(heard.blocks(), heard.sample_rate_hz, heard.start_sec))
    return tuning.cents if tuning.is_clear and abs(tuning.cents) >= _LEAST_CENTS else 0.0


def _overlapping(spec: AudioSpec, clip_sec: float) -> ClipLayout:
    """Return clips of about some seconds, each of which shares its halves with its neighbours."""
    clip_frames = spec.clip_frames or max(round(clip_sec / spec.frame_sec), 8 * spec.context_frames, 4)
    return ClipLayout(
        spec.frame_samples, clip_frames, clip_frames // 4, pad_last=spec.clip_frames is not None
    )


def _spans(columns: Table, parts: Iterable[Table]) -> Int64:
    """Return which columns each part consists of, [shape=(n, 2)]."""
    first_of = {
        (int(system), round(float(x0), 1)): number
        for number, (system, x0) in enumerate(zip(columns["system"], columns["x0"], strict=True))
    }
    firsts = [(first_of[int(part["system"][0]), round(float(part["x0"][0]), 1)], len(part)) for part in parts]
    return np.array([(first, first + size) for first, size in firsts], np.int64).reshape(-1, 2)
