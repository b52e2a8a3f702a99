"""The pitched notes of a MusicXML part as written: place, pitch, key, and ties."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from lxml import etree

from fusili_mir.errors import InputError
from fusili_mir.scores.pitch_names import STEP_SEMITONES, Key

__all__ = ["WrittenNote", "read_written_notes", "tie_chains"]


@dataclass(frozen=True, eq=False)
class WrittenNote:
    """One note head with a pitch."""

    element: etree._Element
    measure: int  # from 0, within the part
    onset: Fraction  # quarters from the start of the part
    end: Fraction  # the onset itself for a grace note
    staff: int  # from 1
    voice: str
    step: str
    alter: float
    octave: int
    transposition: int  # semitones from written to sounding
    key: Key
    tied_back: bool
    tied_on: bool

    @property
    def pitch(self) -> float:
        """The written MIDI pitch; fractional for quarter tones."""
        return 12 * (self.octave + 1) + STEP_SEMITONES[self.step] + self.alter


def read_written_notes(part: etree._Element) -> list[WrittenNote]:
    """Read the pitched notes of a ``<part>``, in document order."""
    return list(_walk(part))


def tie_chains(notes: list[WrittenNote]) -> list[list[WrittenNote]]:
    """Group the heads of a part into sounding notes; most groups have one head.

    Heads with a tie to no head, or to more than one, are left out.
    """
    arriving = defaultdict(list)  # (pitch, onset) -> heads tied back
    leaving = defaultdict(list)  # (pitch, end) -> heads tied on
    for note in notes:
        if note.tied_back:
            arriving[note.pitch, note.onset].append(note)
        if note.tied_on:
            leaving[note.pitch, note.end].append(note)
    unclear = {
        place
        for place in arriving.keys() | leaving.keys()
        if len(arriving.get(place, ())) != 1 or len(leaving.get(place, ())) != 1
    }
    chains = []
    for first in notes:
        if first.tied_back:
            continue
        chain = [first]
        while chain[-1].tied_on:
            place = (chain[-1].pitch, chain[-1].end)
            # A grace note may be tied to its main note, but never to itself.
            if place in unclear or arriving[place][0] in chain:
                chain = []
                break
            chain.append(arriving[place][0])
        if chain:
            chains.append(chain)
    return chains


def _walk(part: etree._Element) -> Iterator[WrittenNote]:
    divisions = Fraction(1)
    transposition = 0
    keys: dict[int, Key] = {}
    measure_start = Fraction(0)
    for index, measure in enumerate(part.iterchildren("measure")):
        now = furthest = onset = measure_start
        for child in measure.iterchildren("attributes", "note", "backup", "forward"):
            if child.tag == "attributes":
                divisions = _number(child, "divisions") or divisions
                transposition = _transposition(child, transposition)
                _read_keys(child, keys)
                continue
            length = (_number(child, "duration") or Fraction(0)) / divisions
            if child.tag == "backup":
                now = max(now - length, measure_start)
                continue
            if child.tag == "note":
                if child.find("chord") is None:
                    onset = now
                else:
                    now = onset
                if child.find("pitch") is not None:
                    yield _written(child, index, onset, onset + length, transposition, keys)
            now += length
            furthest = max(furthest, now)
        measure_start = furthest


def _written(
    element: etree._Element,
    measure: int,
    onset: Fraction,
    end: Fraction,
    transposition: int,
    keys: dict[int, Key],
) -> WrittenNote:
    staff = int(_number(element, "staff") or 1)
    step = (element.findtext("pitch/step") or "").strip()
    octave = _number(element, "pitch/octave")
    if step not in STEP_SEMITONES or octave is None:
        raise InputError(
            f"note {element.get('id')!r} has step {step!r} and octave {element.findtext('pitch/octave')!r}; "
            "expected a letter from A to G and a number"
        )
    ties = {tie.get("type") for tie in element.iterchildren("tie")}
    ties |= {tied.get("type") for tied in element.iterfind("notations/tied")}
    return WrittenNote(
        element=element,
        measure=measure,
        onset=onset,
        end=end,
        staff=staff,
        voice=element.findtext("voice") or "",
        step=step,
        alter=float(_number(element, "pitch/alter") or 0),
        octave=int(octave),
        transposition=transposition,
        key=keys.get(staff, keys.get(0, Key())),
        tied_back="stop" in ties,
        tied_on="start" in ties,
    )


def _number(element: etree._Element, path: str) -> Fraction | None:
    text = element.findtext(path)
    if text is None:
        return None
    try:
        return Fraction(text.strip())
    except (ValueError, ZeroDivisionError) as error:
        raise InputError(f"<{path}> of a <{element.tag!s}> is {text!r}; expected a number") from error


def _transposition(attributes: etree._Element, before: int) -> int:
    transpose = attributes.find("transpose")
    if transpose is None:
        return before
    octaves = _number(transpose, "octave-change") or 0
    return int((_number(transpose, "chromatic") or 0) + 12 * octaves)


def _read_keys(attributes: etree._Element, keys: dict[int, Key]) -> None:
    """Record the key signatures by staff, in place; staff 0 means all staves."""
    for element in attributes.iterchildren("key"):
        fifths = _number(element, "fifths")
        if fifths is not None:
            key = Key.of_fifths(int(fifths))
        else:
            steps = [(node.text or "").strip() for node in element.iterchildren("key-step")]
            alters = [
                float(Fraction((node.text or "0").strip())) for node in element.iterchildren("key-alter")
            ]
            key = Key(int(sum(alters)), tuple(zip(steps, alters, strict=False)))
        staff = int(element.get("number", "0"))
        if staff == 0:
            keys.clear()
        keys[staff] = key
