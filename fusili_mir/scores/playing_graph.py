"""What may follow what when a score is played: every repeat taken or not, every jump made or not.

The sections of the graph are runs of measures, one for each time that they may be played, in the order in which
they are played if every repeat is taken. Edges lead forwards only, so a way of playing is the longest one with
some of its sections left out:

    |: A [1. B :| [2. C | D        sections  A  B  A  C  D
                                   edges     A-B, A-C;  B-A;  A-C;  C-D

A section is entered at its first measure and left after its last one.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, TypeAlias

from fusili_mir.errors import InputError
from fusili_mir.scores.repeat_structure import Ending, Jump, RepeatStructure

__all__ = ["Edge", "PlayingGraph", "Section", "graph_of_order", "playing_graph"]

EdgeKind: TypeAlias = Literal["on", "repeat", "past", "jump"]

# What players usually do, roughly; a recording of some seconds outweighs it by far.
_REPEATED = 0.65
_REPEATED_AFTER_JUMP = 0.1
_JUMPED = 0.95


@dataclass(frozen=True)
class Section:
    """Measures that are played in a row.

    Attributes
    ----------
    first, stop : int
        First measure, and the measure after the last one, counted from 0.
    after_jump : bool
        Whether a da capo or dal segno has led here.
    """

    first: int
    stop: int
    after_jump: bool = False


@dataclass(frozen=True)
class Edge:
    """What may follow a section.

    Attributes
    ----------
    source, target : int
        Indices of sections; the target comes after the source.
    probability : float
        Probability that the target follows the source, before anything is heard. With the probability that the
        music ends there, those of a source add up to 1.
    kind : "on", "repeat", "past" or "jump"
        Whether the music goes on as written, goes back to repeat, goes past a repeat or a jump, or jumps.
    """

    source: int
    target: int
    probability: float
    kind: EdgeKind = "on"


@dataclass(frozen=True)
class PlayingGraph:
    """The ways to play a score: from its first section to one with which the music may end.

    Attributes
    ----------
    sections : tuple of Section
    edges : tuple of Edge
        Sorted by source, then by target.
    ends : tuple of float
        Probability, for each section, that the music ends with it.
    """

    sections: tuple[Section, ...]
    edges: tuple[Edge, ...]
    ends: tuple[float, ...]

    @cached_property
    def n_ways(self) -> int:
        """Number of ways to play the score."""
        ways = [0] * len(self.sections)
        for source in reversed(range(len(self.sections))):
            onwards = sum(ways[edge.target] for edge in self.following(source))
            ways[source] = onwards + int(self.ends[source] > 0)
        return ways[0]

    def following(self, source: int) -> tuple[Edge, ...]:
        """Return the edges that leave a section."""
        return self._leaving[source]

    @cached_property
    def _leaving(self) -> tuple[tuple[Edge, ...], ...]:
        leaving: list[list[Edge]] = [[] for _ in self.sections]
        for edge in self.edges:
            leaving[edge.source].append(edge)
        return tuple(map(tuple, leaving))

    def ways(self) -> Iterator[tuple[int, ...]]:
        """Yield every way to play the score as indices of sections; there may be very many."""
        begun: list[tuple[int, ...]] = [(0,)]
        while begun:
            way = begun.pop()
            if self.ends[way[-1]] > 0:
                yield way
            begun += [(*way, edge.target) for edge in reversed(self.following(way[-1]))]

    def maximal_way(self) -> tuple[int, ...]:
        """Return the way that takes every repeat, but none again after a jump."""
        return self._preferred(("repeat", "on", "jump", "past"))

    def minimal_way(self) -> tuple[int, ...]:
        """Return the way that takes no repeat and, of several endings, the last one; jumps are made."""
        return self._preferred(("jump", "past", "on", "repeat"))

    def measures(self, way: Sequence[int]) -> tuple[int, ...]:
        """Return the measures of a way in playing order, counted from 0."""
        return tuple(
            itertools.chain.from_iterable(
                range(self.sections[section].first, self.sections[section].stop) for section in way
            )
        )

    def _preferred(self, order: tuple[EdgeKind, ...]) -> tuple[int, ...]:
        way = [0]
        while self.following(way[-1]):
            wanted = ("past", "on", "jump", "repeat") if self.sections[way[-1]].after_jump else order
            best = min(self.following(way[-1]), key=lambda edge: wanted.index(edge.kind))
            # To end where something may follow is to go past a repeat or a jump.
            if self.ends[way[-1]] > 0 and wanted.index("past") < wanted.index(best.kind):
                break
            way.append(best.target)
        return tuple(way)


def playing_graph(structure: RepeatStructure) -> PlayingGraph:
    """Return the ways to play a score.

    Parameters
    ----------
    structure : RepeatStructure
        A structure of at least one measure.

    Returns
    -------
    PlayingGraph

    Examples
    --------
    >>> graph = playing_graph(RepeatStructure(3, ends=(1,)))  # | 1  2 :| 3 |
    >>> [graph.measures(way) for way in graph.ways()]
    [(0, 1, 0, 1, 2), (0, 1, 2)]
    """
    if structure.n_measures < 1:
        raise InputError("a score without measures; expected at least one to play")
    return _Graph(structure).graph()


def graph_of_order(measures: Sequence[int]) -> PlayingGraph:
    """Return the graph of a single way to play a score, given by its measures in playing order.

    >>> graph_of_order([0, 1, 0, 1, 2]).sections
    (Section(first=0, stop=2, after_jump=False), Section(first=0, stop=3, after_jump=False))
    """
    if not len(measures):
        raise InputError("no measures to play; expected at least one")
    sections: list[Section] = []
    for measure in measures:
        if sections and sections[-1].stop == measure:
            sections[-1] = Section(sections[-1].first, measure + 1)
        else:
            sections.append(Section(int(measure), int(measure) + 1))
    edges = tuple(Edge(source, source + 1, 1.0) for source in range(len(sections) - 1))
    return PlayingGraph(tuple(sections), edges, (0.0,) * len(edges) + (1.0,))


@dataclass(frozen=True)
class _Passage:
    """Measures that are played once, or several times with different endings."""

    first: int
    stop: int
    times: int = 1
    endings: tuple[Ending, ...] = ()


@dataclass(frozen=True)
class _Exit:
    """A section that something is still to follow."""

    section: int
    probability: float
    kind: EdgeKind = "on"


class _Graph:
    """A playing graph that is being built from its first section to its last."""

    def __init__(self, structure: RepeatStructure) -> None:
        self._structure = structure
        self._sections: list[Section] = []
        self._edges: dict[tuple[int, int], Edge] = {}
        self._ends: dict[int, float] = {}
        self._after_jump = False

    def graph(self) -> PlayingGraph:
        n_measures = self._structure.n_measures
        first, exits = 0, list[_Exit]()
        for jump in sorted(self._structure.jumps, key=lambda jump: jump.after):
            if jump.after >= first:
                first, exits = self._play_jump(first, jump, exits)
        if first < n_measures:
            exits = self._play(first, n_measures, exits)
        self._end(exits)
        edges = tuple(self._edges[ends] for ends in sorted(self._edges))
        ends = tuple(self._ends.get(section, 0.0) for section in range(len(self._sections)))
        return PlayingGraph(tuple(self._sections), edges, ends)

    def _play_jump(self, first: int, jump: Jump, exits: list[_Exit]) -> tuple[int, list[_Exit]]:
        """Play up to a jump and what follows it; return the measure that is next, and the way there."""
        before = self._play(first, jump.after + 1, exits)
        jumping = [_Exit(e.section, e.probability * _JUMPED, "jump") for e in before]
        past = [_Exit(e.section, e.probability * (1 - _JUMPED), "past") for e in before]
        coda = next((measure for measure in self._structure.coda if measure > jump.after), None)
        to_coda = _between(self._structure.to_coda, jump)
        fine = _between(self._structure.fine, jump)
        self._after_jump = True
        if coda is not None and to_coda is not None:
            leaving = self._play(jump.to, to_coda + 1, jumping)
            if jump.after + 1 < coda:
                past = self._play(jump.after + 1, coda, past)
            following = coda, leaving + past
        elif fine is not None:
            self._end(self._play(jump.to, fine + 1, jumping))
            following = jump.after + 1, past
        else:
            following = jump.after + 1, self._play(jump.to, jump.after + 1, jumping) + past
        self._after_jump = False
        return following

    def _play(self, first: int, stop: int, exits: list[_Exit]) -> list[_Exit]:
        """Add some measures with their repeats; return the ends of what was added."""
        for passage in _passages(self._structure.within(first, stop), first, stop):
            exits = self._play_passage(passage, exits)
        return exits

    def _play_passage(self, passage: _Passage, exits: list[_Exit]) -> list[_Exit]:
        repeated = _REPEATED_AFTER_JUMP if self._after_jump else _REPEATED
        ending_of = {number: ending for ending in passage.endings for number in ending.numbers}
        for number in range(
            2, passage.times
        ):  # a pass that no bracket names has the ending of the one before
            if number not in ending_of and number - 1 in ending_of:
                ending_of[number] = ending_of[number - 1]
        leaving: list[_Exit] = []
        for number in range(1, passage.times):
            body = self._add(passage.first, passage.stop, exits)
            leaving.append(_Exit(body, 1 - repeated, "past"))
            if number in ending_of:
                ending = ending_of[number]
                exits = [_Exit(self._add(ending.first, ending.stop, [_Exit(body, repeated)]), 1.0, "repeat")]
            else:
                exits = [_Exit(body, repeated, "repeat")]
        leaving.append(_Exit(self._add(passage.first, passage.stop, exits), 1.0))
        last = ending_of.get(passage.times)
        if last is not None:
            leaving = [_Exit(self._add(last.first, last.stop, leaving), 1.0)]
        return leaving

    def _add(self, first: int, stop: int, exits: list[_Exit]) -> int:
        target = len(self._sections)
        self._sections.append(Section(first, stop, self._after_jump))
        for each in exits:
            self._edges[each.section, target] = Edge(each.section, target, each.probability, each.kind)
        return target

    def _end(self, exits: list[_Exit]) -> None:
        for each in exits:
            self._ends[each.section] = self._ends.get(each.section, 0.0) + each.probability


def _between(measures: tuple[int, ...], jump: Jump) -> int | None:
    """Return the first of some measures that is played after a jump."""
    return next((measure for measure in measures if jump.to <= measure <= jump.after), None)


def _passages(structure: RepeatStructure, first: int, stop: int) -> Iterator[_Passage]:
    """Cut measures into passages that are repeated and the rest, in written order.

    A repeat without a sign that begins it goes back to the end of the repeat before.
    """
    times = dict(zip(structure.ends, structure.times, strict=True)) if structure.times else {}
    chain_at = {chain[0].first: chain for chain in _chains(structure.endings)}
    start = measure = first
    while measure < stop:
        if measure in structure.begins and measure > start:
            yield _Passage(start, measure)
            start = measure
        chain = chain_at.get(measure)
        if chain is not None and measure > start:
            n_passes = max(number for ending in chain for number in ending.numbers)
            yield _Passage(start, measure, max(2, n_passes), tuple(chain))
            start = measure = chain[-1].stop
            continue
        if measure in structure.ends:
            yield _Passage(start, measure + 1, max(2, times.get(measure, 2)))
            start = measure + 1
        measure += 1
    if start < stop:
        yield _Passage(start, stop)


def _chains(endings: Sequence[Ending]) -> list[list[Ending]]:
    """Group endings that follow each other: first, second, ..."""
    chains: list[list[Ending]] = []
    for ending in sorted(endings, key=lambda ending: ending.first):
        last = chains[-1][-1] if chains else None
        if last is not None and last.stop == ending.first and min(ending.numbers) > min(last.numbers):
            chains[-1].append(ending)
        else:
            chains.append([ending])
    return chains
