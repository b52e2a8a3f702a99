"""Fingerings in a score, as editors of piano music add them: digits that say nothing about the sound.

They are written into the MusicXML, so that they are engraved like everything else and collide with nothing.
"""

from __future__ import annotations

import copy
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from lxml import etree

from fusili_mir.scores.written_notes import WrittenNote, read_written_notes

__all__ = ["FingeringStyle", "write_fingerings"]

_FINGERS = 5


@dataclass(frozen=True)
class FingeringStyle:
    """How an editor fingers.

    Attributes
    ----------
    share : float
        Share of the chords and single notes with digits, 0 to 1.
    run : float
        Average number of fingered chords in a row.
    all_heads : float
        Share of the fingered chords with a digit for every head; others have one, for the outer head.
    """

    share: float = 0.3
    run: float = 4.0
    all_heads: float = 0.5

    @classmethod
    def draw(cls, rng: np.random.Generator) -> FingeringStyle:
        """Draw a style, from a digit here and there to nearly every note."""
        return cls(*(float(rng.uniform(low, high)) for low, high in ((0.05, 0.7), (1.5, 8.0), (0.2, 1.0))))


def write_fingerings(
    score: etree._Element, style: FingeringStyle, rng: np.random.Generator
) -> etree._Element:
    """Add fingerings to the parts without words.

    Parameters
    ----------
    score : etree._Element
        Root of a ``<score-partwise>``. It is not changed.
    style : FingeringStyle
    rng : np.random.Generator

    Returns
    -------
    etree._Element
        A copy whose notes have the same ids. Where a note has fingerings already, these stay alone.
    """
    fingered = copy.deepcopy(score)
    for part in fingered.iterchildren("part"):
        if part.find(".//lyric") is None:
            notes = read_written_notes(part)
            lowest_staff = max((note.staff for note in notes), default=1)
            for staff in range(1, lowest_staff + 1):
                is_left = staff > 1 and staff == lowest_staff
                _finger([note for note in notes if note.staff == staff], is_left, style, rng)
    return fingered


def _finger(notes: list[WrittenNote], is_left: bool, style: FingeringStyle, rng: np.random.Generator) -> None:
    """Finger one hand: the right one above its staff, the left one below."""
    finger, last_pitch = int(rng.integers(1, _FINGERS + 1)), 60.0
    is_on = rng.uniform() < style.share
    for chord in _chords(notes):
        outer = chord[0] if is_left else chord[-1]
        finger = _next_finger(finger, outer.pitch - last_pitch, is_left)
        last_pitch = outer.pitch
        if is_on:
            whole = rng.uniform() < style.all_heads and len(chord) <= _FINGERS
            heads: Sequence[WrittenNote] = chord if whole else [outer]
            fingers = [finger]
            if len(heads) > 1:
                drawn = rng.choice(np.arange(1, _FINGERS + 1), size=len(heads), replace=False)
                fingers = sorted((int(digit) for digit in drawn), reverse=is_left)
                finger = fingers[0] if is_left else fingers[-1]
            for note, digit in zip(heads, fingers, strict=True):
                _write(note.element, digit, "below" if is_left else "above")
        if rng.uniform() < 1 / style.run:
            is_on = rng.uniform() < style.share


def _chords(notes: list[WrittenNote]) -> Iterator[list[WrittenNote]]:
    """Yield the heads that are struck together, from low to high; not those of grace, cue and hidden notes."""
    by_onset: defaultdict[Fraction, list[WrittenNote]] = defaultdict(list)
    for note in notes:
        is_small = note.element.find("grace") is not None or note.element.find("cue") is not None
        if not (is_small or note.tied_back or note.element.get("print-object") == "no"):
            by_onset[note.onset].append(note)
    for onset in sorted(by_onset):
        chord = sorted(by_onset[onset], key=lambda note: note.pitch)
        if all(note.element.find("notations/technical/fingering") is None for note in chord):
            yield chord


def _next_finger(finger: int, interval: float, is_left: bool) -> int:
    """Return the neighbouring finger in the direction of the melody; beyond the last, the thumb passes."""
    if not interval:
        return finger
    outwards = (interval > 0) != is_left
    if outwards:
        return finger + 1 if finger < _FINGERS else 1
    return finger - 1 if finger > 1 else 3


def _write(note: etree._Element, digit: int, placement: str) -> None:
    notations = note.find("notations")
    if notations is None:
        notations = etree.SubElement(note, "notations")
    technical = notations.find("technical")
    if technical is None:
        technical = etree.SubElement(notations, "technical")
    etree.SubElement(technical, "fingering", placement=placement).text = str(digit)
