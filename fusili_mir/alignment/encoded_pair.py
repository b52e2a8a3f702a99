"""Pages and a recording, encoded: all that decoding needs, kept so that it can be done again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from fusili_mir.alignment.align_options import AlignOptions
from fusili_mir.alignment.anchored_stops import check_anchors
from fusili_mir.alignment.anchors import Anchor, anchors_at_speed
from fusili_mir.alignment.encoded_alignment import align_encoded
from fusili_mir.alignment.playing_speed import audio_at_speed, result_at_own_speed
from fusili_mir.alignment.provenance import Provenance, find_provenance
from fusili_mir.alignment.recording_pitch import RecordingPitch
from fusili_mir.alignment.results import Alignment
from fusili_mir.alignment.unfolding_choice import UnfoldChoice, Unfolding, choose_unfolding
from fusili_mir.audio.audio_samples import Recording
from fusili_mir.decoding.rough_search import DecodingOptions
from fusili_mir.model.bundle import Bundle
from fusili_mir.model.encoded import EncodedAudio, EncodedScore
from fusili_mir.pages.pages import Pages
from fusili_mir.scores.unfolding import Stretches
from fusili_mir.short_repr import short_repr

__all__ = ["EncodedPair"]


@short_repr
@dataclass(frozen=True)
class EncodedPair:
    """A score and a recording before they are decoded.

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
    decoding : DecodingOptions
    repeats : str or spans of measures
        How repeats are to be played on these pages.
    options : AlignOptions
    """

    pages: Pages
    recording: Recording
    score: EncodedScore
    audio: EncodedAudio
    bundle: Bundle
    pitch: RecordingPitch
    decoding: DecodingOptions
    repeats: UnfoldChoice | Stretches
    options: AlignOptions

    def align(self, anchors: Sequence[Anchor]) -> Alignment:
        """Decode with anchors."""
        grid = self.audio.grid
        check_anchors(anchors, grid)
        speed = self._audio_at_speed.grid.frame_sec / grid.frame_sec
        alignment = align_encoded(
            self.pages,
            self.score,
            self._audio_at_speed,
            self._scale,
            self.repeats,
            self.options.cuts,
            options=self.decoding,
            anchors=anchors_at_speed(anchors, grid.audio_start_sec, speed),
            unfolding=self._unfolding,
        )
        options = replace(self.options, anchors=tuple(anchors))
        origin = self._origin
        return replace(
            result_at_own_speed(alignment, grid),
            anchors=options.anchors,
            made_with=replace(origin, options={**options.to_json(), **origin.options}),
            pitch=self.pitch,
            recording=self.recording,
            align=self.align,
        )

    @property
    def _scale(self) -> float:
        return self.bundle.manifest.scale

    @cached_property
    def _audio_at_speed(self) -> EncodedAudio:
        """The recording at the speed at which it was read."""
        return audio_at_speed(self.audio, self.bundle.audio.frame_sec)

    @cached_property
    def _origin(self) -> Provenance:
        return find_provenance(self.pages, self.recording, self.bundle)

    @cached_property
    def _unfolding(self) -> Unfolding | None:
        """The repeats of a symbolic score as they are played; anchors do not change that."""
        if self.pages.score is None:
            return None
        return choose_unfolding(
            self.pages,
            self.score,
            self._audio_at_speed,
            self._scale,
            self.repeats,
            self.decoding,
            self.options.cuts,
        )
