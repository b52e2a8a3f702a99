"""Piano pieces made by rule, as MusicXML: the dense and fast textures that songs have few of.

Each staff plays figures (`fusili_training.figures`) that change every few measures, in note values from quarters
to thirty-seconds and in triplets and sextuplets, as fast as the figure is played at the written tempo: up to
sixteen notes a second. Staves have either clef, any key of some signs, and marks of dynamics and pedal.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from lxml import etree
from lxml.builder import E

from fusili_mir.scores.pitch_names import STEP_SEMITONES, Key
from fusili_training.figures import CHORDS, FIGURES, SCALES, Ground, Moment
from fusili_training.notation.spelling import Spelling, spell

__all__ = ["write_texture"]

_DIVISIONS = 24  # of a quarter
_BEAT = _DIVISIONS
_DYNAMICS = ("pp", "p", "mp", "mf", "f", "ff")
_ACCIDENTALS = {-2: "flat-flat", -1: "flat", 0: "natural", 1: "sharp", 2: "double-sharp"}


@dataclass(frozen=True)
class _Value:
    """A note value: its type, the number of its beams, and the tuplet it belongs to (3 in the time of 2)."""

    kind: str
    beams: int
    tuplet: tuple[int, int] | None = None


# Steps of a figure: the notes of one beat, in order of speed, and the value of one, two and four steps.
_QUARTER = _Value("quarter", 0)
_STEPS = {
    1: {1: _QUARTER},
    2: {1: _Value("eighth", 1), 2: _QUARTER},
    3: {1: _Value("eighth", 1, (3, 2)), 2: _Value("quarter", 0, (3, 2)), 3: _QUARTER},
    4: {1: _Value("16th", 2), 2: _Value("eighth", 1), 4: _QUARTER},
    6: {1: _Value("16th", 2, (6, 4)), 2: _Value("eighth", 1, (6, 4)), 6: _QUARTER},
    8: {1: _Value("32nd", 3), 2: _Value("16th", 2), 4: _Value("eighth", 1), 8: _QUARTER},
}


@dataclass(frozen=True)
class _Clef:
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


_TREBLE = _Clef("G", 2, 53, 98, (62, 86))
_BASS = _Clef("F", 4, 28, 67, (38, 58))


@dataclass(frozen=True)
class _Written:
    """Pitches that begin together, none for a rest, and their value."""

    pitches: tuple[int, ...]
    value: _Value
    duration: int  # divisions


def write_texture(
    n_measures: int, rng: np.random.Generator, most_signs: int = 5, octave_lines: float = 0.0
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

    Returns
    -------
    bytes
        A MusicXML file.
    """
    key = Key.of_fifths(int(rng.integers(-most_signs, most_signs + 1)))
    n_beats = int(rng.choice([2, 3, 4], p=[0.25, 0.25, 0.5]))
    beats_per_minute = float(rng.uniform(56, 152))
    clefs = (_TREBLE if rng.uniform() < 0.88 else _BASS, _BASS if rng.uniform() < 0.85 else _TREBLE)
    staves = [_staff(n_measures, n_beats, beats_per_minute, key, clef, rng) for clef in clefs]
    lines = [_octave_lines(n_measures, octave_lines, rng) if octave_lines else set() for _ in clefs]
    part = E.part(id="P1")
    for number in range(n_measures):
        measure = E.measure(number=str(number + 1))
        if number == 0:
            measure.append(_attributes(key, n_beats, clefs))
            sound = E.sound(tempo=f"{beats_per_minute:.0f}")
            measure.append(_direction(E.words("Allegro"), "above", sound))
        if rng.uniform() < 0.25:
            measure.append(_direction(E.dynamics(E(str(rng.choice(_DYNAMICS)))), "below"))
        if rng.uniform() < 0.1:
            measure.append(_direction(E.pedal(type="start"), "below"))
        for staff, measures in enumerate(staves, start=1):
            if staff > 1:
                measure.append(E.backup(E.duration(str(n_beats * _BEAT))))
            is_under, clef = number in lines[staff - 1], clefs[staff - 1]
            if is_under and number - 1 not in lines[staff - 1]:
                measure.append(_octave_line(clef.octave_line, clef, staff))
            measure.extend(_notes(measures[number], key, staff, clef.octave_semitones if is_under else 0))
            if is_under and number + 1 not in lines[staff - 1]:
                measure.append(_octave_line("stop", clef, staff))
        part.append(measure)
    part[-1].append(E.barline(E("bar-style", "light-heavy"), location="right"))
    names = E("part-list", E("score-part", E("part-name", "Piano"), id="P1"))
    score = E("score-partwise", names, part, version="4.0")
    return bytes(etree.tostring(score, xml_declaration=True, encoding="UTF-8"))


def _staff(
    n_measures: int,
    n_beats: int,
    beats_per_minute: float,
    key: Key,
    clef: _Clef,
    rng: np.random.Generator,
) -> list[list[list[_Written]]]:
    """Return the measures of a staff as lists of beats, each a list of what is written in it."""
    measures: list[list[list[_Written]]] = []
    while len(measures) < n_measures:
        figure, slowest_hz, quickest_hz = FIGURES[int(rng.integers(len(FIGURES)))]
        fitting = [n for n in _STEPS if slowest_hz <= n * beats_per_minute / 60 <= quickest_hz]
        n_steps = int(rng.choice(fitting or [1]))
        scale, chord = SCALES[int(rng.integers(len(SCALES)))], CHORDS[int(rng.integers(len(CHORDS)))]
        ground = Ground(7 * key.fifths % 12, scale, chord, int(rng.integers(*clef.middles)))
        moments = figure(ground, rng)
        for _ in range(int(rng.integers(1, 5))):
            measures.append([list(_beat(moments, n_steps, clef)) for _ in range(n_beats)])
    return measures[:n_measures]


def _beat(moments: Iterator[Moment], n_steps: int, clef: _Clef) -> Iterator[_Written]:
    """Write one beat of a figure; what would last longer ends with the beat."""
    left = n_steps
    while left:
        moment = next(moments)
        values = _STEPS[n_steps]
        steps = max(n for n in values if n <= min(max(round(moment.steps), 1), left))
        pitches = tuple(sorted({clef.fold(pitch) for pitch in moment.pitches}))
        yield _Written(pitches, values[steps], steps * _BEAT // n_steps)
        left -= steps


def _octave_lines(n_measures: int, probability: float, rng: np.random.Generator) -> set[int]:
    """Draw the measures of a staff that stand under octave lines, one to three for each line."""
    begins = np.flatnonzero(rng.uniform(size=n_measures) < probability)
    lengths = rng.integers(1, 4, size=len(begins))
    under = {begin + place for begin, length in zip(begins, lengths, strict=True) for place in range(length)}
    return {int(measure) for measure in under if measure < n_measures}


def _octave_line(kind: str, clef: _Clef, staff: int) -> etree._Element:
    line = E("octave-shift", type=kind, size="8", number=str(staff))
    return _direction(line, "above" if clef.sign == "G" else "below", staff=staff)


def _notes(
    beats: Sequence[Sequence[_Written]], key: Key, staff: int, semitones: int
) -> Iterator[etree._Element]:
    altered = _signature(key)
    for beat in beats:
        beams = _beams(beat)
        for written, places in zip(beat, beams, strict=True):
            for number, pitch in enumerate(written.pitches or (None,)):
                spelling = None if pitch is None else spell(pitch + semitones, key, rising=True)[0]
                yield _note(written, spelling, altered, staff, () if number else places, chord=number > 0)


def _note(
    written: _Written,
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


def _beams(beat: Sequence[_Written]) -> list[list[str]]:
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


def _attributes(key: Key, n_beats: int, clefs: Sequence[_Clef]) -> etree._Element:
    return E.attributes(
        E.divisions(str(_DIVISIONS)),
        E.key(E.fifths(str(key.fifths))),
        E.time(E.beats(str(n_beats)), E("beat-type", "4")),
        E.staves(str(len(clefs))),
        *(
            E.clef(E.sign(clef.sign), E.line(str(clef.line)), number=str(number))
            for number, clef in enumerate(clefs, start=1)
        ),
    )


def _direction(
    content: etree._Element, placement: str, sound: etree._Element | None = None, staff: int = 1
) -> etree._Element:
    direction = E.direction(E("direction-type", content), E.staff(str(staff)), placement=placement)
    if sound is not None:
        direction.append(sound)
    return direction
