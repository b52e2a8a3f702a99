"""Which MIDI pitches the package deals with, the 88 keys of a piano, and the semitones of the seven steps."""

from __future__ import annotations

from fusili_mir.audio.attack_map import LOWEST_PITCH, N_PITCHES

__all__ = ["HIGHEST_PITCH", "LOWEST_PITCH", "N_PITCHES", "STEP_SEMITONES"]

HIGHEST_PITCH = LOWEST_PITCH + N_PITCHES - 1

STEP_SEMITONES = {"C": 0, "D": 2, "E": 4, "F": 5, "G": 7, "A": 9, "B": 11}
"""Semitones of each step above C."""
