"""The layers of an MEI score: what begins when on one staff.

Durations are exact fractions of a quarter: dots, tuplets (also those written as spans), tremolos between two
notes, and gestural durations, which say how long a note lasts if that is not what is printed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from lxml import etree
from partitura import score as ps

from fusili_mir.errors import InputError
from fusili_mir.scores.mei_definitions import read_clef

__all__ = ["XML_ID", "LayerReader", "MeiStaff", "local_name", "span_factors"]

XML_ID = "{http://www.w3.org/XML/1998/namespace}id"

_QUARTERS = {"maxima": Fraction(32), "long": Fraction(16), "breve": Fraction(8)} | {
    str(2**power): Fraction(4, 2**power) for power in range(12)
}
_TYPES = (
    {"1": "whole", "2": "half", "4": "quarter", "8": "eighth", "32": "32nd"}
    | {name: name for name in ("maxima", "long", "breve")}
    | {number: f"{number}th" for number in ("16", "64", "128", "256")}
)
_ALTERS = {
    "s": 1,
    "f": -1,
    "n": 0,
    "ss": 2,
    "x": 2,
    "ff": -2,
    "ns": 1,
    "nf": -1,
    "xs": 3,
    "sx": 3,
    "ts": 3,
    "tf": -3,
}
_WHOLE_MEASURE = ("mRest", "mSpace", "multiRest", "mRpt", "mRpt2", "multiRpt")
_TIMED = ("note", "chord", "rest", "space")
_GRACE = {"unacc": "acciaccatura", "acc": "appoggiatura"}


@dataclass
class MeiStaff:
    """One staff: what happens on it, in quarters from the beginning of the score.

    Attributes
    ----------
    number : str
        Its ``n``.
    definition : lxml element
        The staffDef with which the score begins.
    meter : tuple of int, optional
        The time signature that is in force.
    events : list
        Elements of partitura's, with their start and end; the end is None for what has none.
    notes : dict from str to Note
        Notes by their ids.
    """

    number: str
    definition: etree._Element
    meter: tuple[int, int] | None = None
    events: list[tuple[Any, Fraction, Fraction | None]] = field(default_factory=list)
    notes: dict[str, ps.Note] = field(default_factory=dict)
    open_ties: dict[tuple[str, int], ps.Note] = field(default_factory=dict)

    def add(self, element: Any, start: Fraction, end: Fraction | None = None) -> None:
        """Add an element."""
        self.events.append((element, start, end))


class LayerReader:
    """Reads one layer of a measure.

    Parameters
    ----------
    staff : MeiStaff
        Staff to which notes are added.
    voice : int
        Number of the layer.
    start : Fraction
        Where the measure begins.
    factors : dict
        See `span_factors`.

    Attributes
    ----------
    time : Fraction
        Where the next element begins.
    n_whole_measures : int
        Number of measures for which the layer rests, if it does nothing else.
    """

    def __init__(self, staff: MeiStaff, voice: int, start: Fraction, factors: dict[Any, Fraction]) -> None:
        self._staff, self._voice, self._factors = staff, voice, factors
        self._graces: list[ps.GraceNote] = []
        self.time = start
        self.n_whole_measures = 0

    def read(self, parent: etree._Element, factor: Fraction = Fraction(1), grace: str = "") -> None:
        """Read the elements of a layer, or of a group in it."""
        for element in parent:
            name = local_name(element)
            if name in ("note", "chord"):
                self._notes(element, factor, grace)
            elif name in ("rest", "space"):
                self._silence(element, factor)
            elif name in _WHOLE_MEASURE:
                self.n_whole_measures = max(1, int(element.get("num", 1)) if name == "multiRest" else 1)
            elif name == "tuplet":
                self.read(element, factor * _ratio(element), grace)
            elif name == "fTrem":  # two notes that share the time of one
                self.read(element, factor / 2, grace)
            elif name == "graceGrp":
                self.read(element, factor, element.get("grace", "unknown"))
            elif name == "clef":
                clef = read_clef(element, self._staff.number)
                if clef is not None:
                    self._staff.add(clef, self.time)
            elif name in ("beam", "bTrem", "ligature", "beamSpan"):
                self.read(element, factor, grace)

    def _silence(self, element: etree._Element, factor: Fraction) -> None:
        if element.get("dur") is None and len(list(_timed(_layer_of(element)))) == 1:
            self.n_whole_measures = 1  # a rest without a length, alone in its measure
            return
        length = self._length(element, factor)
        if local_name(element) == "rest" and not element.get("grace"):
            rest = ps.Rest(
                id=element.get(XML_ID),
                voice=self._voice,
                staff=_staff_number(element, self._staff.number),
                symbolic_duration=_symbolic(element, factor),
            )
            self._staff.add(rest, self.time, self.time + length)
        self.time += length if not element.get("grace") else 0

    def _notes(self, element: etree._Element, factor: Fraction, grace: str) -> None:
        """Add a note, or the notes of a chord."""
        heads = list(element.iterchildren("{*}note")) if local_name(element) == "chord" else [element]
        timed = element if element.get("dur") or not heads else heads[0]
        grace = (
            element.get("grace") or grace or next((h.get("grace", "") for h in heads if h.get("grace")), "")
        )
        length = Fraction(0) if grace else self._length(timed, factor, element)
        own_staff = _staff_number(element, self._staff.number)
        for head in heads:
            if head.get("pname") is None:  # percussion and tablature
                continue
            common: dict[str, Any] = {
                "step": head.get("pname", "").upper(),
                "octave": int(head.get("oct.ges") or head.get("oct") or 4),
                "alter": _alter(head),
                "id": head.get(XML_ID),
                "voice": self._voice,
                "staff": _staff_number(head, str(own_staff)),
                "symbolic_duration": _symbolic(timed, factor * self._factors.get(element, 1)),
            }
            if grace:
                note = ps.GraceNote(grace_type=_GRACE.get(grace, "grace"), **common)
                if self._graces:
                    self._graces[-1].grace_next, note.grace_prev = note, self._graces[-1]
                self._graces.append(note)
            else:
                note = ps.Note(**common)
                if self._graces:
                    self._graces[-1].grace_next = note
                    self._graces = []
            self._staff.add(note, self.time, self.time + length)
            if note.id is not None:
                self._staff.notes.setdefault(note.id, note)
            self._tie_by_attribute(note, head.get("tie") or element.get("tie") or "")
        self.time += length

    def _length(self, element: etree._Element, factor: Fraction, spanned: Any = None) -> Fraction:
        written = element.get("dur") or "4"
        quarters = _QUARTERS.get(element.get("dur.ges") or written, _QUARTERS.get(written))
        if quarters is None:
            raise InputError(f"found the duration {written!r}, expected modern notation")
        dots = _dots(element) if element.get("dots.ges") is None else int(element.get("dots.ges", "0"))
        return (
            quarters
            * (2 - Fraction(1, 2**dots))
            * factor
            * self._factors.get(element if spanned is None else spanned, Fraction(1))
        )

    def _tie_by_attribute(self, note: ps.Note, tie: str) -> None:
        pitch = (note.step, note.octave)
        if any(kind in tie for kind in "mt"):
            first = self._staff.open_ties.pop(pitch, None)
            if first is not None:
                first.tie_next, note.tie_prev = note, first
        if any(kind in tie for kind in "im"):
            self._staff.open_ties[pitch] = note


def local_name(element: Any) -> str:
    """Return the name of an element without its namespace; nothing for comments."""
    return etree.QName(element).localname if isinstance(element.tag, str) else ""


def _layer_of(element: etree._Element) -> etree._Element:
    return next(element.iterancestors("{*}layer"))


def _ratio(tuplet: etree._Element) -> Fraction:
    return Fraction(int(tuplet.get("numbase", 2)), int(tuplet.get("num", 3)))


def _dots(element: etree._Element) -> int:
    return int(element.get("dots", 0)) or sum(1 for _ in element.iterchildren("{*}dot"))


def _staff_number(element: etree._Element, otherwise: str) -> int:
    number = element.get("staff", otherwise).split()[0]
    return int(number) if number.isdecimal() else 1


def _symbolic(element: etree._Element, factor: Fraction) -> dict[str, Any]:
    symbolic: dict[str, Any] = {
        "type": _TYPES.get(element.get("dur", "4"), "quarter"),
        "dots": _dots(element),
    }
    if factor != 1:
        symbolic |= {"actual_notes": factor.denominator, "normal_notes": factor.numerator}
    return symbolic


def _alter(note: etree._Element) -> int | None:
    for element in (note, *note.iterchildren("{*}accid")):
        for name in ("accid", "accid.ges"):
            if element.get(name, "") in _ALTERS:
                return _ALTERS[element.get(name, "")]
    return None


def span_factors(measure: etree._Element) -> dict[Any, Fraction]:
    """Return by which ratios tuplets that are written as spans shorten elements of a measure."""
    factors: dict[Any, Fraction] = {}
    spans = list(measure.iterchildren("{*}tupletSpan"))
    if not spans:
        return factors
    for layer in measure.iter("{*}layer"):
        elements = list(_timed(layer))
        place = {
            f"#{own.get(XML_ID)}": index
            for index, element in enumerate(elements)
            for own in (element, *element.iterchildren("{*}note"))
        }
        for span in spans:
            start, end = place.get(span.get("startid", "")), place.get(span.get("endid", ""))
            if start is not None and end is not None:
                for element in elements[start : end + 1]:
                    factors[element] = factors.get(element, Fraction(1)) * _ratio(span)
    return factors


def _timed(parent: etree._Element) -> Iterator[etree._Element]:
    for element in parent:
        if local_name(element) in _TIMED:
            yield element
        elif isinstance(element.tag, str):
            yield from _timed(element)
