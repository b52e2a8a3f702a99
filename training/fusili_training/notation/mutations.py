"""Mutants of a score: MusicXML in which some notes are shifted by a few semitones.

A mutant is engraved and synthesised like any other score, so its image and its sound agree, and both differ from
the original in the listed notes only.

Rules
-----
- The heads of a tied note move together; they count once in the draw.
- A note never moves to a pitch that sounds in its part at the same time, nor to a staff position that is occupied
  at the same onset.
- The spelling follows the key signature, and the accidentals of every changed measure are rewritten.
- Unpitched notes, quarter tones, tablature and ties without an end stay unchanged.
"""

from __future__ import annotations

import copy
from collections import defaultdict
from dataclasses import dataclass, replace

import numpy as np
from lxml import etree

from fusili_mir.arrays import Float64
from fusili_mir.errors import InputError
from fusili_mir.scores.accidentals import renew_accidentals
from fusili_mir.scores.written_notes import WrittenNote, read_written_notes, tie_chains
from fusili_training.notation.spelling import Spelling, spell
from fusili_training.pitches import HIGHEST_PITCH, LOWEST_PITCH

__all__ = ["Mutation", "mutate"]

_GRACE_QUARTER = 1e-6  # length of a grace note when overlaps are looked for


@dataclass(frozen=True, eq=False)
class Mutation:
    """A mutant and how it differs from its original.

    Parameters
    ----------
    original : etree._Element
        The original score.
    mutant : etree._Element
        A changed copy whose notes have the same ids.
    shifts : dict
        Shift in semitones of each note head that moved, by its id; never 0.
    """

    original: etree._Element
    mutant: etree._Element
    shifts: dict[str, int]


def mutate(
    score: etree._Element, rng: np.random.Generator, probability: float = 0.15, largest_shift: int = 4
) -> Mutation:
    """Shift notes of a score by random numbers of semitones.

    Parameters
    ----------
    score : etree._Element
        Root of a ``<score-partwise>`` whose notes have unique ``id`` attributes. It is not changed.
    rng : np.random.Generator
    probability : float
        Probability that a sounding note moves. A note for which no shift is possible stays.
    largest_shift : int
        Shifts are drawn uniformly from -largest_shift..largest_shift without 0.

    Returns
    -------
    Mutation
    """
    if score.tag != "score-partwise":
        raise InputError(f"the root of the score is <{score.tag!s}>; expected <score-partwise>")
    if not 0 <= probability <= 1 or largest_shift < 1:
        raise InputError(
            f"probability {probability} and largest shift {largest_shift}; expected 0..1 and at least 1"
        )
    mutant = copy.deepcopy(score)
    shifts: dict[str, int] = {}
    for part in mutant.iterchildren("part"):
        notes = read_written_notes(part)
        if any(note.element.get("id") is None for note in notes):
            raise InputError("found a <note> without an id; expected an id for every note")
        moved = _Moves(notes)
        for chain in tie_chains(notes):
            drawn = rng.uniform() < probability
            offers = [shift for shift in range(-largest_shift, largest_shift + 1) if shift]
            order = rng.permutation(len(offers))
            if drawn and _movable(chain):
                moved.move(chain, [offers[place] for place in order])
        shifts.update(moved.write())
    return Mutation(score, mutant, shifts)


def _movable(chain: list[WrittenNote]) -> bool:
    return all(
        float(note.pitch).is_integer() and note.element.find("notations/technical/fret") is None
        for note in chain
    )


class _Moves:
    """The notes of one part while some of them are being moved."""

    def __init__(self, notes: list[WrittenNote]) -> None:
        self._notes = list(notes)
        self._row = {id(note.element): row for row, note in enumerate(notes)}
        self._onset: Float64 = np.array([float(note.onset) for note in notes])
        self._end = np.maximum([float(note.end) for note in notes], self._onset + _GRACE_QUARTER)
        self._pitch: Float64 = np.array([note.pitch for note in notes])
        self._positions: defaultdict[tuple[object, ...], list[tuple[str, int]]] = defaultdict(list)
        for note in notes:
            self._positions[note.staff, note.onset].append((note.step, note.octave))
        self._shifts: dict[str, int] = {}

    def move(self, chain: list[WrittenNote], shifts: list[int]) -> None:
        """Move a tie chain by the first shift that is possible, if any."""
        for shift in shifts:
            pitch = int(chain[0].pitch) + shift
            sounding = [pitch + note.transposition for note in chain]
            if min(sounding) < LOWEST_PITCH or max(sounding) > HIGHEST_PITCH or self._sounds(chain, pitch):
                continue
            for spelling in spell(pitch, chain[0].key, rising=shift > 0):
                if self._is_free(chain, spelling):
                    self._place(chain, spelling, shift)
                    return

    def _sounds(self, chain: list[WrittenNote], pitch: int) -> bool:
        """Return whether a pitch sounds in the part at the same time as the chain."""
        rows = [self._row[id(note.element)] for note in chain]
        begin, end = self._onset[rows[0]], self._end[rows[-1]]
        return bool(((self._pitch == pitch) & (self._onset < end) & (self._end > begin)).any())

    def _is_free(self, chain: list[WrittenNote], spelling: Spelling) -> bool:
        for note in chain:
            others = list(self._positions[note.staff, note.onset])
            others.remove((note.step, note.octave))
            if (spelling.step, spelling.octave) in others:
                return False
        return True

    def _place(self, chain: list[WrittenNote], spelling: Spelling, shift: int) -> None:
        for note in chain:
            row = self._row[id(note.element)]
            positions = self._positions[note.staff, note.onset]
            positions.remove((note.step, note.octave))
            positions.append((spelling.step, spelling.octave))
            self._pitch[row] = spelling.pitch
            self._notes[row] = replace(
                note, step=spelling.step, alter=float(spelling.alter), octave=spelling.octave
            )
            self._shifts[str(note.element.get("id"))] = shift

    def write(self) -> dict[str, int]:
        """Write the new pitches and accidentals into the elements; return the shifts by note id."""
        changed_measures = set()
        for note in self._notes:
            if note.element.get("id") in self._shifts:
                _write_pitch(note)
                changed_measures.add(note.measure)
        measures = defaultdict(list)
        for note in self._notes:
            measures[note.measure].append(note)
        for measure in changed_measures:
            renew_accidentals(measures[measure], self._shifts)
        return self._shifts


def _write_pitch(note: WrittenNote) -> None:
    pitch = note.element.find("pitch")
    assert pitch is not None  # noqa: S101 - written notes have a pitch
    for child in list(pitch):
        pitch.remove(child)
    etree.SubElement(pitch, "step").text = note.step
    if note.alter:
        etree.SubElement(pitch, "alter").text = str(int(note.alter))
    etree.SubElement(pitch, "octave").text = str(note.octave)
    # Layout hints for the old pitch
    for name in ("default-y", "relative-y"):
        note.element.attrib.pop(name, None)
