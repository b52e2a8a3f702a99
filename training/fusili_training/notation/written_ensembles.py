"""Scores for up to twelve instruments made by rule, as MusicXML: more staves than songs and quartets have.

Winds, strings, or both play lines of up to eight notes a second, with rests of some measures, in which small
notes may show what another instrument plays (cues, which do not sound).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from lxml import etree
from lxml.builder import E

from fusili_mir.errors import InputError
from fusili_mir.scores.pitch_names import Key
from fusili_training.figures import FIGURES, VOICES
from fusili_training.notation.written_staves import (
    BEAT,
    Clef,
    Written,
    attributes,
    direction,
    note_elements,
    write_staff,
)

__all__ = ["MOST_PARTS", "write_ensemble"]

_QUICKEST_HZ = 8.0
_LINES = tuple((figure, slow, min(quick, _QUICKEST_HZ)) for figure, slow, quick in (*VOICES, FIGURES[5]))
_RESTING, _CUED = 0.3, 0.2


@dataclass(frozen=True)
class _Instrument:
    name: str
    clef: Clef


_INSTRUMENTS = (
    _Instrument("Flute", Clef("G", 2, 60, 93, (68, 84))),
    _Instrument("Oboe", Clef("G", 2, 58, 88, (66, 80))),
    _Instrument("Clarinet in C", Clef("G", 2, 53, 88, (60, 78))),
    _Instrument("Bassoon", Clef("F", 4, 35, 69, (43, 60))),
    _Instrument("Horn in C", Clef("G", 2, 48, 76, (55, 70))),
    _Instrument("Trumpet in C", Clef("G", 2, 55, 82, (62, 76))),
    _Instrument("Violin I", Clef("G", 2, 55, 95, (65, 84))),
    _Instrument("Violin II", Clef("G", 2, 55, 90, (62, 79))),
    _Instrument("Viola", Clef("C", 3, 48, 81, (55, 70))),
    _Instrument("Cello I", Clef("F", 4, 36, 69, (43, 60))),
    _Instrument("Cello II", Clef("F", 4, 36, 64, (40, 55))),
    _Instrument("Bass", Clef("F", 4, 36, 60, (38, 50))),
)
MOST_PARTS = len(_INSTRUMENTS)


def write_ensemble(n_measures: int, n_parts: int, rng: np.random.Generator, most_signs: int = 5) -> bytes:
    """Write a piece for instruments of one staff each.

    Parameters
    ----------
    n_measures : int
    n_parts : int
        At most `MOST_PARTS`; which instruments they are is drawn.
    rng : np.random.Generator
    most_signs : int
        Largest number of sharps or flats of the key.

    Returns
    -------
    bytes
        A MusicXML file. No measure is a rest for all.
    """
    if not 1 <= n_parts <= MOST_PARTS or n_measures < 1:
        raise InputError(
            f"an ensemble of {n_parts} parts and {n_measures} measures; expected 1 to {MOST_PARTS} parts, and"
            " at least one measure"
        )
    key = Key.of_fifths(int(rng.integers(-most_signs, most_signs + 1)))
    n_beats = int(rng.choice([2, 3, 4], p=[0.2, 0.3, 0.5]))
    beats_per_minute = float(rng.uniform(56, 132))
    players = [_INSTRUMENTS[place] for place in np.sort(rng.permutation(MOST_PARTS)[:n_parts])]
    lines = [
        write_staff(n_measures, n_beats, beats_per_minute, key, player.clef, rng, _LINES)
        for player in players
    ]
    rests = rng.uniform(size=(n_parts, n_measures)) < _RESTING
    rests[:, 1:] |= rests[:, :-1] & (rng.uniform(size=(n_parts, n_measures - 1)) < 0.5)  # some go on
    rests[rng.integers(n_parts, size=n_measures), np.arange(n_measures)] = False
    score = E("score-partwise", E("part-list"), version="4.0")
    for part, player in enumerate(players):
        score[0].append(E("score-part", E("part-name", player.name), id=f"P{part + 1}"))
        written = E.part(id=f"P{part + 1}")
        for number in range(n_measures):
            measure = E.measure(number=str(number + 1))
            if number == 0:
                measure.append(attributes(key, n_beats, [player.clef]))
                if part == 0:
                    sound = E.sound(tempo=f"{beats_per_minute:.0f}")
                    measure.append(direction(E.words("Moderato"), "above", sound))
            if not rests[part, number]:
                measure.extend(note_elements(lines[part][number], key, staff=1))
            elif rng.uniform() < _CUED:
                sounding = rng.choice(np.flatnonzero(~rests[:, number]))
                cue = _in_range(lines[sounding][number], player.clef)
                measure.extend(note_elements(cue, key, staff=1, cue=True))
            else:
                measure.append(
                    E.note(E.rest(measure="yes"), E.duration(str(n_beats * BEAT)), E.voice("1"), E.staff("1"))
                )
            written.append(measure)
        written[-1].append(E.barline(E("bar-style", "light-heavy"), location="right"))
        score.append(written)
    return bytes(etree.tostring(score, xml_declaration=True, encoding="UTF-8"))


def _in_range(beats: list[list[Written]], clef: Clef) -> list[list[Written]]:
    """Return what another part plays, in the octave of this one."""
    return [
        [
            Written(tuple(sorted({clef.fold(p) for p in note.pitches})), note.value, note.duration)
            for note in beat
        ]
        for beat in beats
    ]
