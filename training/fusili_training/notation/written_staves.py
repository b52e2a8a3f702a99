"""Staves of music made by rule, as elements of MusicXML.

A staff plays figures (`fusili_training.figures`) that change every few measures, in note values from quarters to
thirty-seconds and in triplets and sextuplets, as fast as the figure is played at the written tempo.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from lxml import etree
from lxml.builder import E

from fusili_mir.scores.pitch_names import STEP_SEMITONES, Key
from fusili_training.figures import CHORDS, FIGURES, SCALES, Figure, Ground, Moment
from fusili_training.notation.spelling import Spelling, spell

__all__ = [
    "BASS",
    "BEAT",
    "TREBLE",
    "Clef",
    "Written",
    "attributes",
    "direction",
    "note_elements",
    "write_staff",
]

DIVISIONS = 24  # of a quarter
BEAT = DIVISIONS
_ACCIDENTALS = {-2: "flat-flat", -1: "flat", 0: "natural", 1: "sharp", 2: "double-sharp"}


@dataclass(frozen=True)
class Value:
    """A note value: its type, the number of its beams, and the tuplet it belongs to (3 in the time of 2)."""

    kind: str
    beams: int
    tuplet: tuple[int, int] | None = None


# Steps of a figure: the notes of one beat, in order of speed, and the value of one, two and four steps.
_QUARTER = Value("quarter", 0)
_STEPS = {
    1: {1: _QUARTER},
    2: {1: Value("eighth", 1), 2: _QUARTER},
    3: {1: Value("eighth", 1, (3, 2)), 2: Value("quarter", 0, (3, 2)), 3: _QUARTER},
    4: {1: Value("16th", 2), 2: Value("eighth", 1), 4: _QUARTER},
    6: {1: Value("16th", 2, (6, 4)), 2: Value("eighth", 1, (6, 4)), 6: _QUARTER},
    8: {1: Value("32nd", 3), 2: Value("16th", 2), 4: Value("eighth", 1), 8: _QUARTER},
}


@dataclass(frozen=True)
class Clef:
    """A clef, the pitches that are written with it, and the middles around which figures move."""

    sign: str
    line: int
    lowest: int
    highest: int
    middles: tuple[int, int]

    @property
    def octave_line(self) -> str:
        """What MusicXML calls a line under which notes are written where they do not sound: "8va" is down."""
        return "down" if self.sign == "G" else "up"

    @property
    def octave_semitones(self) -> int:
        """How far notes under an octave line sound from where they are written."""
        return 12 if self.sign == "G" else -12

    def fold(self, pitch: int) -> int:
        """Return the pitch in the octave in which it is written with this clef."""
        while pitch < self.lowest:
            pitch += 12
        while pitch > self.highest:
            pitch -= 12
        return pitch


TREBLE = Clef("G", 2, 53, 98, (62, 86))
BASS = Clef("F", 4, 28, 67, (38, 58))


@dataclass(frozen=True)
class Written:
    """Pitches that begin together, none for a rest, and their value."""

    pitches: tuple[int, ...]
    value: Value
    duration: int  # divisions


def write_staff(
    n_measures: int,
    n_beats: int,
    beats_per_minute: float,
    key: Key,
    clef: Clef,
    rng: np.random.Generator,
    figures: Sequence[tuple[Figure, float, float]] = FIGURES,
) -> list[list[list[Written]]]:
    """Write a staff.

    Parameters
    ----------
    n_measures, n_beats : int
        Number of its measures, and of the quarters in each.
    beats_per_minute : float
    key : Key
    clef : Clef
    rng : np.random.Generator
    figures : sequence of (Figure, float, float)
        What it plays, each with its fewest and most notes a second.

    Returns
    -------
    list of list of list of Written
        The measures as lists of beats, each a list of what is written in it.
    """
    measures: list[list[list[Written]]] = []
    while len(measures) < n_measures:
        figure, slowest_hz, quickest_hz = figures[int(rng.integers(len(figures)))]
        fitting = [n for n in _STEPS if slowest_hz <= n * beats_per_minute / 60 <= quickest_hz]
        n_steps = int(rng.choice(fitting or [1]))
        scale, chord = SCALES[int(rng.integers(len(SCALES)))], CHORDS[int(rng.integers(len(CHORDS)))]
        ground = Ground(7 * key.fifths % 12, scale, chord, int(rng.integers(*clef.middles)))
        moments = figure(ground, rng)
        for _ in range(int(rng.integers(1, 5))):
            measures.append([list(_beat(moments, n_steps, clef)) for _ in range(n_beats)])
    return measures[:n_measures]


def _beat(moments: Iterator[Moment], n_steps: int, clef: Clef) -> Iterator[Written]:
    """Write one beat of a figure; what would last longer ends with the beat."""
    left = n_steps
    while left:
        moment = next(moments)
        values = _STEPS[n_steps]
        steps = max(n for n in values if n <= min(max(round(moment.steps), 1), left))
        pitches = tuple(sorted({clef.fold(pitch) for pitch in moment.pitches}))
        yield Written(pitches, values[steps], steps * BEAT // n_steps)
        left -= steps


def note_elements(
    beats: Sequence[Sequence[Written]], key: Key, staff: int, semitones: int = 0, cue: bool = False
) -> Iterator[etree._Element]:
    """Yield the notes of a measure.

    Parameters
    ----------
    beats : sequence of sequence of Written
    key : Key
    staff : int
        Counted from 1.
    semitones : int
        How far the notes sound from where they are written.
    cue : bool
        Whether they are small notes that another part plays.
    """
    altered = _signature(key)
    for beat in beats:
        beams = _beams(beat)
        for written, places in zip(beat, beams, strict=True):
            for number, pitch in enumerate(written.pitches or (None,)):
                spelling = None if pitch is None else spell(pitch + semitones, key, rising=True)[0]
                note = _note(written, spelling, altered, staff, () if number else places, chord=number > 0)
                if cue:
                    note.insert(0, E.cue())
                yield note


def _note(
    written: Written,
    spelling: Spelling | None,
    altered: dict[tuple[str, int], int],
    staff: int,
    beams: Sequence[str],
    chord: bool,
) -> etree._Element:
    """Return a note or rest; `altered` are the accidentals in force, and is brought up to date."""
    note = E.note()
    if chord:
        note.append(E.chord())
    if spelling is None:
        note.append(E.rest())
    else:
        pitch = E.pitch(E.step(spelling.step), E.alter(str(spelling.alter)), E.octave(str(spelling.octave)))
        note.append(pitch)
    note.extend([E.duration(str(written.duration)), E.voice(str(staff)), E.type(written.value.kind)])
    if spelling is not None:
        place = (spelling.step, spelling.octave)
        if altered.get(place, altered[spelling.step, -1]) != spelling.alter:
            note.append(E.accidental(_ACCIDENTALS[spelling.alter]))
            altered[place] = spelling.alter
    if written.value.tuplet is not None:
        actual, normal = written.value.tuplet
        numbers = E("actual-notes", str(actual)), E("normal-notes", str(normal))
        note.append(E("time-modification", *numbers))
    note.append(E.staff(str(staff)))
    note.extend([E.beam(kind, number=str(level)) for level, kind in enumerate(beams, start=1)])
    return note


def _signature(key: Key) -> dict[tuple[str, int], int]:
    """Return the alteration of each step by the key signature; -1 stands for every octave."""
    return {(step, -1): 0 for step in STEP_SEMITONES} | {(step, -1): int(alter) for step, alter in key.alters}


def _beams(beat: Sequence[Written]) -> list[list[str]]:
    """Return the beams of each note of a beat, the outermost first."""
    levels = [written.value.beams if written.pitches else 0 for written in beat]

    def joined(place: int, level: int) -> bool:
        return 0 <= place < len(levels) and levels[place] >= level

    beams: list[list[str]] = []
    for place, n_beams in enumerate(levels):
        own = []
        for level in range(1, n_beams + 1):
            before, after = joined(place - 1, level), joined(place + 1, level)
            if level == 1 and not (before or after):
                break  # alone: a flag
            hook = "backward hook" if joined(place - 1, 1) else "forward hook"
            own.append({(1, 1): "continue", (1, 0): "end", (0, 1): "begin"}.get((before, after), hook))
        beams.append(own)
    return beams


def attributes(key: Key, n_beats: int, clefs: Sequence[Clef]) -> etree._Element:
    """Return the key, the time and the clefs of a part, one clef for each of its staves."""
    return E.attributes(
        E.divisions(str(DIVISIONS)),
        E.key(E.fifths(str(key.fifths))),
        E.time(E.beats(str(n_beats)), E("beat-type", "4")),
        E.staves(str(len(clefs))),
        *(
            E.clef(E.sign(clef.sign), E.line(str(clef.line)), number=str(number))
            for number, clef in enumerate(clefs, start=1)
        ),
    )


def direction(
    content: etree._Element, placement: str, sound: etree._Element | None = None, staff: int = 1
) -> etree._Element:
    """Return a mark above or below a staff."""
    mark = E.direction(E("direction-type", content), E.staff(str(staff)), placement=placement)
    if sound is not None:
        mark.append(sound)
    return mark
