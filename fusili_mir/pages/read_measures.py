"""The measures of page images and their repeat structure, from bar lines and the brackets of endings.

Measures are counted from 1, or from 0 if the first one is an upbeat; then the two parts of a measure that a
repeat sign divides share a number. What is not read: time signatures, segno and coda signs, and words such as
*da capo*.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fusili_mir.arrays import Bool, Table
from fusili_mir.boxes import MEASURE_DTYPE
from fusili_mir.scores.repeat_structure import Ending, RepeatStructure
from fusili_mir.short_repr import short_repr

__all__ = ["ReadMeasures", "read_measures"]

_CLEF_SPACES, _ACCIDENTAL_SPACES, _TIME_SPACES = 4.8, 1.0, 2.6  # widths of what may begin a system
_MOST_ACCIDENTALS = 7
_SIGN_SPACES = 1.5  # from there to the middle of a repeat sign
_CHANGE_SPACES = 6.0  # from a bar line to a repeat sign, with a new signature between
_TAIL_SPACES = 6.0  # a clef or signature after the last bar line of a system
_LEAST_SPACES = 2.5  # width of a measure
_UPBEAT = 0.38  # width of an upbeat without its clef, as a share of other measures
_REST, _UPBEAT_AGAIN = 0.95, 0.6  # widths of the parts of a measure that a repeat sign divides
_WHOLE = 1.35  # and of both
_ENDS = ("repeat-end", "repeat-both")
_BEGINS = ("repeat-begin", "repeat-both", "final")


@short_repr
@dataclass(frozen=True)
class ReadMeasures:
    """The measures of page images.

    Attributes
    ----------
    measures : np.ndarray of `MEASURE_DTYPE`
    repeats : RepeatStructure
    """

    measures: Table
    repeats: RepeatStructure


@dataclass
class _Signs:
    """The measures found so far, and the repeat signs between them."""

    boxes: list[tuple[Any, ...]] = field(default_factory=list)
    begins: set[int] = field(default_factory=set)
    ends: set[int] = field(default_factory=set)


def read_measures(systems: Table, bar_lines: Table, endings: Table, n_accidentals: int = 2) -> ReadMeasures:
    """Cut systems into measures.

    Parameters
    ----------
    systems : np.ndarray of `SYSTEM_DTYPE`
    bar_lines : np.ndarray of `BAR_LINE_DTYPE`
    endings : np.ndarray of `ENDING_DTYPE`
    n_accidentals : int
        Sharps or flats at the beginning of the first system: what follows them may be an upbeat.

    Returns
    -------
    ReadMeasures
    """
    signs = _Signs()
    head_spaces = _CLEF_SPACES + _ACCIDENTAL_SPACES * n_accidentals + _TIME_SPACES
    widest_spaces = _CLEF_SPACES + _ACCIDENTAL_SPACES * _MOST_ACCIDENTALS + _TIME_SPACES
    for number, system in enumerate(systems):
        lines = bar_lines[bar_lines["system"] == system["system"]]
        own_spaces = head_spaces if number == 0 else widest_spaces
        _add_system(signs, system, lines, own_spaces + _SIGN_SPACES)
    measures = np.array(signs.boxes, dtype=MEASURE_DTYPE)
    n_measures = len(measures)
    begins_with_upbeat = _begins_with_upbeat(measures, systems, head_spaces)
    is_rest = np.zeros(n_measures, dtype=bool)
    if begins_with_upbeat:
        is_rest = _divided(measures, signs, systems, head_spaces)
    number = np.arange(n_measures) - np.cumsum(is_rest) + (0 if begins_with_upbeat else 1)
    measures["number"] = number.astype(str)
    ends = sorted(signs.ends)
    chains = _chains(_spans(measures, endings, systems, signs.ends), signs.ends)
    repeats = RepeatStructure(
        n_measures,
        begins=tuple(sorted(begin for begin in signs.begins if begin < n_measures)),
        ends=tuple(ends),
        endings=tuple(ending for chain in chains for ending in chain),
    )
    return ReadMeasures(measures, repeats)


def _add_system(signs: _Signs, system: np.void, lines: Table, head_spaces: float) -> None:
    """Add the measures of one system: between its bar lines, and after the last one."""
    space_px, left = float(system["space_px"]), float(system["x0"])
    end = float(system["x1"]) - _TAIL_SPACES * space_px
    for number, line in enumerate(lines):
        width = (float(line["x"]) - left) / space_px
        within = head_spaces if number == 0 else _CHANGE_SPACES
        is_head = line["kind"] == "repeat-begin" and width < within
        if width >= _LEAST_SPACES and not is_head:
            signs.boxes.append(_box(system, len(signs.boxes), left, float(line["x"])))
        if line["kind"] in _ENDS and signs.boxes:
            signs.ends.add(len(signs.boxes) - 1)
        # What begins with the next system is marked there.
        if line["kind"] in _BEGINS and not (line["kind"] == "repeat-begin" and line["x"] > end):
            signs.begins.add(len(signs.boxes))
        left = float(line["x"])
    if left < end or not len(lines):
        signs.boxes.append(_box(system, len(signs.boxes), left, float(system["x1"])))


def _box(system: np.void, index: int, x0: float, x1: float) -> tuple[Any, ...]:
    return (index, "", system["page"], system["system"], x0, system["y0"], x1, system["y1"])


def _begins_with_upbeat(measures: Table, systems: Table, head_spaces: float) -> bool:
    """Return whether the first measure is much narrower than the others of its system."""
    first = measures[measures["system"] == measures["system"][0]] if len(measures) else measures
    if len(first) < 3:
        return False
    widths = (first["x1"] - first["x0"]) / float(systems["space_px"][0])
    return bool(widths[0] - head_spaces < _UPBEAT * np.median(widths[1:]))


def _divided(measures: Table, signs: _Signs, systems: Table, head_spaces: float) -> Bool:
    """Mark the second parts of measures that a repeat sign divides, where an upbeat comes again.

    The second part is much narrower than other measures of its system, and both together about as wide as one.
    """
    marked = np.zeros(len(measures), dtype=bool)
    width = measures["x1"] - measures["x0"]
    for system in systems:
        own = np.flatnonzero(measures["system"] == system["system"])
        if not len(own):
            continue
        first = int(own[0])
        if measures["x0"][first] == system["x0"]:
            width[first] -= head_spaces * system["space_px"]
        for second in own[own > 0].tolist():
            others = width[[n for n in own if n not in (first, second - 1, second)]]
            if not len(others) or not (second - 1 in signs.ends or second in signs.begins):
                continue
            whole = float(np.median(others))
            before, after = float(width[second - 1]), float(width[second])
            is_narrow = before < _REST * whole and after < _UPBEAT_AGAIN * whole
            marked[second] = is_narrow and before + after < _WHOLE * whole
    return marked


def _spans(measures: Table, endings: Table, systems: Table, ends: set[int]) -> list[Ending]:
    """Return the measures below brackets; one that continues in the next system is joined.

    Nothing continues beyond a repeat sign: a number that is the same was misread.
    """
    space_of = {int(system["system"]): float(system["space_px"]) for system in systems}
    middle = (measures["x0"] + measures["x1"]) / 2
    found: list[Ending] = []
    for bracket in endings:
        margin_px = space_of[int(bracket["system"])]
        here = measures["system"] == bracket["system"]
        below = np.flatnonzero(
            here & (middle > bracket["x0"] - margin_px) & (middle < bracket["x1"] + margin_px)
        )
        if not len(below):
            continue
        first, stop = int(below[0]), int(below[-1]) + 1
        numbers = tuple(int(number) for number in str(bracket["numbers"]).split(",") if number)
        last = found[-1] if found else None
        starts_system = first == int(np.flatnonzero(here)[0])
        if (
            last
            and starts_system
            and last.stop == first
            and last.stop - 1 not in ends
            and (not bracket["begins"] or numbers == last.numbers)
        ):
            found[-1] = Ending(last.first, stop, last.numbers)
        elif bracket["begins"]:
            found.append(Ending(first, stop, numbers))
    return found


def _chains(endings: list[Ending], ends: set[int]) -> list[list[Ending]]:
    """Group endings that follow each other, with numbers that increase from 1.

    A single ending without a repeat sign is none: something else was taken for a bracket.
    """
    chains: list[list[Ending]] = []
    for ending in endings:
        last = chains[-1][-1] if chains else None
        if last is None or ending.first > last.stop:
            chains.append([])
            last = None
        least = 1 if last is None else max(last.numbers) + 1
        first = max(ending.first, 0 if last is None else last.stop)
        numbers = tuple(n - min(ending.numbers) + least for n in ending.numbers) or (least,)
        if first < ending.stop:
            chains[-1].append(Ending(first, ending.stop, numbers))
    return [chain for chain in chains if len(chain) > 1 or (chain and chain[0].stop - 1 in ends)]
