"""Engraved pages whose bar lines, repeat signs and endings are known: the truth is read from Verovio's SVG."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from lxml import etree

from fusili_mir.arrays import Table
from fusili_mir.pages.engraving import Engraving
from fusili_mir.scores.score_file import ScoreFile

__all__ = [
    "TrueBarLine",
    "TrueEnding",
    "merged_bar_lines",
    "true_bar_lines",
    "true_endings",
    "with_random_repeats",
]

_SVG = "{http://www.w3.org/2000/svg}"
_THICK = 50  # drawing units; thin lines have 27
_STYLES = ("light-light", "light-heavy", "dashed", "dotted")


@dataclass(frozen=True)
class TrueBarLine:
    """A bar line: its system, the x of its middle on the page, and its kind; see `BAR_LINE_KINDS`."""

    page: int
    system: int
    x: float
    kind: str


@dataclass(frozen=True)
class TrueEnding:
    """A bracket above a system: its ends on the page, and its numbers."""

    page: int
    system: int
    x0: float
    x1: float
    numbers: tuple[int, ...]


def true_bar_lines(engraving: Engraving) -> list[TrueBarLine]:
    """Read all bar lines; what a measure begins and the one before ends with counts as one."""
    found = []
    for page, place, group in _drawn(engraving, "barLine"):
        strokes = {(x, float(path.get("stroke-width", 0))) for path, x in _uprights(group)}
        signs = [_translation(use) for use in group.iter(f"{_SVG}use")]
        points = [(float(e.get("cx", 0)), float(e.get("cy", 0))) for e in group.iter(f"{_SVG}ellipse")]
        xs = [x for x, _ in strokes] or [x for x, _ in points]
        ys = [_y_of(path) for path, _ in _uprights(group)] or [y for _, y in points]
        if not xs:
            continue
        dots = [x for x, _ in signs + points]
        system = place.system(min(ys))
        if system >= 0:
            x = place.x_px((min(xs) + max(xs)) / 2)
            found.append(TrueBarLine(page, system, x, _kind(strokes, dots, group)))
    return merged_bar_lines(found, engraving.systems)


def _kind(strokes: set[tuple[float, float]], dots: list[float], group: etree._Element) -> str:
    if not strokes:
        return "dotted"
    if any(path.get("stroke-dasharray") for path in group.iter(f"{_SVG}path")):
        return "dotted"
    left, right = min(x for x, _ in strokes), max(x for x, _ in strokes)
    before = any(dot < (left + right) / 2 for dot in dots)
    after = any(dot > (left + right) / 2 for dot in dots)
    if before or after:
        return "repeat-both" if before and after else "repeat-end" if before else "repeat-begin"
    thick = sum(width > _THICK for _, width in strokes)
    if len(strokes) == 1:
        return "single"
    return "final" if thick else "double"


def merged_bar_lines(lines: list[TrueBarLine], systems: Table) -> list[TrueBarLine]:
    """Merge what is drawn at one place: the end of a measure and the beginning of the next."""
    spaces = {int(row["system"]): float(row["space_px"]) for row in systems}
    merged: list[TrueBarLine] = []
    for line in sorted(lines, key=lambda line: (line.system, line.x)):
        last = merged[-1] if merged else None
        if last and last.system == line.system and line.x - last.x < 1.5 * spaces[line.system]:
            kinds = {last.kind, line.kind}
            both = kinds == {"repeat-end", "repeat-begin"}
            strongest = max((last, line), key=lambda each: each.kind not in ("single", "dotted"))
            kind = "repeat-both" if both else strongest.kind
            merged[-1] = replace(last, x=(last.x + line.x) / 2 if both else strongest.x, kind=kind)
        else:
            merged.append(line)
    return merged


def true_endings(engraving: Engraving) -> list[TrueEnding]:
    """Read all brackets; one that continues in the next system counts there, too, without a number."""
    found = []
    for page, place, group in _drawn(engraving, "voltaBracket"):
        levels = [_numbers(path) for path in group.iter(f"{_SVG}path")]
        flat = [row for row in levels if len(row) == 4 and row[1] == row[3]]
        if not flat:
            continue
        x0, y, x1, _ = flat[0]
        text = "".join(group.itertext())
        numbers = tuple(int(number) for number in re.findall(r"\d+", text))
        below = place.next_system(y)
        if below >= 0:
            found.append(TrueEnding(page, below, place.x_px(x0), place.x_px(x1), numbers))
    # Several groups of staves may each have a bracket.
    return list({(each.system, each.x0): each for each in reversed(found)}.values())[::-1]


@dataclass(frozen=True)
class _Place:
    """Where drawing units lie on a page, and the systems of the page."""

    dx: float
    dy: float
    scale: float
    systems: Table

    def x_px(self, x: float) -> float:
        return (x + self.dx) * self.scale

    def system(self, y: float) -> int:
        y_px = (y + self.dy) * self.scale
        inside = (self.systems["y0"] - 1 <= y_px) & (y_px <= self.systems["y1"] + 1)
        return int(self.systems["system"][inside][0]) if inside.any() else -1

    def next_system(self, y: float) -> int:
        below = self.systems["y1"] > (y + self.dy) * self.scale
        return int(self.systems["system"][below][0]) if below.any() else -1


def _drawn(engraving: Engraving, name: str) -> Iterator[tuple[int, _Place, etree._Element]]:
    for page, svg in enumerate(engraving.svgs):
        root = etree.fromstring(svg.encode(), etree.XMLParser(huge_tree=True))
        drawing = next(g for g in root.iter(f"{_SVG}g") if g.get("class") == "definition-scale")
        margin = next(g for g in root.iter(f"{_SVG}g") if g.get("class") == "page-margin")
        scale = float(drawing.get("transform", "scale(1)")[6:-1])
        systems = engraving.systems[engraving.systems["page"] == page]
        place = _Place(*_translation(margin), scale, systems)
        for group in root.iter(f"{_SVG}g"):
            if (group.get("class") or "").split(" ")[0] == name:
                yield page, place, group


def _translation(element: etree._Element) -> tuple[float, float]:
    found = re.match(r"translate\(([-\d.]+)[, ]+([-\d.]+)\)", element.get("transform", ""))
    return (float(found[1]), float(found[2])) if found else (0.0, 0.0)


def _numbers(path: etree._Element) -> list[float]:
    return [float(number) for number in re.findall(r"-?[\d.]+", path.get("d", ""))]


def _uprights(group: etree._Element) -> Iterator[tuple[etree._Element, float]]:
    for path in group.iter(f"{_SVG}path"):
        numbers = _numbers(path)
        if len(numbers) == 4 and numbers[0] == numbers[2]:
            yield path, numbers[0]


def _y_of(path: etree._Element) -> float:
    return (_numbers(path)[1] + _numbers(path)[3]) / 2


def with_random_repeats(score_file: ScoreFile, rng: np.random.Generator, share: float = 0.25) -> ScoreFile:
    """Return a copy of a MusicXML score with bar lines of all kinds, and endings, at random places.

    `share` is that of measures whose bar lines are changed.
    """
    root = copy.deepcopy(score_file.root)
    parts = root.findall("part")
    n_measures = min(len(part.findall("measure")) for part in parts)
    for part in parts:
        for measure in part.findall("measure"):
            for bar_line in measure.findall("barline"):
                measure.remove(bar_line)
    measure_at = 0
    while measure_at < n_measures - 1:
        draw = rng.uniform()
        if draw < share / 3 and measure_at + 6 < n_measures:
            measure_at = _add_endings(parts, measure_at, rng)
        elif draw < share:
            kind = rng.choice([*_STYLES, "repeat-end", "repeat-begin", "repeat-both"])
            _set_bar_line(parts, measure_at, str(kind))
        measure_at += 1
    return replace(score_file, root=root)


def _add_endings(parts: list[etree._Element], first: int, rng: np.random.Generator) -> int:
    """Add a first and a second ending; return the last measure of the second."""
    lengths = rng.integers(1, 4, size=2)
    names = ("1", "2") if rng.uniform() < 0.7 else (("1, 2", "3") if rng.uniform() < 0.5 else ("2", "3"))
    for name, length, is_last in zip(names, lengths, (False, True), strict=True):
        last = first + int(length) - 1
        for number, part in enumerate(parts):
            measures = part.findall("measure")
            begin = etree.Element("barline", location="left")
            end = etree.Element("barline", location="right")
            if not is_last:
                etree.SubElement(end, "bar-style").text = "light-heavy"
            if number == 0:
                etree.SubElement(
                    begin, "ending", number=name.replace(" ", ""), type="start"
                ).text = f"{name}."
                kind = "discontinue" if is_last and rng.uniform() < 0.5 else "stop"
                etree.SubElement(end, "ending", number=name.replace(" ", ""), type=kind)
            if not is_last:
                etree.SubElement(end, "repeat", direction="backward")
            measures[first].insert(0, begin)
            measures[last].append(end)
        first = last + 1
    return first - 1


def _set_bar_line(parts: list[etree._Element], measure: int, kind: str) -> None:
    for part in parts:
        measures = part.findall("measure")
        if kind in ("repeat-begin", "repeat-both"):
            begin = etree.Element("barline", location="left")
            etree.SubElement(begin, "bar-style").text = "heavy-light"
            etree.SubElement(begin, "repeat", direction="forward")
            measures[measure + 1].insert(0, begin)
        if kind != "repeat-begin":
            end = etree.Element("barline", location="right")
            etree.SubElement(end, "bar-style").text = "light-heavy" if kind.startswith("repeat") else kind
            if kind.startswith("repeat"):
                etree.SubElement(end, "repeat", direction="backward")
            measures[measure].append(end)
