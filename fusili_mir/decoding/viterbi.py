"""The best path through stops and frames: dynamic programming with a filler state beside every stop.

In each frame the path is at one stop, in one of two states: the music of that stop sounds, or something else does
(silence, applause, talk) while the path keeps its place. From one frame to the next it stays or advances by at
most `PathCosts.max_step` stops. Likelihoods are logarithmic, in nats relative to the filler, whose own is 0.

Frames are processed in blocks, each with a range of stops: ranges of all stops make an exact search, ranges that
follow a rough path make a band. Long searches keep only the rows between blocks and compute a block again when
the path is traced back through it, so memory does not grow with frames times stops.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from fusili_mir.arrays import Bool, Float32, Int64

__all__ = [
    "Block",
    "BlockLikelihoods",
    "DecodedPath",
    "PathCosts",
    "best_likelihood",
    "best_path",
    "whole_blocks",
    "window_maximum",
]


_NEVER = np.float32(-np.inf)
_BLOCK_CELLS = 2**20
_KEPT_CELLS = 2**22  # searches of up to this many cells, 12 bytes each, are kept whole


@dataclass(frozen=True)
class Block:
    """Some frames, and the stops that the path may visit in them."""

    frames: slice
    stops: slice


BlockLikelihoods: TypeAlias = Callable[[Block], Float32]
"""Returns the log-likelihoods of a block [shape=(n_frames, n_stops)], in nats relative to the filler."""


@dataclass(frozen=True)
class PathCosts:
    """What a path may do, and what it costs, in nats.

    Attributes
    ----------
    max_step : int
        Largest number of stops to advance from one frame to the next; a power of two.
    skip : float
        Cost of each stop that is skipped, that is, has no frame of its own.
    filler : float
        Cost of entering the filler.
    left_out, cut_off, margin : float
        Cost of each stop before the beginning of the path, cost of each stop after its end, and the most that
        either may add up to. Ending early must be cheaper than rushing through the rest.
    weight : np.ndarray of float [shape=(n_stops,)], optional
        Weight of each stop where stops are skipped or left out; by default 1.
    """

    max_step: int
    skip: float = 1.0
    filler: float = 10.0
    left_out: float = 5.0
    cut_off: float = 1.0
    margin: float = 40.0
    weight: Float32 | None = None


@dataclass(frozen=True)
class DecodedPath:
    """A path, frame by frame.

    Attributes
    ----------
    stop : np.ndarray of int [shape=(M,)]
        Stop in each frame.
    is_filler : np.ndarray of bool [shape=(M,)]
        Whether something other than the music of that stop sounds.
    gap : np.ndarray of float [shape=(M,)]
        Log-likelihood of the chosen state minus that of the best one in its frame, in nats: 0 or less.
    """

    stop: Int64
    is_filler: Bool
    gap: Float32


@dataclass(frozen=True)
class _Table:
    """Likelihoods of the best paths to each frame and stop of a block [shape=(n_frames, n_stops)].

    `arrival` is what a path gains by arriving at a stop in a frame, rather than staying there.
    """

    emission: Float32
    music: Float32
    filler: Float32
    arrival: Float32 | None = None


@dataclass(frozen=True)
class _Entry:
    """Likelihoods of the best paths that end just before a block, at each of its stops [shape=(n_stops,)]."""

    music: Float32
    filler: Float32


def whole_blocks(n_frames: int, n_stops: int) -> list[Block]:
    """Cut the frames into blocks that contain all stops."""
    size = max(8, _BLOCK_CELLS // n_stops)
    return [
        Block(slice(start, min(start + size, n_frames)), slice(0, n_stops))
        for start in range(0, n_frames, size)
    ]


def best_likelihood(
    likelihoods: BlockLikelihoods, blocks: Sequence[Block], n_stops: int, costs: PathCosts
) -> float:
    """Return the log-likelihood of the best path minus its costs, in nats."""
    total, entry, table = 0.0, None, None
    for before, block in zip([None, *blocks], blocks, strict=False):
        entry = _entry(table, before, block)
        table = _fill(likelihoods(block), entry, block, costs)
        total += _top(entry)
    assert table is not None  # noqa: S101
    margin = _ending(blocks[-1].stops, n_stops, costs)
    return total + float((np.maximum(table.music[-1], table.filler[-1]) - margin).max())


def best_path(
    likelihoods: BlockLikelihoods,
    blocks: Sequence[Block],
    n_stops: int,
    costs: PathCosts,
    arrivals: BlockLikelihoods | None = None,
) -> DecodedPath:
    """Find the best path.

    Parameters
    ----------
    likelihoods : callable
        Returns the likelihoods of a block; long searches call it twice per block.
    blocks : sequence of Block
        Blocks in order, with frames that neither overlap nor leave gaps; the stops of neighbours overlap.
    n_stops : int
        Number of stops of the whole course.
    costs : PathCosts
    arrivals : callable, optional
        Returns what a path gains by arriving at each stop of a block in each frame, in nats.

    Returns
    -------
    DecodedPath

    Examples
    --------
    >>> nats = np.array([[5, 0, 0], [0, 5, 0], [0, 5, 0], [0, 0, 5]], np.float32)  # (frames, stops)
    >>> costs = PathCosts(max_step=2)
    >>> path = best_path(lambda block: nats[block.frames, block.stops], whole_blocks(4, 3), 3, costs)
    >>> path.stop.tolist()
    [0, 1, 1, 2]
    """

    def fill(block: Block, entry: _Entry | None) -> _Table:
        arrival = None if arrivals is None else arrivals(block)
        return _fill(likelihoods(block), entry, block, costs, arrival)

    keep = sum(len(range(n_stops)[b.stops]) * (b.frames.stop - b.frames.start) for b in blocks) <= _KEPT_CELLS
    entries: list[_Entry | None] = []
    tables: list[_Table | None] = []
    table: _Table | None = None
    for before, block in zip([None, *blocks], blocks, strict=False):
        entries.append(_entry(table, before, block))
        table = fill(block, entries[-1])
        tables.append(table if keep else None)
    assert table is not None  # noqa: S101
    margin = _ending(blocks[-1].stops, n_stops, costs)
    local = int((np.maximum(table.music[-1], table.filler[-1]) - margin).argmax())
    place = (local + blocks[-1].stops.start, bool(table.filler[-1, local] > table.music[-1, local]))
    pieces: list[DecodedPath] = []
    for block, entry, kept in zip(reversed(blocks), reversed(entries), reversed(tables), strict=True):
        table = kept or fill(block, entry)
        piece, place = _trace_block(table, entry, block, place, costs)
        pieces.append(piece)
    pieces.reverse()
    return DecodedPath(
        stop=np.concatenate([piece.stop for piece in pieces]),
        is_filler=np.concatenate([piece.is_filler for piece in pieces]),
        gap=np.concatenate([piece.gap for piece in pieces]),
    )


def _entry(table: _Table | None, before: Block | None, block: Block) -> _Entry | None:
    """Carry the last row of a block over to the stops of the next one."""
    if table is None or before is None:
        return None
    lo, hi = max(before.stops.start, block.stops.start), min(before.stops.stop, block.stops.stop)
    rows = []
    for values in (table.music[-1], table.filler[-1]):
        row = np.full(block.stops.stop - block.stops.start, _NEVER, dtype=np.float32)
        row[lo - block.stops.start : hi - block.stops.start] = values[
            lo - before.stops.start : hi - before.stops.start
        ]
        rows.append(row)
    return _Entry(*rows)


def _top(entry: _Entry | None) -> float:
    """Return what is subtracted from the likelihoods of a block to keep them near 0, where float32 is precise."""
    return 0.0 if entry is None else float(max(entry.music.max(), entry.filler.max()))


def _counted(stops: slice, costs: PathCosts) -> Float32:
    """Return cumulative weights of some stops: before each of them, and in total [shape=(n_stops + 1,)]."""
    n_stops = stops.stop - stops.start
    weight = np.ones(n_stops) if costs.weight is None else costs.weight[stops]
    return np.append(0.0, np.cumsum(weight, dtype=np.float64)).astype(np.float32)


def _beginning(stops: slice, costs: PathCosts) -> Float32:
    """Return the cost of beginning at each of some stops; the first stop of the course is free."""
    before = _counted(slice(0, stops.stop), costs)[stops.start : -1]
    return np.asarray(np.minimum(costs.left_out * before, costs.margin), dtype=np.float32)


def _ending(stops: slice, n_stops: int, costs: PathCosts) -> Float32:
    """Return the cost of ending at each of some stops; the last stop of the course is free."""
    counted = _counted(slice(stops.start, n_stops), costs)
    after = (counted[-1] - counted[1:])[: stops.stop - stops.start]
    return np.asarray(np.minimum(costs.cut_off * after, costs.margin), dtype=np.float32)


def _fill(
    emission: Float32, entry: _Entry | None, block: Block, costs: PathCosts, arrival: Float32 | None = None
) -> _Table:
    """Compute a block frame by frame."""
    n_frames, width = emission.shape
    table = _Table(emission, np.empty_like(emission), np.empty_like(emission), arrival)
    passed = np.float32(costs.skip) * _counted(block.stops, costs)
    entering = np.float32(costs.filler)
    either = np.empty(width, dtype=np.float32)
    padded = np.full(costs.max_step + width, _NEVER, dtype=np.float32)
    if entry is None:
        table.filler[0] = -_beginning(block.stops, costs)
        table.music[0] = table.filler[0] + emission[0]
        music, filler = table.music[0], table.filler[0]
    else:
        top = np.float32(_top(entry))
        music, filler = entry.music - top, entry.filler - top
    for frame in range(1 if entry is None else 0, n_frames):
        np.maximum(music, filler, out=either)
        np.add(either, passed[1:], out=padded[costs.max_step :])
        arriving = window_maximum(padded, costs.max_step)[:width]
        here, other = table.music[frame], table.filler[frame]
        np.subtract(arriving, passed[:-1], out=here)
        if arrival is not None:
            here += arrival[frame]
        np.maximum(here, either, out=here)
        here += emission[frame]
        np.subtract(music, entering, out=other)
        np.maximum(other, filler, out=other)
        music, filler = here, other
    return table


def window_maximum(values: Float32, size: int) -> Float32:
    """Return the maximum of every `size` successive values; `size` is a power of two."""
    reach = 1
    while reach < size:
        values = np.maximum(values[reach:], values[:-reach])
        reach *= 2
    return values


def _trace_block(
    table: _Table, entry: _Entry | None, block: Block, place: tuple[int, bool], costs: PathCosts
) -> tuple[DecodedPath, tuple[int, bool]]:
    """Trace a path back from its place in the last frame of a block; also return its place before the block."""
    n_frames = len(table.music)
    music, filler = table.music, table.filler
    if entry is not None:
        music, filler = np.vstack((entry.music, music)), np.vstack((entry.filler, filler))
    either = np.maximum(music, filler)
    passed = np.float32(costs.skip) * _counted(block.stops, costs)
    stop = np.empty(n_frames, dtype=np.int64)
    is_filler = np.empty(n_frames, dtype=bool)
    local, other = place[0] - block.stops.start, place[1]
    before = len(music) - 2  # row of the previous frame
    for frame in range(n_frames - 1, -1, -1):
        stop[frame], is_filler[frame] = local, other
        if before < 0:
            break
        if other:
            other = bool(filler[before, local] >= music[before, local] - np.float32(costs.filler))
        else:
            gain = 0.0 if table.arrival is None else float(table.arrival[frame, local])
            local = _source(either[before], local, passed, costs, gain)
            other = bool(filler[before, local] > music[before, local])
        before -= 1
    chosen = np.where(is_filler, 0.0, table.emission[np.arange(n_frames), stop])
    gap = (chosen - np.maximum(table.emission.max(axis=1), 0.0)).astype(np.float32)
    offset = block.stops.start
    return DecodedPath(stop + offset, is_filler, gap), (local + offset, other)


def _source(either: Float32, local: int, passed: Float32, costs: PathCosts, gain: float = 0.0) -> int:
    """Return the previous stop of a path that is now at stop `local`, where arriving gains some nats."""
    first = max(0, local - costs.max_step)
    arriving = either[first:local] - (passed[local] - passed[first + 1 : local + 1]) + np.float32(gain)
    if len(arriving) and float(arriving.max()) > float(either[local]):
        return local - 1 - int(arriving[::-1].argmax())
    return local
