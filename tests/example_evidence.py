"""What the decoder is told about sounds of which nothing is heard."""

from __future__ import annotations

import math

import numpy as np

from fusili_mir.audio.onset_map import N_PITCHES, OnsetMap
from fusili_mir.audio.sound_envelope import FrameSound, SoundEnvelope
from fusili_mir.decoding.onset_evidence import OnsetEvidence, StopPitches
from fusili_mir.decoding.timing_law import TimingLaw

__all__ = ["all_sounding", "nothing_heard"]


def nothing_heard(n_stops: int, duration_sec: float) -> OnsetEvidence:
    """Evidence that says nothing about the beginnings of stops, so that frames count in full."""
    silence = np.zeros(2 * math.ceil(duration_sec / 0.02), np.float32)
    pitches = StopPitches(np.zeros((n_stops, N_PITCHES), np.float32), np.zeros(n_stops, np.float32))
    return OnsetEvidence(
        OnsetMap(np.zeros((len(silence), N_PITCHES), np.float16)),
        SoundEnvelope(silence, silence),
        pitches,
        TimingLaw(sound_weight=1.0),
    )


def all_sounding(n_frames: int) -> FrameSound:
    """Frames of which none is silent."""
    return FrameSound(np.zeros(n_frames, bool))
