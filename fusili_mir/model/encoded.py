"""Encoded scores and recordings: embeddings, and the place or the time of each."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from fusili_mir.arrays import Bool, Float32
from fusili_mir.audio.onset_map import N_PITCHES, OnsetMap
from fusili_mir.audio.sound_envelope import FrameSound, SoundEnvelope
from fusili_mir.errors import InputError
from fusili_mir.geometry import FrameGrid
from fusili_mir.pages.score_axis import ScoreAxis
from fusili_mir.short_repr import short_repr

__all__ = ["EncodedAudio", "EncodedScore"]


@short_repr
@dataclass(frozen=True)
class EncodedScore:
    """The patches of a score, column by column along the score axis.

    Attributes
    ----------
    axis : ScoreAxis
        The C columns.
    embeddings : np.ndarray [shape=(C, R, d)], float32
        Unit vectors of the R patches of each column from top to bottom; 0 where `mask` is false.
    mask : np.ndarray [shape=(C, R)], bool
        False for patches that show nothing of the system.
    segment_embeddings : np.ndarray [shape=(n_segments, d)], float32, optional
        Global embeddings of the segments that the score was cut into, in reading order.
    pitches : np.ndarray [shape=(C, 88)], float32, optional
        Probability that a note of each pitch of a piano is printed in each column; those of a symbolic score are
        known.
    """

    axis: ScoreAxis
    embeddings: Float32
    mask: Bool
    segment_embeddings: Float32 | None = None
    pitches: Float32 | None = None

    def __post_init__(self) -> None:
        shape = self.embeddings.shape
        if len(shape) != 3 or shape[0] != len(self.axis) or self.mask.shape != shape[:2]:
            raise InputError(
                f"embeddings of shape {shape} and a mask of shape {self.mask.shape} for {len(self.axis)}"
                " columns; expected (columns, patches, d) and (columns, patches)"
            )
        if self.pitches is not None and self.pitches.shape != (len(self.axis), N_PITCHES):
            raise InputError(
                f"pitches of shape {self.pitches.shape} for {len(self.axis)} columns; "
                f"expected (columns, {N_PITCHES})"
            )


@short_repr
@dataclass(frozen=True)
class EncodedAudio:
    """The frames of a recording.

    Attributes
    ----------
    frames : np.ndarray [shape=(M, d)], float32
        Unit vectors of the frames; 0 where a whole clip is silent.
    grid : FrameGrid
        Times of the frames.
    clip_embeddings : np.ndarray [shape=(n_clips, d)], float32
        Global embeddings of the clips that the recording was cut into, in order.
    onsets : OnsetMap
        Onset activations of the same recording.
    envelope : SoundEnvelope
        Envelope of the same recording.
    """

    frames: Float32
    grid: FrameGrid
    clip_embeddings: Float32
    onsets: OnsetMap
    envelope: SoundEnvelope

    def __post_init__(self) -> None:
        if self.frames.ndim != 2 or len(self.frames) != len(self.grid):
            raise InputError(
                f"frames of shape {self.frames.shape} for a grid of {len(self.grid)}; expected (frames, d)"
            )

    @cached_property
    def sound(self) -> FrameSound:
        """What the envelope says about the frames."""
        return self.envelope.of_frames(self.grid)
