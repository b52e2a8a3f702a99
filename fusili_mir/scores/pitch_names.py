"""The seven steps of written pitches, and the key signatures that alter them."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["STEP_SEMITONES", "Key"]

STEP_SEMITONES = {"C": 0, "D": 2, "E": 4, "F": 5, "G": 7, "A": 9, "B": 11}
"""Semitones of each step above C."""

_ORDER_OF_SHARPS = "FCGDAEB"


@dataclass(frozen=True)
class Key:
    """A key signature: its number of fifths, and the altered steps."""

    fifths: int = 0
    alters: tuple[tuple[str, float], ...] = ()

    @classmethod
    def of_fifths(cls, fifths: int) -> Key:
        """Return the standard signature with some number of sharps (positive) or flats (negative)."""
        steps = _ORDER_OF_SHARPS if fifths > 0 else _ORDER_OF_SHARPS[::-1]
        sign = 1.0 if fifths > 0 else -1.0
        counts = dict.fromkeys(_ORDER_OF_SHARPS, 0.0)
        for place in range(abs(fifths)):
            counts[steps[place % 7]] += sign
        return cls(fifths, tuple((step, alter) for step, alter in counts.items() if alter))

    def alter(self, step: str) -> float:
        """Return the semitones by which the signature alters a step."""
        return dict(self.alters).get(step, 0.0)
