"""Clips: the pieces of a recording that go through the audio encoder at once.

Neighbouring clips overlap. A frame near a cut lacks part of its context, so each clip contributes only the frames
whose whole context lies in it (or reaches the start or end of the recording). Together they are the frames of one
long pass.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from fusili_mir.arrays import Float32
from fusili_mir.errors import InputError
from fusili_mir.model.manifest import AudioSpec

__all__ = ["Clip", "ClipLayout", "cut_clips"]

_ANY_LENGTH_SEC = 20.0
_CONTEXTS = 16  # a clip of any length is at least so many contexts long, so a seventh is encoded twice


@dataclass(frozen=True)
class ClipLayout:
    """How a recording is cut into clips.

    Attributes
    ----------
    frame_samples : int
        Samples from one frame to the next.
    clip_frames : int
        Length of a clip, in frames.
    context_frames : int
        Frames at each cut that are left to the neighbouring clip.
    pad_last : bool
        Whether the last clip is padded with zeros to the length of the others.
    """

    frame_samples: int
    clip_frames: int
    context_frames: int
    pad_last: bool

    def __post_init__(self) -> None:
        if self.frame_samples < 1 or self.context_frames < 0 or self.clip_frames <= 2 * self.context_frames:
            raise InputError(
                f"clips of {self.clip_frames} frames with a context of {self.context_frames} on each side; "
                "expected frames left between the contexts"
            )

    @classmethod
    def of(cls, spec: AudioSpec) -> ClipLayout:
        """Return the layout for a bundle."""
        if spec.clip_frames is not None:
            return cls(spec.frame_samples, spec.clip_frames, spec.context_frames, pad_last=True)
        clip_frames = max(round(_ANY_LENGTH_SEC / spec.frame_sec), _CONTEXTS * spec.context_frames, 1)
        return cls(spec.frame_samples, clip_frames, spec.context_frames, pad_last=False)

    def apart(self) -> ClipLayout:
        """Return the same clips without overlap: side by side, each with all its frames."""
        return replace(self, context_frames=0)


@dataclass(frozen=True)
class Clip:
    """A piece of a recording.

    Attributes
    ----------
    samples : np.ndarray [shape=(n,)], float32
        Samples of a whole number of frames; zeros after the end of the recording.
    keep_from, keep_to : int
        Range of the frames to keep, ``keep_from <= frame < keep_to``. Those of all clips, concatenated, are the
        frames of the recording.
    """

    samples: Float32
    keep_from: int
    keep_to: int


def cut_clips(blocks: Iterable[Float32], layout: ClipLayout) -> Iterator[Clip]:
    """Cut a stream of samples into clips; at most one clip and one block are held at any time.

    Parameters
    ----------
    blocks : iterable of np.ndarray [shape=(n,)], float32
        Samples of a recording, block by block.
    layout : ClipLayout

    Yields
    ------
    Clip
        The last frame of the recording is included even if it is incomplete.

    Examples
    --------
    >>> layout = ClipLayout(frame_samples=2, clip_frames=4, context_frames=1, pad_last=False)
    >>> clips = cut_clips([np.zeros(12, np.float32)], layout)  # six frames
    >>> [(len(clip.samples), clip.keep_from, clip.keep_to) for clip in clips]
    [(8, 0, 3), (8, 1, 4)]
    """
    clip_samples = layout.clip_frames * layout.frame_samples
    step_samples = clip_samples - 2 * layout.context_frames * layout.frame_samples
    held = np.empty(0, np.float32)
    keep_from = 0
    for block in blocks:
        held = np.concatenate([held, block])
        while len(held) > clip_samples:  # more follows: this clip is not the last
            yield Clip(held[:clip_samples], keep_from, layout.clip_frames - layout.context_frames)
            held = held[step_samples:]
            keep_from = layout.context_frames
    if len(held):
        n_frames = -(-len(held) // layout.frame_samples)
        n_padded = layout.clip_frames if layout.pad_last else n_frames
        padding = np.zeros(n_padded * layout.frame_samples - len(held), np.float32)
        yield Clip(np.concatenate([held, padding]), keep_from, n_frames)
