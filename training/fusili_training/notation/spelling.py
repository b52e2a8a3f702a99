"""Spelling a MIDI pitch in a key.

Pitches are placed on the line of fifths (... F = -1, C = 0, G = 1 ...; a sharp adds 7). The seven notes of a key
lie around its second degree; other notes are spelled as close to it as possible.
"""

from __future__ import annotations

from dataclasses import dataclass

from fusili_mir.scores.pitch_names import STEP_SEMITONES, Key

__all__ = ["Spelling", "spell"]

_LINE_OF_FIFTHS = {"F": -1, "C": 0, "G": 1, "D": 2, "A": 3, "E": 4, "B": 5}
_FARTHEST = 9  # on the line of fifths; more distant spellings are hardly readable


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
