"""Which MIDI pitches the package deals with, the 88 keys of a piano, and the semitones of the seven steps."""

from __future__ import annotations

__all__ = ["HIGHEST_PITCH", "LOWEST_PITCH", "N_PITCHES", "STEP_SEMITONES"]

LOWEST_PITCH, HIGHEST_PITCH = 21, 108
N_PITCHES = HIGHEST_PITCH - LOWEST_PITCH + 1

STEP_SEMITONES = {"C": 0, "D": 2, "E": 4, "F": 5, "G": 7, "A": 9, "B": 11}
"""Semitones of each step above C."""
