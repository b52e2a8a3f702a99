"""Piano pieces made by rule, as MusicXML: the dense and fast textures that songs have few of.

Each of two or three staves plays its own figures (`fusili_training.notation.written_staves`), up to sixteen notes
a second. Staves have either clef, any key of some signs, and marks of dynamics and pedal.
"""

from __future__ import annotations

import numpy as np
from lxml import etree
from lxml.builder import E

from fusili_mir.scores.pitch_names import Key
from fusili_training.notation.written_staves import (
    BASS,
    BEAT,
    TREBLE,
    Clef,
    attributes,
    direction,
    note_elements,
    write_staff,
)

__all__ = ["write_texture"]

_DYNAMICS = ("pp", "p", "mp", "mf", "f", "ff")


def write_texture(
    n_measures: int,
    rng: np.random.Generator,
    most_signs: int = 5,
    octave_lines: float = 0.0,
    third_staff: bool = False,
) -> bytes:
    """Write a piece for piano.

    Parameters
    ----------
    n_measures : int
    rng : np.random.Generator
    most_signs : int
        Largest number of sharps or flats of the key.
    octave_lines : float
        Probability that one begins in a measure of a staff: it sounds an octave higher, or lower in the bass.
    third_staff : bool
        Whether there is a staff between those of the two hands.

    Returns
    -------
    bytes
        A MusicXML file.
    """
    key = Key.of_fifths(int(rng.integers(-most_signs, most_signs + 1)))
    n_beats = int(rng.choice([2, 3, 4], p=[0.25, 0.25, 0.5]))
    beats_per_minute = float(rng.uniform(56, 152))
    clefs: tuple[Clef, ...]
    clefs = (TREBLE if rng.uniform() < 0.88 else BASS, BASS if rng.uniform() < 0.85 else TREBLE)
    if third_staff:
        clefs = (clefs[0], TREBLE if rng.uniform() < 0.5 else BASS, clefs[1])
    staves = [write_staff(n_measures, n_beats, beats_per_minute, key, clef, rng) for clef in clefs]
    lines = [_octave_lines(n_measures, octave_lines, rng) if octave_lines else set() for _ in clefs]
    part = E.part(id="P1")
    for number in range(n_measures):
        measure = E.measure(number=str(number + 1))
        if number == 0:
            measure.append(attributes(key, n_beats, clefs))
            sound = E.sound(tempo=f"{beats_per_minute:.0f}")
            measure.append(direction(E.words("Allegro"), "above", sound))
        if rng.uniform() < 0.25:
            measure.append(direction(E.dynamics(E(str(rng.choice(_DYNAMICS)))), "below"))
        if rng.uniform() < 0.1:
            measure.append(direction(E.pedal(type="start"), "below"))
        for staff, measures in enumerate(staves, start=1):
            if staff > 1:
                measure.append(E.backup(E.duration(str(n_beats * BEAT))))
            is_under, clef = number in lines[staff - 1], clefs[staff - 1]
            if is_under and number - 1 not in lines[staff - 1]:
                measure.append(_octave_line(clef.octave_line, clef, staff))
            measure.extend(
                note_elements(measures[number], key, staff, clef.octave_semitones if is_under else 0)
            )
            if is_under and number + 1 not in lines[staff - 1]:
                measure.append(_octave_line("stop", clef, staff))
        part.append(measure)
    part[-1].append(E.barline(E("bar-style", "light-heavy"), location="right"))
    names = E("part-list", E("score-part", E("part-name", "Piano"), id="P1"))
    score = E("score-partwise", names, part, version="4.0")
    return bytes(etree.tostring(score, xml_declaration=True, encoding="UTF-8"))


def _octave_lines(n_measures: int, probability: float, rng: np.random.Generator) -> set[int]:
    """Draw the measures of a staff that stand under octave lines, one to three for each line."""
    begins = np.flatnonzero(rng.uniform(size=n_measures) < probability)
    lengths = rng.integers(1, 4, size=len(begins))
    under = {begin + place for begin, length in zip(begins, lengths, strict=True) for place in range(length)}
    return {int(measure) for measure in under if measure < n_measures}


def _octave_line(kind: str, clef: Clef, staff: int) -> etree._Element:
    line = E("octave-shift", type=kind, size="8", number=str(staff))
    return direction(line, "above" if clef.sign == "G" else "below", staff=staff)
