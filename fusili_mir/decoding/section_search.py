"""The order in which sections are played: all ways of taking repeats in one search.

The course is the score as written; sections are ranges of its measures, one for each time that they may be
played, and edges say which may follow which. A path runs through a section as `viterbi` has it, and from the end
of one to the beginning of the next at the price of the edge. At a high price it may also go on at any other
measure, as recordings with cuts do.

The search is rough: frames and stops are taken in groups, but no group reaches over the border of a measure.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from fusili_mir.arrays import Float32, Int64
from fusili_mir.decoding.rough_search import DecodingOptions
from fusili_mir.decoding.section_lattice import (
    NEVER,
    SectionGraph,
    SectionLattice,
    ShortestWays,
    build_lattice,
)
from fusili_mir.decoding.similarity import CourseSimilarity

__all__ = ["FoundOrder", "search_sections"]

_HEARD_SEC = 2.0  # set by hand: another way that differs only for so long at either end is no other way


@dataclass(frozen=True)
class FoundOrder:
    """How a recording goes through the sections of a score.

    Attributes
    ----------
    measures : tuple of (int, int)
        First measure of each stretch that is played, and the measure after its last one, in playing order; no
        stretch goes on where the one before ends.
    probability : float
        Probability of this way among all ways of the graph, cuts aside.
    """

    measures: tuple[tuple[int, int], ...]
    probability: float


def search_sections(
    similarity: CourseSimilarity,
    graph: SectionGraph,
    frame_sec: float,
    scale: float,
    options: DecodingOptions | None = None,
) -> FoundOrder:
    """Find the order in which the sections of a score are played.

    Parameters
    ----------
    similarity : CourseSimilarity
        Similarity of the course as written and the frames that sound.
    graph : SectionGraph
    frame_sec : float
        Time from one frame to the next.
    scale : float
        The bundle's scale of cosines.
    options : DecodingOptions, optional

    Returns
    -------
    FoundOrder
        A way from the first section to one that may end the music. Sections are whole, but for cuts; a recording
        that begins late or ends early leaves open how the rest would be played, and the shortest way is taken.
    """
    options = options or DecodingOptions()
    lattice, emission = build_lattice(similarity, graph, frame_sec, scale, options)
    sweep = _Sweep(lattice, emission)
    visited = sweep.trace()
    sweep.forget_paths()  # the sweep backwards takes as much
    n_open = max(1, round(_HEARD_SEC * len(emission) / max(len(similarity.frames) * frame_sec, 1e-9)))
    probability = _probability(lattice, sweep, emission, visited, options.law.sound_weight, n_open)
    return FoundOrder(_stretches(lattice, graph, visited), probability)


class _Sweep:
    """The best paths to every frame and state of a lattice.

    Parameters
    ----------
    lattice : SectionLattice
    emission : np.ndarray [shape=(M, n_groups)]
        Likelihoods of groups.
    keep_paths : bool
        Whether the path is to be traced.

    Attributes
    ----------
    music, filler : np.ndarray [shape=(M, n_visited)], float32
        Likelihoods of the best paths, relative to `top`, to the states that may be visited. In a score with
        many short sections most states are not.
    top : np.ndarray [shape=(M,)]
        Likelihood of the best path to each frame.
    leaving : np.ndarray [shape=(M, S)]
        Likelihood of the best path that is at the end of each section, ready to leave it after each frame.
    likelihood : float
        Likelihood of the best path through the whole recording.
    """

    def __init__(self, lattice: SectionLattice, emission: Float32, keep_paths: bool = True) -> None:
        self._lattice = lattice
        n_frames, n_states = len(emission), len(lattice.section)
        self._visited = np.flatnonzero(lattice.section >= 0)
        n_kept = n_frames if keep_paths else 0
        self.music = np.empty((n_kept, len(self._visited)), np.float32)
        self.filler = np.empty((n_kept, len(self._visited)), np.float32)
        music, filler = np.empty((2, n_states), np.float32), np.empty((2, n_states), np.float32)
        self.top = np.zeros(n_frames)
        self.leaving = np.empty((n_frames, len(lattice.first)))
        entering = np.float32(lattice.costs.filler)
        by_target = np.argsort(lattice.target, kind="stable")
        targets, first_edge = np.unique(lattice.target[by_target], return_index=True)
        sources, prices = lattice.source[by_target], lattice.cost[by_target]
        (entry, entry_cost), (exit_, exit_cost) = lattice.entries, lattice.exits
        (ends, begins), cut_costs = lattice.cuts, lattice.cut_costs
        either = np.zeros(0, np.float32)
        for frame in range(n_frames):
            sounding = np.append(emission[frame], NEVER)[lattice.group]
            here, other = music[frame % 2], filler[frame % 2]
            if not frame:
                other[:] = -lattice.of_states(lattice.begin_cost)
                here[:] = other + sounding
            else:
                here[:] = either
                for step, cost in enumerate(lattice.step_costs, start=1):
                    np.maximum(here[step:], either[:-step] - cost[step:], out=here[step:])
                if len(targets):
                    out = self.leaving[frame - 1] - self.top[frame - 1]
                    into = np.maximum.reduceat(out[sources] - prices, first_edge)
                    entered = (into[:, None] - entry_cost[targets]).astype(np.float32)
                    np.maximum.at(here, entry[targets], entered)
                if cut_costs is not None:
                    cut = (either[ends] - cut_costs[0]).max() - cut_costs[1]
                    here[begins] = np.maximum(here[begins], cut)
                here += sounding
                np.maximum(music[frame % 2 - 1] - entering, filler[frame % 2 - 1], out=other)
            best = max(float(here.max()), float(other.max()))
            here -= np.float32(best)
            other -= np.float32(best)
            if keep_paths:
                np.take(here, self._visited, out=self.music[frame])
                np.take(other, self._visited, out=self.filler[frame])
            self.top[frame] = best + (self.top[frame - 1] if frame else 0.0)
            either = np.maximum(np.maximum(here, other), NEVER)
            self.leaving[frame] = (either[exit_] - exit_cost).max(axis=1) + self.top[frame]
        self._end = either - lattice.of_states(lattice.end_cost)
        self.likelihood = float(self._end.max()) + float(self.top[-1])

    def trace(self) -> Int64:
        """Return the state of the best path in each frame [shape=(M,)]."""
        lattice = self._lattice
        state = int(self._end.argmax())
        music, filler = self._row(len(self.music) - 1)
        other = bool(filler[state] > music[state])
        visited = np.empty(len(self.music), np.int64)
        for frame in range(len(visited) - 1, -1, -1):
            visited[frame] = state
            if not frame:
                break
            music, filler = self._row(frame - 1)
            if other:
                other = bool(filler[state] >= music[state] - np.float32(lattice.costs.filler))
            else:
                state = self._source(state, np.maximum(music, filler))
                other = bool(filler[state] > music[state])
        return visited

    def _row(self, frame: int) -> tuple[Float32, Float32]:
        """Return `music` and `filler` of a frame for all states [shape=(n_states,)]."""
        rows = np.full((2, len(self._lattice.section)), NEVER)
        rows[0, self._visited], rows[1, self._visited] = self.music[frame], self.filler[frame]
        return rows[0], rows[1]

    def forget_paths(self) -> None:
        """Give back the memory that only `trace` needs."""
        self.music = self.filler = np.empty((0, len(self._visited)), np.float32)

    def _source(self, state: int, either: Float32) -> int:
        """Return the state before one that the best path is in, given the likelihoods of the frame before."""
        lattice = self._lattice
        section, max_step = int(lattice.section[state]), lattice.costs.max_step
        near = np.arange(max(0, state - max_step), state)
        sources = [np.array([state]), near]
        values = [either[[state]], either[near] - lattice.step_costs[state - near - 1, state]]
        inwards = state - int(lattice.begins_at[section])
        if inwards < max_step:
            exit_, exit_cost = lattice.exits
            for edge in np.flatnonzero(lattice.target == section):
                source = lattice.source[edge]
                price = lattice.cost[edge] + lattice.entries[1][section, inwards]
                sources.append(exit_[source])
                values.append(either[exit_[source]] - exit_cost[source] - price)
        ends, begins = lattice.cuts
        if lattice.cut_costs is not None and np.isin(state, begins):
            leaving, entering = lattice.cut_costs
            sources.append(ends)
            values.append(either[ends] - leaving - entering[np.searchsorted(begins, state)])
        return int(np.concatenate(sources)[np.concatenate(values).argmax()])


def _probability(
    lattice: SectionLattice, sweep: _Sweep, emission: Float32, visited: Int64, weight: float, n_open: int
) -> float:
    """Return the probability of the best way against the best one through each edge that it does not take."""
    section = lattice.section[visited].tolist()
    taken = {(before, after) for before, after in pairwise(section) if before != after}
    if all(edge in taken for edge in zip(lattice.source.tolist(), lattice.target.tolist(), strict=True)):
        return 1.0
    backwards = _Sweep(lattice.reversed(), emission[::-1, ::-1], keep_paths=False)
    entering = backwards.leaving[::-1]  # of the best path from the beginning of each section in each frame on
    total = 1.0
    for source, target, cost in zip(lattice.source, lattice.target, lattice.cost, strict=True):
        if (int(source), int(target)) in taken:
            continue
        through = sweep.leaving[:-1, source] - cost + entering[1:, target]
        through = through[n_open - 1 : len(through) - n_open + 1]
        if len(through):
            total += np.exp(min(0.0, weight * (float(through.max()) - sweep.likelihood)))
    return 1.0 / total


def _stretches(lattice: SectionLattice, graph: SectionGraph, visited: Int64) -> tuple[tuple[int, int], ...]:
    """Return the stretches of measures that a path visits, made whole: from the first section to a last one."""
    section = lattice.section[visited]
    stop = lattice.starts[lattice.group[visited]]
    measure = np.searchsorted(graph.measures, stop, side="right") - 1
    shortest = ShortestWays(graph, (graph.end - graph.first).astype(np.float64))
    whole = [(int(first), int(end)) for first, end in zip(graph.first, graph.end, strict=True)]
    stretches = [whole[number] for number in shortest.to(int(section[0]))]
    edges = set(zip(graph.source.tolist(), graph.target.tolist(), strict=True))
    begin = whole[section[0]][0]
    for frame in np.flatnonzero(np.diff(visited)).tolist():
        here, there = int(section[frame]), int(section[frame + 1])
        if here == there and 0 < visited[frame + 1] - visited[frame] <= lattice.costs.max_step:
            continue
        is_cut = (here, there) not in edges
        stretches.append((begin, int(measure[frame]) + 1 if is_cut else whole[here][1]))
        begin = int(measure[frame + 1]) if is_cut else whole[there][0]
    last = int(section[-1])
    stretches.append((begin, whole[last][1]))
    stretches += [whole[number] for number in shortest.onwards(last)]
    return _joined(stretches)


def _joined(stretches: list[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Join stretches that go on where the one before ends."""
    joined: list[tuple[int, int]] = []
    for begin, end in stretches:
        if joined and joined[-1][1] == begin:
            joined[-1] = (joined[-1][0], end)
        elif end > begin:
            joined.append((begin, end))
    return tuple(joined)
