"""Score time from an MEI tree: a `partitura.score.Score` with one part per staff.

partitura's own reader of MEI stops at many elements that Verovio draws (tremolos, groups of grace notes,
editorial marks), and it takes double dots and ottavas wrongly. This one reads what Verovio writes when it converts Humdrum
kern or ABC, and MEI of any other origin. Parts, ids, repeats and endings are as `partitura.load_mei` gives them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from math import lcm
from typing import Any

from lxml import etree
from partitura import score as ps

from fusili_mir.errors import InputError
from fusili_mir.scores.mei_definitions import read_clef, read_key, read_meter

__all__ = ["read_mei_score"]

_XML_ID = "{http://www.w3.org/XML/1998/namespace}id"
_QUARTERS = {"maxima": Fraction(32), "long": Fraction(16), "breve": Fraction(8)} | {
    str(2**power): Fraction(4, 2**power) for power in range(12)
}
_TYPES = {
    "maxima": "maxima",
    "long": "long",
    "breve": "breve",
    "1": "whole",
    "2": "half",
    "4": "quarter",
    "8": "eighth",
    "16": "16th",
    "32": "32nd",
    "64": "64th",
    "128": "128th",
    "256": "256th",
}
_ALTERS = {
    "s": 1,
    "f": -1,
    "ss": 2,
    "x": 2,
    "ff": -2,
    "n": 0,
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
_MAX_DIVISIONS = 100_000  # partitura counts divisions in 32 bits
_FINE_DIVISIONS = 2**5 * 3**2 * 5**2 * 7  # for rhythms that would need more; off by 10 us at most


@dataclass
class _Staff:
    """One staff: what happens on it, in quarters from the beginning of the score."""

    number: str
    definition: etree._Element
    events: list[tuple[Any, Fraction, Fraction | None]] = field(default_factory=list)  # element, start, end
    meter: tuple[int, int] | None = None
    open_ties: dict[tuple[str, int], Any] = field(default_factory=dict)

    def add(self, element: Any, start: Fraction, end: Fraction | None = None) -> None:
        self.events.append((element, start, end))


def read_mei_score(root: etree._Element) -> ps.Score:
    """Read the notes, measures and repeats of an MEI tree.

    Parameters
    ----------
    root : lxml element
        The tree, without alternative readings; see `fusili_mir.scores.mei_readings`.

    Returns
    -------
    partitura.score.Score
        One part per staff, in the order of the staves. Notes have their ``xml:id``, or None.
    """
    return _Reader(root).score()


class _Reader:
    def __init__(self, root: etree._Element) -> None:
        score = next(root.iter("{*}score"), None)
        definition = next(root.iter("{*}scoreDef"), None)
        if score is None or definition is None:
            raise InputError("found no <score> with a <scoreDef> in <music>, expected one")
        self._staves = {
            element.get("n", str(number)): _Staff(element.get("n", str(number)), element)
            for number, element in enumerate(definition.iter("{*}staffDef"), start=1)
        }
        self._score = score
        self._time = Fraction(0)
        self._n_measures = 0
        self._repeats: list[tuple[Fraction, str]] = []
        self._endings: list[tuple[Fraction, Fraction, str]] = []
        self._notes: dict[str, ps.Note] = {}
        self._define(definition)

    def score(self) -> ps.Score:
        for child in self._score:
            if _name(child) in ("section", "ending"):
                self._section(child)
        self._tie()
        self._repeat()
        divisions = self._divisions()
        return ps.Score([_part(staff, divisions) for staff in self._staves.values()])

    def _divisions(self) -> int:
        """Return into how many parts a quarter is divided."""
        divisions = 1
        for staff in self._staves.values():
            for _, start, end in staff.events:
                divisions = lcm(divisions, start.denominator, 1 if end is None else end.denominator)
                if divisions > _MAX_DIVISIONS:
                    return _FINE_DIVISIONS
        return divisions

    def _section(self, section: etree._Element) -> None:
        start = self._time
        for child in section:
            name = _name(child)
            if name == "measure":
                self._measure(child)
            elif name in ("section", "ending", "part"):
                self._section(child)
            elif name in ("scoreDef", "staffDef"):
                self._define(child)
        if _name(section) == "ending":
            number = "".join(c for c in section.get("n", "1") if c.isdecimal() or c == ",")
            self._endings.append((start, self._time, number or "1"))

    def _define(self, definition: etree._Element) -> None:
        """Take over meter, key and clefs from a scoreDef or staffDef."""
        own = [definition] if _name(definition) == "staffDef" else list(definition.iter("{*}staffDef"))
        everywhere = _name(definition) == "scoreDef"
        for staff in self._staves.values():
            sources = [e for e in own if e.get("n") == staff.number or e is staff.definition]
            sources += [definition] if everywhere else []
            for read in (read_meter, read_key, read_clef):
                found = next(filter(None, (read(source, staff.number) for source in sources)), None)
                if isinstance(found, ps.TimeSignature):
                    staff.meter = (found.beats, found.beat_type)
                if found is not None:
                    staff.add(found, self._time)

    def _measure(self, measure: etree._Element) -> None:
        self._n_measures += 1
        start = self._time
        factors = _span_factors(measure)
        ends, lengths = [start], []
        for element in measure.iterchildren("{*}staff"):
            staff = self._staves.get(element.get("n", ""))
            if staff is None:
                continue
            for number, layer in enumerate(element.iterchildren("{*}layer"), start=1):
                walk = _LayerWalk(self, staff, int(layer.get("n", number)), start, factors)
                walk.walk(layer)
                ends.append(walk.time)
                if walk.n_whole_measures:
                    meter = staff.meter or (4, 4)
                    lengths.append(walk.n_whole_measures * Fraction(4 * meter[0], meter[1]))
        end = max(ends)
        if end == start and lengths:
            end = start + max(lengths)
        for side, time in (("left", start), ("right", end)):
            sign = measure.get(side, "")
            if sign in ("rptend", "rptboth"):
                self._repeats.append((time, "stop"))
            if sign in ("rptstart", "rptboth"):
                self._repeats.append((time, "start"))
        for staff in self._staves.values():
            staff.add(ps.Measure(number=self._n_measures, name=measure.get("n")), start, end)
            for direction in measure.iterchildren("{*}dir", "{*}repeatMark"):
                kind = (direction.get("type") or direction.get("func") or "").lower()
                if kind == "fine":
                    staff.add(ps.Fine(), end)
                elif kind == "dacapo":
                    staff.add(ps.DaCapo(), end)
        self._time = end

    def keep(self, note: ps.Note) -> None:
        """Remember a note, for the ties that refer to it."""
        if note.id is not None:
            self._notes.setdefault(note.id, note)

    def _tie(self) -> None:
        for tie in self._score.iter("{*}tie"):
            first, second = (
                self._notes.get((tie.get(end) or "").removeprefix("#")) for end in ("startid", "endid")
            )
            if first is not None and second is not None and first is not second:
                first.tie_next, second.tie_prev = second, first

    def _repeat(self) -> None:
        ending_ends = {end for _, end, number in self._endings if not number.startswith("1")}
        opened: Fraction | None = None
        last_start = last_stop = Fraction(0)
        for time, kind in self._repeats:
            if kind == "start":
                opened = time
                continue
            again = time in ending_ends and opened is None
            start = opened if opened is not None else (last_start if again else last_stop)
            opened, last_start, last_stop = None, start, time
            if start < time:
                for staff in self._staves.values():
                    staff.add(ps.Repeat(), start, time)
        for start, end, number in self._endings:
            for staff in self._staves.values():
                staff.add(ps.Ending(number), start, end)


class _LayerWalk:
    """Goes through one layer of a measure; `time` is where the next element begins."""

    def __init__(
        self, reader: _Reader, staff: _Staff, voice: int, start: Fraction, factors: dict[Any, Fraction]
    ) -> None:
        self._reader, self._staff, self._voice, self._factors = reader, staff, voice, factors
        self._graces: list[ps.GraceNote] = []
        self.time = start
        self.n_whole_measures = 0

    def walk(self, parent: etree._Element, factor: Fraction = Fraction(1), grace: str = "") -> None:
        for element in parent:
            name = _name(element)
            if name in ("note", "chord"):
                self._notes(element, factor, grace)
            elif name in ("rest", "space"):
                self._silence(element, factor)
            elif name in _WHOLE_MEASURE:
                self.n_whole_measures = max(1, int(element.get("num", 1)) if name == "multiRest" else 1)
            elif name == "tuplet":
                self.walk(element, factor * _ratio(element), grace)
            elif name == "fTrem":  # two notes that share the time of one
                self.walk(element, factor / 2, grace)
            elif name == "graceGrp":
                self.walk(element, factor, element.get("grace", "unknown"))
            elif name == "clef":
                clef = read_clef(element, self._staff.number)
                if clef is not None:
                    self._staff.add(clef, self.time)
            elif name in ("beam", "bTrem", "ligature", "beamSpan"):
                self.walk(element, factor, grace)

    def _silence(self, element: etree._Element, factor: Fraction) -> None:
        length = self._length(element, factor)
        if _name(element) == "rest" and not element.get("grace"):
            rest = ps.Rest(
                id=element.get(_XML_ID),
                voice=self._voice,
                staff=_staff_number(element, self._staff.number),
                symbolic_duration=_symbolic(element, factor),
            )
            self._staff.add(rest, self.time, self.time + length)
        self.time += length if not element.get("grace") else 0

    def _notes(self, element: etree._Element, factor: Fraction, grace: str) -> None:
        """Add a note, or the notes of a chord."""
        heads = list(element.iterchildren("{*}note")) if _name(element) == "chord" else [element]
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
                "id": head.get(_XML_ID),
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
            self._reader.keep(note)
            self._tie_by_attribute(note, head.get("tie") or element.get("tie") or "")
        self.time += length

    def _length(self, element: etree._Element, factor: Fraction, spanned: Any = None) -> Fraction:
        quarters = _QUARTERS.get(element.get("dur.ges") or element.get("dur") or "4")
        if quarters is None:
            raise InputError(f"found the duration {element.get('dur')!r}, expected modern notation")
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


def _part(staff: _Staff, divisions: int) -> ps.Part:
    label = staff.definition.findtext("{*}label") or staff.definition.get("label") or ""
    name = staff.definition.get(_XML_ID) or f"P{staff.number}"
    part = ps.Part(name, " ".join(label.split()), quarter_duration=divisions)
    for element, start, end in staff.events:
        part.add(element, round(start * divisions), None if end is None else round(end * divisions))
    return part


def _name(element: Any) -> str:
    return etree.QName(element).localname if isinstance(element.tag, str) else ""


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


def _span_factors(measure: etree._Element) -> dict[Any, Fraction]:
    """Return the ratios of tuplets that are written as spans, by element."""
    factors: dict[Any, Fraction] = {}
    spans = list(measure.iterchildren("{*}tupletSpan"))
    if not spans:
        return factors
    for layer in measure.iter("{*}layer"):
        elements = list(_timed(layer))
        place = {
            f"#{own.get(_XML_ID)}": index
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
        if _name(element) in _TIMED:
            yield element
        elif isinstance(element.tag, str):
            yield from _timed(element)
