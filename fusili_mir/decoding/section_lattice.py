"""The states of a search over sections: groups of stops, once for each section that contains them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from fusili_mir.arrays import Bool, Float32, Float64, Int64
from fusili_mir.decoding.rough_search import DENSEST_HZ, DecodingOptions, path_costs
from fusili_mir.decoding.similarity import CourseSimilarity, log_mean_exp, pool_frames
from fusili_mir.decoding.viterbi import PathCosts

__all__ = ["NEVER", "SectionGraph", "SectionLattice", "ShortestWays", "build_lattice"]

NEVER = np.float32(-1e9)
"""Log-likelihood of what cannot be."""

_CELLS = 2**23  # groups of frames times states: 8 bytes each
# Share of its cost that skipping a stop has where frames are longer than notes. Of two quartets of half an hour,
# from images, 0.1 loses the order of both, 0.15 to 0.5 keep it.
_LEAST_SKIPPED = 0.25


@dataclass(frozen=True)
class SectionGraph:
    """Sections of a score, and what may follow each.

    Attributes
    ----------
    first, end : np.ndarray of int [shape=(S,)]
        First measure of each section, and the measure after its last one. The music begins with the first
        section.
    source, target : np.ndarray of int [shape=(E,)]
        Sections that each edge leads from and to; the target comes after the source.
    cost : np.ndarray of float [shape=(E,)]
        What each edge costs, in nats.
    may_end : np.ndarray of bool [shape=(S,)]
        Whether the music may end with a section.
    measures : np.ndarray of int [shape=(n_measures + 1,)]
        First stop of each measure, or of the next one that has any, and the number of stops. Non-decreasing.
    cut_cost : np.ndarray of float [shape=(n_measures,)], optional
        What it costs to go on at any other measure after each measure; None if that is impossible.
    """

    first: Int64
    end: Int64
    source: Int64
    target: Int64
    cost: Float32
    may_end: Bool
    measures: Int64
    cut_cost: Float32 | None = None


@dataclass(frozen=True)
class SectionLattice:
    """The states of a search: groups of stops, once for each section that contains them.

    Before each section lie `costs.max_step` states that are never visited, so that steps stay within sections.

    Attributes
    ----------
    first, stop : np.ndarray of int [shape=(S,)]
        First group of each section, and the group after its last one.
    source, target, cost
        Edges; see `SectionGraph`.
    begin_cost, end_cost : np.ndarray [shape=(S, n_groups)]
        What it costs to begin and to end in each group of each section.
    starts : np.ndarray of int [shape=(n_groups,)]
        First stop of each group.
    begins_measure : np.ndarray of bool [shape=(n_groups,)]
        Whether a measure begins with each group.
    leave_cost, enter_cost : np.ndarray [shape=(n_groups,)], optional
        What it costs to leave each group, and to enter it, where no edge leads; None if that is impossible.
    costs : PathCosts
        Its weights are those of groups.
    free_cost : float
        Of the cost of passing states, what is free in each frame: as many as can sound in it.
    """

    first: Int64
    stop: Int64
    source: Int64
    target: Int64
    cost: Float32
    begin_cost: Float32
    end_cost: Float32
    starts: Int64
    begins_measure: Bool
    leave_cost: Float32 | None
    enter_cost: Float32 | None
    costs: PathCosts
    free_cost: float = 0.0

    @cached_property
    def begins_at(self) -> Int64:
        """First state of each section [shape=(S,)]."""
        size = self.stop - self.first + self.costs.max_step
        return np.asarray(np.cumsum(size) - size + self.costs.max_step)

    @cached_property
    def ends_at(self) -> Int64:
        """State after the last one of each section [shape=(S,)]."""
        return self.begins_at + self.stop - self.first

    @cached_property
    def section(self) -> Int64:
        """Section of each state [shape=(n_states,)]; -1 for those that are never visited."""
        section = np.full(int(self.ends_at[-1]), -1)
        for number, (begin, end) in enumerate(zip(self.begins_at, self.ends_at, strict=True)):
            section[begin:end] = number
        return section

    @cached_property
    def group(self) -> Int64:
        """Group of each state; the number of groups for those that are never visited."""
        group = np.full(len(self.section), len(self.starts))
        for number, begin in enumerate(self.begins_at):
            own = np.arange(self.first[number], self.stop[number])
            group[begin : begin + len(own)] = own
        return group

    @cached_property
    def passed(self) -> Float32:
        """What passing all states before each one costs [shape=(n_states + 1,)]."""
        assert self.costs.weight is not None  # noqa: S101
        weight = np.append(self.costs.weight, 0.0)[self.group]
        return np.asarray(np.append(0.0, np.cumsum(self.costs.skip * weight)), dtype=np.float32)

    @cached_property
    def step_costs(self) -> Float32:
        """What it costs to come to each state from 1, 2, ... states before it [shape=(max_step, n_states)]."""
        state = np.arange(len(self.section))
        steps = np.arange(1, self.costs.max_step + 1)[:, None]
        between = self.passed[state] - self.passed[np.maximum(state - steps + 1, 0)]
        return self._beyond_free(between)

    def _beyond_free(self, cost: Float32) -> Float32:
        return np.asarray(np.maximum(cost - self.free_cost, 0.0), dtype=np.float32)

    @cached_property
    def entries(self) -> tuple[Int64, Float32]:
        """States at which each section may be entered, and what that costs [shape=(S, max_step)]."""
        state = self.begins_at[:, None] + np.arange(self.costs.max_step)
        cost = self.passed[np.minimum(state, len(self.section))] - self.passed[self.begins_at][:, None]
        inside = state < self.ends_at[:, None]
        cost = self._beyond_free(cost)
        return np.where(inside, state, self.begins_at[:, None]), np.where(inside, cost, -NEVER)

    @cached_property
    def exits(self) -> tuple[Int64, Float32]:
        """States from which each section may be left, and what that costs [shape=(S, max_step)]."""
        state = self.ends_at[:, None] - 1 - np.arange(self.costs.max_step)
        cost = self.passed[self.ends_at][:, None] - self.passed[state + 1]
        inside = state >= self.begins_at[:, None]
        cost = self._beyond_free(cost)
        return np.where(inside, state, self.begins_at[:, None]), np.where(inside, cost, -NEVER)

    @cached_property
    def cuts(self) -> tuple[Int64, Int64]:
        """States with which measures end, and those with which measures begin."""
        visited = np.flatnonzero(self.section >= 0)
        begins = np.append(self.begins_measure, True)
        return visited[begins[self.group[visited] + 1]], visited[begins[self.group[visited]]]

    @cached_property
    def cut_costs(self) -> tuple[Float32, Float32] | None:
        """What it costs to leave and to enter the states of `cuts`; None if that is impossible."""
        if self.leave_cost is None or self.enter_cost is None:
            return None
        ends, begins = self.cuts
        return self.leave_cost[self.group[ends]], self.enter_cost[self.group[begins]]

    def of_states(self, costs: Float32) -> Float32:
        """Pick from costs [shape=(S, n_groups)] those of each state."""
        known = self.section >= 0
        picked = costs[self.section, np.minimum(self.group, len(self.starts) - 1)]
        return np.where(known, picked, -NEVER).astype(np.float32)

    def reversed(self) -> SectionLattice:
        """Return the same lattice for a recording that is played backwards."""
        n_groups = len(self.starts)
        assert self.costs.weight is not None  # noqa: S101
        return SectionLattice(
            first=n_groups - self.stop,
            stop=n_groups - self.first,
            source=self.target,
            target=self.source,
            cost=self.cost,
            begin_cost=self.end_cost[:, ::-1],
            end_cost=self.begin_cost[:, ::-1],
            starts=self.starts,
            begins_measure=np.append(self.begins_measure, True)[1:][::-1],
            leave_cost=None if self.enter_cost is None else self.enter_cost[::-1],
            enter_cost=None if self.leave_cost is None else self.leave_cost[::-1],
            costs=replace(self.costs, weight=self.costs.weight[::-1]),
            free_cost=self.free_cost,
        )


def build_lattice(
    similarity: CourseSimilarity,
    graph: SectionGraph,
    frame_sec: float,
    scale: float,
    options: DecodingOptions,
) -> tuple[SectionLattice, Float32]:
    """Return the lattice, and the likelihoods of groups of frames and stops."""
    n_frames, n_stops = len(similarity.frames), len(similarity.course)
    by_frame = by_stop = 1
    starts = _group_starts(graph, n_stops, by_stop)
    n_states = _count_states(graph, starts)
    while (n_frames / by_frame) * n_states > _CELLS:
        wider = _group_starts(graph, n_stops, 2 * by_stop)
        if n_frames / by_frame > 2 * n_states or len(wider) == len(starts):
            by_frame *= 2
        else:
            by_stop *= 2
            starts, n_states = wider, _count_states(graph, wider)
    pooled = replace(similarity, frames=pool_frames(similarity.frames, by_frame))
    emission = pooled.grouped(starts)
    emission *= np.float32(scale)
    emission -= pooled.baseline(scale)[:, None]
    hubs = np.maximum(log_mean_exp(emission, axis=0), 0.0) * options.hub_weight_of(similarity.course)
    emission -= hubs
    emission *= np.float32(by_frame)
    weight = np.add.reduceat(similarity.stop_weights(), starts)
    costs, free_cost = _costs(options, weight, len(emission), frame_sec * by_frame)
    first, stop = _groups(graph, starts)
    counted = np.append(0.0, np.cumsum(weight))
    before, after = ShortestWays(graph, counted[stop] - counted[first]).lengths
    inside = counted[:-1] - counted[first][:, None]
    beyond = counted[stop][:, None] - counted[1:]
    lattice = SectionLattice(
        first=first,
        stop=stop,
        source=graph.source,
        target=graph.target,
        cost=graph.cost,
        begin_cost=_margin(before[:, None] + inside, costs.left_out, costs.margin),
        end_cost=_margin(after[:, None] + beyond, costs.cut_off, costs.margin),
        starts=starts,
        begins_measure=np.isin(starts, graph.measures),
        leave_cost=_leave_cost(graph, starts),
        enter_cost=None if graph.cut_cost is None else np.zeros(len(starts), np.float32),
        costs=costs,
        free_cost=free_cost,
    )
    return lattice, emission


def _costs(
    options: DecodingOptions, weight: Float32, n_frames: int, frame_sec: float
) -> tuple[PathCosts, float]:
    """Return the costs of a path, and how much of them is free in each frame.

    Where frames are longer than notes, each may pass as many as can sound in it. What it passes beyond that costs
    something: a path that raced through other movements for what sounds alike there would be the best one.
    """
    costs = path_costs(options, weight, n_frames, frame_sec)
    least = _LEAST_SKIPPED * options.skip_cost
    if costs.skip >= least:
        return costs, 0.0
    return replace(costs, skip=least), least * DENSEST_HZ * frame_sec


def _group_starts(graph: SectionGraph, n_stops: int, by_stop: int) -> Int64:
    """Cut the stops into groups of at most `by_stop`, and at every measure."""
    borders = np.unique(np.append(0, graph.measures))
    borders = borders[borders < n_stops]
    ends = np.append(borders[1:], n_stops)
    return np.concatenate(
        [np.arange(here, there, by_stop) for here, there in zip(borders, ends, strict=True)]
    )


def _groups(graph: SectionGraph, starts: Int64) -> tuple[Int64, Int64]:
    """Return the first group of each section, and the one after its last; rests have that of a neighbour."""
    first = np.searchsorted(starts, graph.measures[graph.first]).clip(max=len(starts) - 1)
    return first, np.maximum(np.searchsorted(starts, graph.measures[graph.end]), first + 1)


def _leave_cost(graph: SectionGraph, starts: Int64) -> Float32 | None:
    """Return what it costs to leave each group where no edge leads: as much as to leave its measure."""
    if graph.cut_cost is None:
        return None
    measure = np.searchsorted(graph.measures, starts, side="right") - 1
    return np.asarray(graph.cut_cost[np.clip(measure, 0, len(graph.cut_cost) - 1)], dtype=np.float32)


def _count_states(graph: SectionGraph, starts: Int64) -> int:
    first, stop = _groups(graph, starts)
    return int((stop - first).sum())


def _margin(weight: Float64, each: float, most: float) -> Float32:
    """Return what it costs to leave out stops of some weight at either end of the music."""
    return np.asarray(np.minimum(each * weight, most), dtype=np.float32)


class ShortestWays:
    """The shortest ways from the first section to each, and from each to the end of the music.

    Attributes
    ----------
    lengths : tuple of np.ndarray [shape=(S,)]
        Length of all that comes before each section, and of all that comes after it, at least.
    """

    def __init__(self, graph: SectionGraph, length: Float64) -> None:
        n_sections = len(graph.first)
        before, after = np.full(n_sections, np.inf), np.where(graph.may_end, 0.0, np.inf)
        before[0] = 0.0
        self._before, self._after = [-1] * n_sections, [-1] * n_sections
        edges = sorted(zip(graph.source.tolist(), graph.target.tolist(), strict=True))
        for source, target in edges:
            if before[source] + length[source] < before[target]:
                before[target] = before[source] + length[source]
                self._before[target] = source
        for source, target in reversed(edges):
            if after[target] + length[target] < after[source]:
                after[source] = after[target] + length[target]
                self._after[source] = target
        self.lengths = before, after

    def to(self, section: int) -> list[int]:
        """Return the sections before one, in playing order."""
        way = [section]
        while self._before[way[-1]] >= 0:
            way.append(self._before[way[-1]])
        return way[:0:-1]

    def onwards(self, section: int) -> list[int]:
        """Return the sections after one, in playing order."""
        way = [section]
        while self._after[way[-1]] >= 0:
            way.append(self._after[way[-1]])
        return way[1:]
