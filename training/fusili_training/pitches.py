"""Which MIDI pitches the package deals with, the 88 keys of a piano, and the semitones of the seven steps."""

from __future__ import annotations

from fusili_mir.audio.onset_map import LOWEST_PITCH, N_PITCHES
from fusili_mir.scores.pitch_names import STEP_SEMITONES

__all__ = ["HIGHEST_PITCH", "LOWEST_PITCH", "N_PITCHES", "STEP_SEMITONES"]

HIGHEST_PITCH = LOWEST_PITCH + N_PITCHES - 1
