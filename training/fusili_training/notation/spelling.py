"""Spelling a MIDI pitch in a key.

Pitches are placed on the line of fifths (... F = -1, C = 0, G = 1 ...; a sharp adds 7). The seven notes of a key
lie around its second degree; other notes are spelled as close to it as possible.
"""

from __future__ import annotations

from dataclasses import dataclass

from fusili_training.pitches import STEP_SEMITONES

__all__ = ["Key", "Spelling", "spell"]

_LINE_OF_FIFTHS = {"F": -1, "C": 0, "G": 1, "D": 2, "A": 3, "E": 4, "B": 5}
_ORDER_OF_SHARPS = "FCGDAEB"
_FARTHEST = 9  # on the line of fifths; more distant spellings are hardly readable


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


@dataclass(frozen=True)
class Spelling:
    """A written pitch."""

    step: str
    alter: int
    octave: int

    @property
    def pitch(self) -> int:
        """The MIDI pitch."""
        return 12 * (self.octave + 1) + STEP_SEMITONES[self.step] + self.alter


def spell(pitch: int, key: Key, rising: bool) -> list[Spelling]:
    """List the readable spellings of a pitch, the most natural in the key first.

    Parameters
    ----------
    pitch : int
        MIDI pitch.
    key : Key
    rising : bool
        Whether the sharper one of two equally close spellings comes first.

    Returns
    -------
    list of Spelling
        At least one.
    """
    centre = key.fifths + 2
    ranked = []
    for step, semitones in STEP_SEMITONES.items():
        alter = (pitch - semitones + 6) % 12 - 6
        place = _LINE_OF_FIFTHS[step] + 7 * alter
        distance = abs(place - centre)
        if abs(alter) <= 2 and distance <= _FARTHEST:
            octave = (pitch - alter - semitones) // 12 - 1
            ranked.append((distance, abs(alter), -place if rising else place, Spelling(step, alter, octave)))
    return [spelling for *_, spelling in sorted(ranked, key=lambda entry: entry[:3])]
