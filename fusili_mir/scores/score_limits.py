"""Numbers that no score has and that would cost gigabytes or minutes: refused before anything is made of them."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

import mido
from lxml import etree

from fusili_mir.errors import InputError
from fusili_mir.limits import check_limit, limit

if TYPE_CHECKING:  # partitura is slow to import
    from partitura.io.matchfile_base import MatchFile

__all__ = [
    "check_abc_numbers",
    "check_kern_numbers",
    "check_match_numbers",
    "check_midi_numbers",
    "check_score_numbers",
]

_LIMITED = {"staves": "staves", "staff-lines": "staff_lines", "divisions": "divisions"}  # MusicXML -> limit
_MOST = {  # of what has no limit of its own, as nobody needs more
    "multiple-rest": 10_000,
    "measure-repeat": 10_000,
    "actual-notes": 10_000,
    "normal-notes": 10_000,
    "tremolo": 64,
}
_LIMITED_IN_MEI = {"lines": "staff_lines", "ppq": "divisions"}
_MOST_IN_MEI = {
    "num": 10_000,  # measures of a rest, notes of a tuplet
    "numbase": 10_000,
    "dots": 16,
    "meter.count": 100_000,
    "meter.unit": 100_000,
    "dur.ppq": 1_000_000_000,
}
_HOLDERS = frozenset({"measure", "part", "layer"})
_NOTE_IN_ABC = re.compile(r"[A-Ga-g]")
_NO_MUSIC_IN_ABC = re.compile(r"%.*|^[A-Za-z]:.*|\"[^\"\n]*\"", re.MULTILINE)
_MOST_STAFF_NUMBER = 999
_FEW_NOTES = 40  # a short piece may rest for long
_LARGEST_BEAT = 256  # of a time signature, as a note value


def check_score_numbers(root: etree._Element, filename: str) -> None:
    """Refuse a score with more notes or measures than there are, or with numbers out of all proportion.

    Parameters
    ----------
    root : etree._Element
        MusicXML (partwise or timewise) or MEI.
    filename : str
        For the message.
    """
    counts: Counter[str] = Counter()
    divisions = 1.0
    n_here = 0  # notes of this measure, as far as they are in one part or layer
    for element in root.iter(etree.Element):
        name = etree.QName(element).localname
        counts[name] += 1
        if name in _HOLDERS:
            n_here = 0
        elif name == "note":
            n_here += 1
            check_limit("measure_notes", n_here, filename)
        if name in _LIMITED:
            check_limit(_LIMITED[name], abs(_number(element.text)), f"{filename}: <{name}>")
        elif name in _MOST:
            _check(filename, f"<{name}>", element.text, _MOST[name])
        if name == "divisions":
            divisions = max(_number(element.text), 1e-9)
        elif name == "duration" and _number(element.text) / divisions > limit("quarters"):
            raise InputError(
                f"{filename}: a <duration> of {_short(element.text)} at {divisions:g} divisions, expected at "
                f"most {limit('quarters'):g} quarter notes; is the file damaged?"
            )
        elif name == "staff" and not len(element):
            check_limit("staves", abs(_number(element.text)), f"{filename}: <staff>")
        for attribute, name_of_limit in _LIMITED_IN_MEI.items():
            if attribute in element.attrib:
                found = abs(_number(element.get(attribute)))
                check_limit(name_of_limit, found, f"{filename}: {name}/@{attribute}")
        for attribute, most in _MOST_IN_MEI.items():
            if attribute in element.attrib:
                _check(filename, f"{name}/@{attribute}", element.get(attribute), most)
        if name in ("staff", "staffDef", "layer"):
            _check(filename, f"{name}/@n", element.get("n"), _MOST_STAFF_NUMBER)
    check_limit("notes", counts["note"], filename)
    check_limit("measures", counts["measure"] / max(1, counts["part"]), filename)


def check_kern_numbers(text: str, filename: str) -> None:
    """Refuse a kern file with a measure, or a line, that Verovio would not end with."""
    n_here = 0
    for line in text.split("\n"):
        check_limit("spines", line.count("\t") + 1, filename)
        if line.startswith("="):
            n_here = 0
        elif line[:1] not in ("!", "*", "."):
            n_here += 1
            check_limit("measure_notes", n_here, filename)


def check_abc_numbers(text: str, filename: str) -> None:
    """Refuse an ABC file with a measure that Verovio would not end with."""
    for measure in _NO_MUSIC_IN_ABC.sub("", text).split("|"):
        check_limit("measure_notes", len(_NOTE_IN_ABC.findall(measure)), filename)


def check_match_numbers(match: MatchFile, filename: str) -> None:
    """Refuse a match file whose measures have no end, or that has too many notes or far too long ones."""
    check_limit("notes", len(match.snotes), filename)
    for note in match.snotes:
        check_limit("beats", max(abs(float(note.OnsetInBeats)), abs(float(note.OffsetInBeats))), filename)
        check_limit("measures", abs(float(note.Measure)), filename)
        check_limit("quarters", 4 * max(abs(float(note.Duration)), abs(float(note.Offset))), filename)
    for beat, measure, metre in match.time_signatures:
        check_limit("beats", abs(float(beat)), filename)
        check_limit("measures", abs(float(measure)), filename)
        _check_metre(metre.numerator, metre.denominator, filename)


def check_midi_numbers(midi: mido.MidiFile, filename: str) -> None:
    """Refuse a MIDI file whose measures have no end, or nearly nothing in them: each is written and engraved."""
    n_notes = sum(message.type == "note_on" for track in midi.tracks for message in track)
    for track in midi.tracks:
        beats = sum(message.time for message in track) / max(1, abs(midi.ticks_per_beat))
        check_limit("beats", beats, filename)
        check_limit("beats_a_note", beats / max(n_notes, _FEW_NOTES), filename)
        for message in track:
            if message.type == "time_signature":
                _check_metre(message.numerator, message.denominator, filename)


def _check_metre(beats: int, beat_type: int, filename: str) -> None:
    if beats < 1 or not 1 <= beat_type <= _LARGEST_BEAT:
        raise InputError(
            f"{filename}: a time signature of {_short(str(beats))}/{_short(str(beat_type))}; is the file damaged?"
        )


def _check(filename: str, where: str, text: str | None, most: float) -> None:
    if abs(_number(text)) > most:
        raise InputError(
            f"{filename}: {where} is {_short(text)}, expected at most {most:g}; is the file damaged?"
        )


def _number(text: str | None) -> float:
    """Return the number that a text is; 0 if it is none, which others complain of."""
    try:
        return float(text or 0)
    except ValueError:
        return 0.0


def _short(text: str | None) -> str:
    return (text or "").strip()[:20]
