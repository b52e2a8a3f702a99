"""The vectorised search against one that tries every step, state by state."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fusili_mir.arrays import Float32
from fusili_mir.decoding.viterbi import (
    Block,
    DecodedPath,
    PathCosts,
    best_likelihood,
    best_path,
    whole_blocks,
)

COSTS = PathCosts(max_step=2, skip=0.5, filler=3.0, left_out=4.0, cut_off=1.5, margin=6.0)


def counted(stops: range, costs: PathCosts) -> float:
    """Add up the weights of some stops."""
    return sum(1.0 if costs.weight is None else float(costs.weight[stop]) for stop in stops)


def step_cost(source: int, target: int, costs: PathCosts) -> float:
    """Return the cost of going from one stop to another; infinity if that is impossible."""
    possible = 0 <= target - source <= costs.max_step
    return costs.skip * counted(range(source + 1, target), costs) if possible else np.inf


def begin_cost(stop: int, costs: PathCosts) -> float:
    return min(costs.left_out * counted(range(stop), costs), costs.margin)


def end_cost(stop: int, n_stops: int, costs: PathCosts) -> float:
    return min(costs.cut_off * counted(range(stop + 1, n_stops), costs), costs.margin)


def slow_best_likelihood(likelihoods: Float32, costs: PathCosts, arrivals: Float32) -> float:
    n_frames, n_stops = likelihoods.shape
    begin = np.array([begin_cost(p, costs) for p in range(n_stops)])
    end = np.array([end_cost(p, n_stops, costs) for p in range(n_stops)])
    music, filler = likelihoods[0] - begin, -begin
    for frame in range(1, n_frames):
        either = np.maximum(music, filler)
        music, filler = (
            np.array(
                [
                    likelihoods[frame, p]
                    + max(
                        either[q] - step_cost(q, p, costs) + (arrivals[frame, p] if q != p else 0.0)
                        for q in range(n_stops)
                    )
                    for p in range(n_stops)
                ]
            ),
            np.maximum(filler, music - costs.filler),
        )
    return float((np.maximum(music, filler) - end).max())


def likelihood_of(path: DecodedPath, likelihoods: Float32, costs: PathCosts, arrivals: Float32) -> float:
    """Add up the likelihoods and costs of a path."""
    n_stops = likelihoods.shape[1]
    total = -begin_cost(int(path.stop[0]), costs) - end_cost(int(path.stop[-1]), n_stops, costs)
    for frame, (stop, is_filler) in enumerate(zip(path.stop, path.is_filler, strict=True)):
        if frame and is_filler:
            assert path.stop[frame - 1] == stop
            total -= 0.0 if path.is_filler[frame - 1] else costs.filler
        elif frame:
            total -= step_cost(int(path.stop[frame - 1]), int(stop), costs)
            total += arrivals[frame, stop] if path.stop[frame - 1] != stop else 0.0
        total += 0.0 if is_filler else likelihoods[frame, stop]
    return float(total)


def solve(
    likelihoods: Float32, costs: PathCosts, block_frames: int = 1000, arrivals: Float32 | None = None
) -> tuple[DecodedPath, float]:
    n_frames, n_stops = likelihoods.shape
    blocks = [
        Block(slice(start, min(start + block_frames, n_frames)), slice(0, n_stops))
        for start in range(0, n_frames, block_frames)
    ]

    def likelihoods_of(block: Block) -> Float32:
        return likelihoods[block.frames, block.stops]

    gains = None if arrivals is None else lambda block: arrivals[block.frames, block.stops]
    return best_path(likelihoods_of, blocks, n_stops, costs, gains), best_likelihood(
        likelihoods_of, blocks, n_stops, costs
    )


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 10_000),
    st.integers(1, 9),
    st.integers(1, 7),
    st.sampled_from([1, 2, 4]),
    st.sampled_from([0.0, 3.0]),
    st.integers(1, 5),
    st.booleans(),
)
def test_the_path_is_as_good_as_the_best_one_of_an_exhaustive_search(
    seed: int,
    n_frames: int,
    n_stops: int,
    max_step: int,
    most_arrival: float,
    block_frames: int,
    weighted: bool,
) -> None:
    rng = np.random.default_rng(seed)
    likelihoods = rng.normal(0, 3, (n_frames, n_stops)).astype(np.float32)
    weight = rng.uniform(0, 3, n_stops).astype(np.float32) if weighted else None
    arrivals = rng.uniform(0, most_arrival, (n_frames, n_stops)).astype(np.float32)
    costs = replace(COSTS, max_step=max_step, weight=weight)
    expected = slow_best_likelihood(likelihoods, costs, arrivals)
    path, likelihood = solve(likelihoods, costs, block_frames, arrivals)
    assert likelihood_of(path, likelihoods, costs, arrivals) == pytest.approx(expected, abs=1e-3)
    if not most_arrival:
        assert likelihood == pytest.approx(expected, abs=1e-3)


def test_a_search_that_keeps_only_rows_between_blocks_finds_the_same_path(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    likelihoods = np.random.default_rng(3).normal(0, 3, (50, 20)).astype(np.float32)
    kept, _ = solve(likelihoods, COSTS, block_frames=8)
    monkeypatch.setattr("fusili_mir.decoding.viterbi._KEPT_CELLS", 0)
    again, _ = solve(likelihoods, COSTS, block_frames=8)
    assert again.stop.tolist() == kept.stop.tolist()
    assert again.is_filler.tolist() == kept.is_filler.tolist()


def test_a_band_around_the_path_finds_the_same_path_as_a_search_without_one() -> None:
    true = np.repeat(np.arange(30), 4)
    likelihoods = np.full((120, 30), -5, np.float32)
    likelihoods[np.arange(120), true] = 5
    blocks = [
        Block(slice(start, start + 20), slice(max(0, start // 4 - 3), min(30, start // 4 + 9)))
        for start in range(0, 120, 20)
    ]
    path = best_path(lambda block: likelihoods[block.frames, block.stops], blocks, 30, COSTS)
    assert path.stop.tolist() == true.tolist()
    assert not path.is_filler.any()


def test_the_gap_is_how_much_worse_a_stop_is_than_the_best_of_its_frame() -> None:
    likelihoods = np.array([[4, 0], [1, 3], [4, 0], [0, 4]], np.float32)  # frame 1 is out of order
    path, _ = solve(likelihoods, replace(COSTS, filler=20.0))
    assert path.stop.tolist() == [0, 0, 0, 1]
    assert path.gap.tolist() == [0, -2, 0, 0]


def test_frames_that_fit_nothing_are_filler_before_between_and_after() -> None:
    likelihoods = np.full((40, 2), -5, np.float32)
    likelihoods[10:20, 0] = 5
    likelihoods[25:32, 1] = 5
    path, _ = solve(likelihoods, COSTS)
    assert np.flatnonzero(~path.is_filler).tolist() == [*range(10, 20), *range(25, 32)]
    assert path.stop[[0, 15, 22, 30, 39]].tolist() == [0, 0, 0, 1, 1]


def test_whole_blocks_hold_every_frame_once() -> None:
    blocks = whole_blocks(1000, 5000)
    frames = [frame for block in blocks for frame in range(block.frames.start, block.frames.stop)]
    assert frames == list(range(1000))
    assert len(blocks) > 1
