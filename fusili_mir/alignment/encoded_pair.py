"""Pages and a recording, encoded: all that decoding needs, kept so that it can be done again."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from fusili_mir.alignment.playing_speed import audio_at_speed
from fusili_mir.alignment.provenance import Provenance
from fusili_mir.alignment.recording_pitch import RecordingPitch
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
    """A score and a recording before they are decoded; see `fusili_mir.alignment.aligning.encode_pair`.

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
