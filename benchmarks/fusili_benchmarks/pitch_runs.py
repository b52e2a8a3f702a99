"""Runs of the search for the pitch of a recording: shifted, unshifted, drifting, and of another piece."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np

from fusili_mir.alignment.encoded_alignment import AlignmentWarning, align_encoded
from fusili_mir.alignment.fitted_decoding import decoding_options
from fusili_mir.alignment.pitch_shift import find_pitch
from fusili_mir.alignment.playing_speed import audio_at_speed, result_at_own_speed
from fusili_mir.alignment.recording_pitch import RecordingPitch
from fusili_mir.alignment.results import Alignment
from fusili_mir.arrays import Float32, Float64
from fusili_mir.audio.heard_recording import HeardRecording
from fusili_mir.audio.pitch_curve import PitchCurve, Retuning
from fusili_mir.audio.recording import AudioSamples
from fusili_mir.errors import InputError
from fusili_mir.model.encoded import EncodedScore
from fusili_mir.model.encoder import Encoder
from fusili_mir.pages.original_pixels import places_to_original
from fusili_training.evaluation.whole_pieces import WholePiece

__all__ = ["PitchRun", "Played", "align_played", "look_for_pitch", "percussive", "played"]

_STROKE_SEC = 0.06


@dataclass(frozen=True, eq=False)
class Played:
    """A recording at another pitch, and the true onsets of its piece's heads in it."""

    samples: Float32
    sample_rate_hz: int
    onset_sec: Float64
    cents: PitchCurve  # by which it was raised, in its own seconds


@dataclass(frozen=True)
class PitchRun:
    """What was found in one run, and what it cost.

    Attributes
    ----------
    pitch : RecordingPitch
    errors_sec : np.ndarray [shape=(n,)]
        Errors of the piece's heads; infinite for those that were not found.
    reliability : float
    pitch_cpu_sec, align_cpu_sec : float
        Cost of the search, and of encoding and aligning the recording after it.
    """

    pitch: RecordingPitch
    errors_sec: Float64
    reliability: float
    pitch_cpu_sec: float
    align_cpu_sec: float


def played(
    piece: WholePiece, cents: tuple[float, float], excerpt_sec: tuple[float, float] | None = None
) -> Played:
    """Play back the recording of a piece at another speed, from some cents at its start to others at its end."""
    recording = piece.recording
    if not isinstance(recording, AudioSamples):
        raise InputError(f"{piece.name}: expected its recording in memory")
    rate_hz, samples = recording.sample_rate_hz, np.asarray(recording.samples, np.float32)
    onset_sec = piece.heads["onset_sec"].astype(np.float64)
    if excerpt_sec is not None:
        first, last = (round(second * rate_hz) for second in excerpt_sec)
        samples, onset_sec = samples[first:last], onset_sec - excerpt_sec[0]
    length_sec = len(samples) / rate_hz
    # Raised by some cents is what a recording is that sounds so many cents too low for its score.
    slower = PitchCurve(np.array([0.0, length_sec]), -np.array(cents))
    retuning = Retuning(slower, len(samples), rate_hz)
    edges_sec = np.linspace(0.0, length_sec, 1000)
    raised = PitchCurve(retuning.to_read_sec(edges_sec), -slower.at(edges_sec))
    read = samples if cents == (0.0, 0.0) else np.concatenate(list(retuning.read([samples])))
    return Played(read, rate_hz, retuning.to_read_sec(onset_sec), raised)


def percussive(recording: Played, seed: int = 0) -> Played:
    """Let every tone die away within a tenth of a second, behind a stroke of noise, as on a woodblock."""
    rate_hz, n_samples = recording.sample_rate_hz, len(recording.samples)
    rng = np.random.default_rng(seed)
    onset_sec = np.unique(recording.onset_sec[np.isfinite(recording.onset_sec)])
    struck = np.unique(np.rint(onset_sec * rate_hz).astype(np.int64))
    struck = struck[(struck >= 0) & (struck < n_samples)]
    if not len(struck):
        return recording
    samples = np.arange(n_samples)
    last = struck[np.maximum(np.searchsorted(struck, samples, side="right") - 1, 0)]
    decay = np.where(samples >= last, np.exp(-(samples - last) / (_STROKE_SEC * rate_hz)), 0.0)
    noise = rng.normal(0.0, float(recording.samples.std()), n_samples)
    return replace(recording, samples=(decay * (recording.samples + noise)).astype(np.float32))


@contextmanager
def _heard(recording: Played, encoder: Encoder) -> Iterator[HeardRecording]:
    samples = AudioSamples(recording.samples, recording.sample_rate_hz)
    with HeardRecording(samples, encoder.bundle.audio.sample_rate_hz) as heard:
        yield heard


def look_for_pitch(
    piece: WholePiece, score: EncodedScore, recording: Played, encoder: Encoder
) -> RecordingPitch:
    """Only look for the pitch of a recording."""
    with _heard(recording, encoder) as heard:
        return find_pitch(piece.pages, score, heard, encoder)


def align_played(
    piece: WholePiece,
    score: EncodedScore,
    recording: Played,
    encoder: Encoder,
    semitones: float | None = None,
) -> PitchRun:
    """Look for the pitch of a recording, and align it with its score.

    Parameters
    ----------
    piece : WholePiece
    score : EncodedScore
        The pages of the piece.
    recording : Played
    encoder : Encoder
    semitones : float, optional
        As in `find_pitch`.

    Returns
    -------
    PitchRun
    """
    with _heard(recording, encoder) as heard:
        begin = time.process_time()
        pitch = find_pitch(piece.pages, score, heard, encoder, semitones)
        found = time.process_time()
        audio = encoder.encode_recording(heard, pitch=pitch.above_pages)
        scale, options = encoder.bundle.manifest.scale, decoding_options(encoder.bundle)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", AlignmentWarning)  # the errors will show it
            try:
                at_speed = audio_at_speed(audio, encoder.bundle.audio.frame_sec)
                alignment = align_encoded(piece.pages, score, at_speed, scale, options=options)
                alignment = result_at_own_speed(alignment, audio.grid)
            except InputError:  # nothing sounds like the score
                lost = np.full(len(piece.heads), np.inf)
                return PitchRun(pitch, lost, 0.0, found - begin, time.process_time() - found)
        end = time.process_time()
    errors = np.abs(_seconds(piece, alignment) - recording.onset_sec)
    errors = np.where(np.isnan(errors), np.inf, errors)
    return PitchRun(pitch, errors, alignment.reliability, found - begin, end - found)


def _seconds(piece: WholePiece, alignment: Alignment) -> Float64:
    """Return when the heads of a piece were found; NaN for those that were not."""
    heads = piece.heads
    if alignment.played is None:
        x, y = places_to_original(piece.pages.skews, heads["page"], heads["x"], heads["y"])
        return np.asarray(alignment.position_maps.position_to_seconds(heads["page"], x, y))
    seconds: dict[str, float] = {}
    for name in ("notated_id", "id"):
        seconds |= dict(
            zip(alignment.notes[name].tolist(), alignment.notes["onset_sec"].tolist(), strict=True)
        )
    return np.array([seconds.get(str(note), np.nan) for note in heads["id"]])
