"""Score time from an MEI tree: a `partitura.score.Score` with one part per staff.

partitura's own reader of MEI stops at many elements that Verovio draws (tremolos, groups of grace notes,
editorial marks), and it misreads double dots and ottavas. This one reads what Verovio writes when it converts
Humdrum kern or ABC, and MEI of any other origin. Parts, ids, repeats and endings are as `partitura.load_mei`
gives them.
"""

from __future__ import annotations

from fractions import Fraction
from math import lcm

from lxml import etree
from partitura import score as ps

from fusili_mir.errors import InputError
from fusili_mir.scores.mei_definitions import read_clef, read_key, read_meter
from fusili_mir.scores.mei_layers import XML_ID, LayerReader, MeiStaff, local_name, span_factors
from fusili_mir.scores.mei_readings import music_of

__all__ = ["read_mei_score"]

_MAX_DIVISIONS = 100_000  # partitura counts divisions in 32 bits
_FINE_DIVISIONS = 2**5 * 3**2 * 5**2 * 7  # for rhythms that would need more; off by 10 us at most


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
        score = next(music_of(root).iter("{*}score"), None)
        definition = None if score is None else next(score.iter("{*}scoreDef"), None)
        if score is None or definition is None:
            raise InputError("found no <score> with a <scoreDef> in <music>, expected one")
        self._staves = {
            element.get("n", str(number)): MeiStaff(element.get("n", str(number)), element)
            for number, element in enumerate(definition.iter("{*}staffDef"), start=1)
        }
        self._score = score
        self._time = Fraction(0)
        self._n_measures = 0
        self._repeats: list[tuple[Fraction, str]] = []
        self._endings: list[tuple[Fraction, Fraction, str]] = []
        self._define(definition)

    def score(self) -> ps.Score:
        for child in self._score:
            if local_name(child) in ("section", "ending"):
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
            name = local_name(child)
            if name == "measure":
                self._measure(child)
            elif name in ("section", "ending", "part"):
                self._section(child)
            elif name in ("scoreDef", "staffDef"):
                self._define(child)
        if local_name(section) == "ending":
            number = "".join(c for c in section.get("n", "1") if c.isdecimal() or c == ",")
            self._endings.append((start, self._time, number or "1"))

    def _define(self, definition: etree._Element) -> None:
        """Take over meter, key and clefs from a scoreDef or staffDef."""
        own = [definition] if local_name(definition) == "staffDef" else list(definition.iter("{*}staffDef"))
        everywhere = local_name(definition) == "scoreDef"
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
        factors = span_factors(measure)
        ends, lengths = [start], []
        for element in measure.iterchildren("{*}staff"):
            staff = self._staves.get(element.get("n", ""))
            if staff is None:
                continue
            for number, layer in enumerate(element.iterchildren("{*}layer"), start=1):
                reader = LayerReader(staff, int(layer.get("n", number)), start, factors)
                reader.read(layer)
                ends.append(reader.time)
                if reader.n_whole_measures:
                    meter = staff.meter or (4, 4)
                    lengths.append(reader.n_whole_measures * Fraction(4 * meter[0], meter[1]))
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

    def _tie(self) -> None:
        for tie in self._score.iter("{*}tie"):
            start, end = ((tie.get(name) or "").removeprefix("#") for name in ("startid", "endid"))
            for staff in self._staves.values():  # partitura knows no ties between parts
                first, second = staff.notes.get(start), staff.notes.get(end)
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


def _part(staff: MeiStaff, divisions: int) -> ps.Part:
    label = staff.definition.findtext("{*}label") or staff.definition.get("label") or ""
    name = staff.definition.get(XML_ID) or f"P{staff.number}"
    part = ps.Part(name, " ".join(label.split()), quarter_duration=divisions)
    for element, start, end in staff.events:
        part.add(element, round(start * divisions), None if end is None else round(end * divisions))
    return part
