"""Pages and a recording, encoded: all that decoding needs, kept so that it can be done again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from fusili_mir.alignment.encoded_pages import EncodedPages, encode_pages_once
from fusili_mir.alignment.fitted_decoding import decoding_options
from fusili_mir.alignment.pitch_options import check_pitch
from fusili_mir.alignment.pitch_shift import find_pitch
from fusili_mir.alignment.playing_speed import audio_at_speed
from fusili_mir.alignment.provenance import Provenance, find_provenance
from fusili_mir.alignment.recording_pitch import RecordingPitch
from fusili_mir.alignment.requested_repeats import requested_repeats
from fusili_mir.alignment.swapped_files import refuse_swapped
from fusili_mir.alignment.unfolding_choice import UnfoldChoice, Unfolding, choose_unfolding
from fusili_mir.audio.audio_samples import Recording
from fusili_mir.audio.heard_recording import HeardRecording
from fusili_mir.audio.recording import RecordingLike, open_recording
from fusili_mir.decoding.rough_search import DecodingOptions
from fusili_mir.errors import InputError
from fusili_mir.freed_memory import give_back_memory
from fusili_mir.model.bundle import Bundle
from fusili_mir.model.encoded import EncodedAudio, EncodedScore
from fusili_mir.model.encoder import Encoder
from fusili_mir.model.opened_encoder import as_encoder
from fusili_mir.pages.pages import Pages, open_pages
from fusili_mir.progress import stage
from fusili_mir.scores.playing_order import PlayingOrder, read_playing_order
from fusili_mir.scores.unfolding import Stretches
from fusili_mir.short_repr import short_repr

__all__ = ["EncodedPair", "encode_pair"]


@short_repr
@dataclass(frozen=True)
class EncodedPair:
    """A score and a recording before they are decoded; see `encode_pair`.

    Attributes
    ----------
    pages : Pages
    recording : Recording
        The opened recording.
    score, audio : EncodedScore, EncodedAudio
    bundle : Bundle
        Model that encoded them.
    pitch : RecordingPitch
        Pitch at which the recording was read.
    options : DecodingOptions
    unfold : str or stretches of measures
        How repeats are to be played.
    jumps : bool
        Whether the music is expected to go on at measures that no repeat sign leads to.
    made_with : Provenance
    """

    pages: Pages
    recording: Recording
    score: EncodedScore
    audio: EncodedAudio
    bundle: Bundle
    pitch: RecordingPitch
    options: DecodingOptions
    unfold: UnfoldChoice | Stretches
    jumps: bool
    made_with: Provenance

    @property
    def scale(self) -> float:
        """The bundle's scale of cosines."""
        return self.bundle.manifest.scale

    @cached_property
    def audio_at_speed(self) -> EncodedAudio:
        """The recording at the speed at which it was read."""
        return audio_at_speed(self.audio, self.bundle.audio.frame_sec)

    @property
    def speed(self) -> float:
        """Seconds of `audio_at_speed` in a second of the recording."""
        return self.audio_at_speed.grid.frame_sec / self.audio.grid.frame_sec

    @cached_property
    def unfolding(self) -> Unfolding | None:
        """The repeats of a symbolic score as they are played; anchors do not change that."""
        if self.pages.score is None:
            return None
        return choose_unfolding(
            self.pages, self.score, self.audio_at_speed, self.scale, self.unfold, self.options, self.jumps
        )


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
    pages : EncodedPages, or what `align_recording` takes
        Pages from `encode_pages_once` are not encoded again; neither `model` nor `cache` is needed for them.
    recording, model, unfold, jumps, cache, progress, start_sec, end_sec, transpose, tuning, repeats
        See `align_recording`.

    Returns
    -------
    EncodedPair
    """
    refuse_swapped(pages, recording)
    encoder = _encoder_of(pages, model)
    if isinstance(recording, HeardRecording):
        opened = recording.recording
    else:
        recording = opened = open_recording(recording, start_sec, end_sec)
    check_pitch(transpose, tuning)
    opened_pages = pages.pages if isinstance(pages, EncodedPages) else open_pages(pages, progress=progress)
    requested = requested_repeats(opened_pages, unfold, jumps, repeats)
    with _heard(recording, encoder, progress) as heard:  # before the score: it may turn out to be silent
        if not isinstance(pages, EncodedPages):
            pages = encode_pages_once(opened_pages, encoder, cache, progress)
        with stage("comparing pitches", shown=progress):
            pitch = find_pitch(pages.pages, pages.score, heard, encoder, transpose, tuning)
        audio = encoder.encode_recording(heard, progress, pitch.above_pages)
    give_back_memory()  # decoding needs large arrays
    made_with = find_provenance(
        pages.pages,
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
        pages.pages,
        opened,
        pages.score,
        audio,
        encoder.bundle,
        pitch,
        options,
        requested,
        jumps,
        made_with,
    )


def _encoder_of(pages: Any, model: str | Path | Bundle | Encoder | None) -> Encoder:
    """Return what encodes the recording: what has encoded the pages, if something has."""
    if not isinstance(pages, EncodedPages):
        return as_encoder(model)
    if model is not None and model is not pages.encoder:
        raise InputError(
            f"{pages.pages.filename}: the pages are encoded already; leave out the model, "
            "theirs encodes the recording"
        )
    return pages.encoder


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
