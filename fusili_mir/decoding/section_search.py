"""The order in which sections are played: all ways of taking repeats in one search.

The course is the score as written; sections are ranges of its measures, one for each time that they may be
played, and edges say which may follow which. A path runs through a section as `viterbi` has it, and from the end
of one to the beginning of the next at the price of the edge. At a high price it may also go on at any other
measure, as recordings with cuts do.

The search is rough: frames and stops are taken in groups, but no group reaches over the border of a measure.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np

from fusili_mir.arrays import Bool, Float32, Float64, Int64
from fusili_mir.decoding.rough_search import DecodingOptions, path_costs
from fusili_mir.decoding.similarity import CourseSimilarity, log_mean_exp, pool_frames
from fusili_mir.decoding.viterbi import PathCosts, window_maximum

__all__ = ["FoundOrder", "SectionGraph", "search_sections"]

_NEVER = np.float32(-1e9)
_CELLS = 2**22  # groups of frames times states: 8 bytes each
_HEARD_SEC = 2.0  # another way that differs only for so long at either end is no other way


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
    cut_cost : float, optional
        What it costs to go on at any other measure; None if that is impossible.
    """

    first: Int64
    end: Int64
    source: Int64
    target: Int64
    cost: Float32
    may_end: Bool
    measures: Int64
    cut_cost: float | None = None


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
    lattice, emission = _lattice(similarity, graph, frame_sec, scale, options)
    sweep = _Sweep(lattice, emission)
    visited = sweep.trace()
    n_open = max(1, round(_HEARD_SEC * len(emission) / max(len(similarity.frames) * frame_sec, 1e-9)))
    probability = _probability(lattice, sweep, emission, visited, options.law.sound_weight, n_open)
    return FoundOrder(_stretches(lattice, graph, visited), probability)


@dataclass(frozen=True)
class _Lattice:
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
    cut_cost : float, optional
    costs : PathCosts
        Its weights are those of groups.
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
    cut_cost: float | None
    costs: PathCosts

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
    def entries(self) -> tuple[Int64, Float32]:
        """States at which each section may be entered, and what that costs [shape=(S, max_step)]."""
        state = self.begins_at[:, None] + np.arange(self.costs.max_step)
        cost = self.passed[np.minimum(state, len(self.section))] - self.passed[self.begins_at][:, None]
        inside = state < self.ends_at[:, None]
        return np.where(inside, state, self.begins_at[:, None]), np.where(inside, cost, -_NEVER)

    @cached_property
    def exits(self) -> tuple[Int64, Float32]:
        """States from which each section may be left, and what that costs [shape=(S, max_step)]."""
        state = self.ends_at[:, None] - 1 - np.arange(self.costs.max_step)
        cost = self.passed[self.ends_at][:, None] - self.passed[state + 1]
        inside = state >= self.begins_at[:, None]
        return np.where(inside, state, self.begins_at[:, None]), np.where(inside, cost, -_NEVER)

    @cached_property
    def cuts(self) -> tuple[Int64, Int64]:
        """States with which measures end, and those with which measures begin."""
        visited = np.flatnonzero(self.section >= 0)
        begins = np.append(self.begins_measure, True)
        return visited[begins[self.group[visited] + 1]], visited[begins[self.group[visited]]]

    def of_states(self, costs: Float32) -> Float32:
        """Pick from costs [shape=(S, n_groups)] those of each state."""
        known = self.section >= 0
        picked = costs[self.section, np.minimum(self.group, len(self.starts) - 1)]
        return np.where(known, picked, -_NEVER).astype(np.float32)

    def reversed(self) -> _Lattice:
        """Return the same lattice for a recording that is played backwards."""
        n_groups = len(self.starts)
        assert self.costs.weight is not None  # noqa: S101
        return _Lattice(
            first=n_groups - self.stop,
            stop=n_groups - self.first,
            source=self.target,
            target=self.source,
            cost=self.cost,
            begin_cost=self.end_cost[:, ::-1],
            end_cost=self.begin_cost[:, ::-1],
            starts=self.starts,
            begins_measure=np.append(self.begins_measure, True)[1:][::-1],
            cut_cost=self.cut_cost,
            costs=replace(self.costs, weight=self.costs.weight[::-1]),
        )


def _lattice(
    similarity: CourseSimilarity,
    graph: SectionGraph,
    frame_sec: float,
    scale: float,
    options: DecodingOptions,
) -> tuple[_Lattice, Float32]:
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
    emission = (emission - hubs) * np.float32(by_frame)
    weight = np.add.reduceat(similarity.stop_weights(), starts)
    costs = path_costs(options, weight, len(emission), frame_sec * by_frame)
    first, stop = _groups(graph, starts)
    counted = np.append(0.0, np.cumsum(weight))
    before, after = _Shortest(graph, counted[stop] - counted[first]).lengths
    inside = counted[:-1] - counted[first][:, None]
    beyond = counted[stop][:, None] - counted[1:]
    lattice = _Lattice(
        first=first,
        stop=stop,
        source=graph.source,
        target=graph.target,
        cost=graph.cost,
        begin_cost=_margin(before[:, None] + inside, costs.left_out, costs.margin),
        end_cost=_margin(after[:, None] + beyond, costs.cut_off, costs.margin),
        starts=starts,
        begins_measure=np.isin(starts, graph.measures),
        cut_cost=graph.cut_cost,
        costs=costs,
    )
    return lattice, emission


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


def _count_states(graph: SectionGraph, starts: Int64) -> int:
    first, stop = _groups(graph, starts)
    return int((stop - first).sum())


def _margin(weight: Float64, each: float, most: float) -> Float32:
    """Return what it costs to leave out stops of some weight at either end of the music."""
    return np.asarray(np.minimum(each * weight, most), dtype=np.float32)


class _Sweep:
    """The best paths to every frame and state of a lattice.

    Attributes
    ----------
    music, filler : np.ndarray [shape=(M, n_states)], float32
        Likelihoods of the best paths, relative to `top`.
    top : np.ndarray [shape=(M,)]
        Likelihood of the best path to each frame.
    leaving : np.ndarray [shape=(M, S)]
        Likelihood of the best path that is at the end of each section, ready to leave it after each frame.
    likelihood : float
        Likelihood of the best path through the whole recording.
    """

    def __init__(self, lattice: _Lattice, emission: Float32) -> None:
        self._lattice = lattice
        n_frames, n_states = len(emission), len(lattice.section)
        self.music = np.empty((n_frames, n_states), np.float32)
        self.filler = np.empty((n_frames, n_states), np.float32)
        self.top = np.zeros(n_frames)
        self.leaving = np.empty((n_frames, len(lattice.first)))
        max_step, entering = lattice.costs.max_step, np.float32(lattice.costs.filler)
        padded = np.full(max_step + n_states, _NEVER, np.float32)
        by_target = np.argsort(lattice.target, kind="stable")
        targets, first_edge = np.unique(lattice.target[by_target], return_index=True)
        sources, prices = lattice.source[by_target], lattice.cost[by_target]
        (entry, entry_cost), (exit_, exit_cost) = lattice.entries, lattice.exits
        ends, begins = lattice.cuts
        either = np.zeros(0, np.float32)
        for frame in range(n_frames):
            sounding = np.append(emission[frame], _NEVER)[lattice.group]
            here, other = self.music[frame], self.filler[frame]
            if not frame:
                other[:] = -lattice.of_states(lattice.begin_cost)
                here[:] = other + sounding
            else:
                padded[max_step:] = either + lattice.passed[1:]
                arriving = window_maximum(padded, max_step)[:n_states] - lattice.passed[:-1]
                np.maximum(arriving, either, out=here)
                if len(targets):
                    out = self.leaving[frame - 1] - self.top[frame - 1]
                    into = np.maximum.reduceat(out[sources] - prices, first_edge)
                    entered = (into[:, None] - entry_cost[targets]).astype(np.float32)
                    np.maximum.at(here, entry[targets], entered)
                if lattice.cut_cost is not None:
                    here[begins] = np.maximum(here[begins], either[ends].max() - np.float32(lattice.cut_cost))
                here += sounding
                np.maximum(self.music[frame - 1] - entering, self.filler[frame - 1], out=other)
            best = max(float(here.max()), float(other.max()))
            here -= np.float32(best)
            other -= np.float32(best)
            self.top[frame] = best + (self.top[frame - 1] if frame else 0.0)
            either = np.maximum(np.maximum(here, other), _NEVER)
            self.leaving[frame] = (either[exit_] - exit_cost).max(axis=1) + self.top[frame]
        self._end = either - lattice.of_states(lattice.end_cost)
        self.likelihood = float(self._end.max()) + float(self.top[-1])

    def trace(self) -> Int64:
        """Return the state of the best path in each frame [shape=(M,)]."""
        lattice = self._lattice
        state = int(self._end.argmax())
        other = bool(self.filler[-1, state] > self.music[-1, state])
        visited = np.empty(len(self.music), np.int64)
        for frame in range(len(visited) - 1, -1, -1):
            visited[frame] = state
            if not frame:
                break
            music, filler = self.music[frame - 1], self.filler[frame - 1]
            if other:
                other = bool(filler[state] >= music[state] - np.float32(lattice.costs.filler))
            else:
                state = self._source(state, np.maximum(music, filler))
                other = bool(filler[state] > music[state])
        return visited

    def _source(self, state: int, either: Float32) -> int:
        """Return the state before one that the best path is in, given the likelihoods of the frame before."""
        lattice = self._lattice
        section, max_step = int(lattice.section[state]), lattice.costs.max_step
        near = np.arange(max(0, state - max_step), state)
        sources = [np.array([state]), near]
        values = [either[[state]], either[near] - (lattice.passed[state] - lattice.passed[near + 1])]
        inwards = state - int(lattice.begins_at[section])
        if inwards < max_step:
            exit_, exit_cost = lattice.exits
            for edge in np.flatnonzero(lattice.target == section):
                source = lattice.source[edge]
                price = lattice.cost[edge] + lattice.entries[1][section, inwards]
                sources.append(exit_[source])
                values.append(either[exit_[source]] - exit_cost[source] - price)
        ends, begins = lattice.cuts
        if lattice.cut_cost is not None and np.isin(state, begins):
            sources.append(ends)
            values.append(either[ends] - np.float32(lattice.cut_cost))
        return int(np.concatenate(sources)[np.concatenate(values).argmax()])


def _probability(
    lattice: _Lattice, sweep: _Sweep, emission: Float32, visited: Int64, weight: float, n_open: int
) -> float:
    """Return the probability of the best way against the best one through each edge that it does not take."""
    section = lattice.section[visited].tolist()
    taken = {(before, after) for before, after in pairwise(section) if before != after}
    if all(edge in taken for edge in zip(lattice.source.tolist(), lattice.target.tolist(), strict=True)):
        return 1.0
    backwards = _Sweep(lattice.reversed(), emission[::-1, ::-1])
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


def _stretches(lattice: _Lattice, graph: SectionGraph, visited: Int64) -> tuple[tuple[int, int], ...]:
    """Return the stretches of measures that a path visits, made whole: from the first section to a last one."""
    section = lattice.section[visited]
    stop = lattice.starts[lattice.group[visited]]
    measure = np.searchsorted(graph.measures, stop, side="right") - 1
    shortest = _Shortest(graph, (graph.end - graph.first).astype(np.float64))
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


class _Shortest:
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


def _joined(stretches: list[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Join stretches that go on where the one before ends."""
    joined: list[tuple[int, int]] = []
    for begin, end in stretches:
        if joined and joined[-1][1] == begin:
            joined[-1] = (joined[-1][0], end)
        elif end > begin:
            joined.append((begin, end))
    return tuple(joined)
