from __future__ import annotations

from itertools import combinations

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fusili_mir.arrays import Float32, Float64, Int64
from fusili_mir.decoding.course import Course
from fusili_mir.decoding.onset_evidence import NearbyOnsets, OnsetEvidence
from fusili_mir.decoding.semi_markov import (
    TimedStops,
    _best_cells,
    _Lattice,
    _Round,
    _Terms,
    _tried_cells,
    local_tempo,
    played_stops,
    time_stops,
)
from fusili_mir.decoding.similarity import CourseSimilarity, unit_vectors
from fusili_mir.decoding.stop_likelihoods import StopLikelihoods
from fusili_mir.decoding.timing_law import TimingLaw

FRAME_SEC = 0.04
LAW = TimingLaw()


class TableOnsets(OnsetEvidence):
    """Evidence from a table (stops, cells)."""

    cell_sec = 0.02
    start_sec = 0.0
    sound_weight = 0.15
    certainty = None
    n_cells = 0

    def __init__(self, table: Float32, start_sec: float = 0.0) -> None:
        self.table, self.start_sec, self.n_cells = table, start_sec, table.shape[1]

    def nats(self, stop: int, cells: slice) -> Float32:
        return self.table[stop, cells]

    def block(self, cells: Int64, stops: slice) -> Float32:
        return np.zeros((len(cells) - 1, stops.stop - stops.start), np.float32)

    def refined(self, stops: Int64, seconds: Float64) -> Float64:
        return seconds

    def activation(self, stops: Int64, seconds: Float64) -> Float64:
        return np.zeros(len(stops))

    def nearby(self, stops: Int64, seconds: Float64) -> NearbyOnsets:
        return NearbyOnsets.unknown(len(stops))


def likelihoods_of(frames: npt.ArrayLike, start: npt.ArrayLike, sounds: npt.ArrayLike) -> StopLikelihoods:
    """One column per stop; ``sounds[p]`` is what stop p looks like, ``frames[m]`` what is heard."""
    times = np.asarray(start, np.float64)
    looks = unit_vectors(np.asarray(sounds, np.float32))[:, None]
    course = Course(np.arange(len(looks)), np.arange(len(looks) + 1), times)
    heard = unit_vectors(np.asarray(frames, np.float32))
    similarity = CourseSimilarity(looks, np.ones((len(looks), 1), bool), heard, course)
    return StopLikelihoods.of(similarity, 10.0, np.float32(0.5), np.zeros(len(heard), bool))


def random_terms(seed: int, n_stops: int, n_cells: int) -> _Terms:
    """Stops of random durations, one of them a grace note, in a lattice of random cells."""
    rng = np.random.default_rng(seed)
    lasting = np.asarray(rng.choice([0.0, 0.5, 1.0, 2.0], n_stops), np.float64)
    evidence = TableOnsets(rng.normal(0, 3, (n_stops, n_cells)).astype(np.float32), start_sec=0.005)
    first = np.sort(rng.integers(0, n_cells // 2, n_stops))
    end = np.maximum(np.sort(rng.integers(n_cells // 2, n_cells, n_stops)), first + n_stops)
    sounds = rng.normal(size=(n_stops, 6))
    heard = rng.normal(size=(n_cells // 2 + 2, 6))
    likelihoods = likelihoods_of(heard, np.append(0.0, np.cumsum(lasting)), sounds)
    expected_sec = [LAW.expected_sec(float(each), 0.15) for each in lasting]
    return _Terms(
        np.arange(n_stops), expected_sec, lasting, _Lattice(first, end), likelihoods, evidence, 0.01, FRAME_SEC,
        LAW, _Round(1.0, 24, 400, 1.2),
    )  # fmt: skip


def slow_totals(terms: _Terms, arrival_sec: float) -> dict[tuple[int, ...], float]:
    """Log-likelihood of every way to time the stops, term by term."""
    first, end, evidence = terms.lattice.first, terms.lattice.end, terms.evidence
    n_stops = len(terms.stops)
    onset = [terms.onset(number).astype(float) for number in range(n_stops)]
    costs: list[dict[int, float]] = []
    for number in range(n_stops - 1):
        lasting, cost = terms.durations(number)
        costs.append(dict(zip(lasting.tolist(), cost.tolist(), strict=True)))
    sounds = [(here.astype(float), there.astype(float)) for here, there in terms.sounds()]
    totals = {}
    for cells in combinations(range(int(first.min()), int(end.max())), n_stops):
        lasts = np.diff(cells).tolist()
        if np.any(cells < first) or np.any(cells >= end):
            continue
        if any(last not in cost for last, cost in zip(lasts, costs, strict=True)):
            continue
        total = sum(onset[n][cells[n] - first[n]] for n in range(n_stops))
        total -= 0.5 * abs(evidence.start_sec + (cells[0] + 0.5) * evidence.cell_sec - arrival_sec)
        for n in range(n_stops - 1):
            total -= costs[n][lasts[n]]
            total += sounds[n][1][cells[n + 1] - first[n + 1]] - sounds[n][0][cells[n] - first[n]]
        totals[cells] = float(total)
    return totals


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.integers(2, 4))
def test_the_search_finds_what_trying_everything_finds_and_is_as_sure(seed: int, n_stops: int) -> None:
    terms = random_terms(seed, n_stops, n_cells={2: 60, 3: 36, 4: 22}[n_stops])
    totals = slow_totals(terms, arrival_sec=0.2)
    cells, probability, spread_sec, rival = _best_cells(terms, np.array([0.2]), with_probability=True)
    assert totals[tuple(cells.tolist())] == pytest.approx(max(totals.values()), abs=1e-3)
    ways, nats = np.array(list(totals)), np.array(list(totals.values()))
    share = np.exp(nats - nats.max()) / np.exp(nats - nats.max()).sum()
    near = [share[np.abs(ways[:, n] - cells[n]) <= 5].sum() for n in range(n_stops)]  # 5 cells are 0.1 s
    assert probability == pytest.approx(near, abs=2e-3)
    squares = share @ (0.02 * (ways - cells)) ** 2  # of the distance in seconds, for each stop
    assert spread_sec == pytest.approx(np.sqrt(squares), abs=2e-3)
    for n in range(n_stops):
        by_cell = {cell: np.log(share[ways[:, n] == cell].sum()) for cell in np.unique(ways[:, n]).tolist()}
        here = max(nats for cell, nats in by_cell.items() if abs(cell - cells[n]) <= 5)
        elsewhere = [nats for cell, nats in by_cell.items() if abs(cell - cells[n]) > 5]
        assert min(rival[n], 30) == pytest.approx(min(here - max(elsewhere, default=-1e9), 30), abs=2e-3)


def test_the_likelihoods_of_frames_count_from_the_cell_of_a_stop_to_that_of_the_next() -> None:
    terms = random_terms(3, 3, 40)
    first, end = terms.lattice.first, terms.lattice.end
    frames = np.arange(22)
    for number, (here, there) in enumerate(terms.sounds()):
        nats = 0.15 * np.maximum(terms.likelihoods.pairs(frames, np.full(22, number)), -2.0)
        after = min(number + 1, 2)
        for cell, last in ((first[number], end[after] - 1), (end[number] - 1, end[after] - 1)):
            begin, stop = (((c + 0.5) * 0.02 + 0.005 - 0.01) / FRAME_SEC for c in (cell, last))
            covered = np.clip(np.minimum(frames + 1, stop) - np.maximum(frames, begin), 0, 1)
            summed = there[last - first[after]] - here[cell - first[number]]
            assert summed == pytest.approx(float((covered * nats).sum()), abs=1e-4)


def timed(onsets_sec: Float64, path_sec: npt.ArrayLike, end_sec: float, are_alike: bool = True) -> TimedStops:
    """Time stops of a beat each, whose onsets all sound alike, from where a path has them."""
    starts, n_stops = np.asarray(path_sec, np.float64), len(onsets_sec)
    table = np.full((n_stops, round(end_sec / 0.02)), -4.0, np.float32)
    table[:, np.floor(onsets_sec / 0.02).astype(int)] = 4.0
    frame = np.arange(round(end_sec / FRAME_SEC))
    sounds = np.ones((n_stops, 2)) if are_alike else np.eye(n_stops)
    heard = sounds[np.maximum(np.searchsorted(onsets_sec, (frame + 0.5) * FRAME_SEC) - 1, 0)]
    frame = frame[round(starts[0] / FRAME_SEC) :]
    stop = np.searchsorted(np.rint(starts / FRAME_SEC), frame, side="right") - 1
    likelihoods = likelihoods_of(heard, np.arange(n_stops + 1.0), sounds)
    return time_stops(stop, frame, likelihoods, TableOnsets(table), 0.0, FRAME_SEC)


def test_five_equal_chords_at_a_steady_tempo_are_told_apart_by_tempo_and_onsets() -> None:
    onsets_sec = 0.51 + 0.4 * np.arange(5.0)
    found = timed(onsets_sec, [0.52, 0.64, 1.6, 1.72, 2.12], 3.0)
    assert found.stops.tolist() == [0, 1, 2, 3, 4]
    assert found.seconds == pytest.approx(onsets_sec, abs=1e-9)
    assert found.probability.min() > 0.9


@pytest.mark.parametrize("pause_sec", [0.5, 1.0, 2.0, 4.0, 7.0, 20.0])
def test_a_pause_on_a_short_note_ends_on_the_onset(pause_sec: float) -> None:
    number = np.arange(60.0)
    onsets_sec = 0.51 + 0.2 * number + np.where(number > 30, pause_sec, 0.0)
    path_sec = onsets_sec + np.where(number % 2, 0.07, -0.05)
    found = timed(onsets_sec, path_sec, onsets_sec[-1] + 1.0, are_alike=False)
    assert found.seconds == pytest.approx(onsets_sec, abs=1e-9)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 12))
def test_times_are_strictly_increasing_and_inside_the_recording(seed: int, n_stops: int) -> None:
    rng = np.random.default_rng(seed)
    beats = np.append(0.0, np.cumsum(rng.choice([0.0, 0.25, 1.0, 4.0], n_stops)))
    likelihoods = likelihoods_of(rng.normal(size=(60, 3)), beats, rng.normal(size=(n_stops, 3)))
    stop = np.sort(rng.integers(0, n_stops, 40))
    frame = np.sort(rng.permutation(60)[:40])
    table = rng.normal(0, 3, (n_stops, 120)).astype(np.float32)
    found = time_stops(stop, frame, likelihoods, TableOnsets(table), 0.0, FRAME_SEC)
    assert found.stops.tolist() == played_stops(stop).tolist()
    assert np.all(np.diff(found.seconds) > 0)
    assert 0.0 <= found.seconds[0] <= found.seconds[-1] <= 2.4
    assert np.all((found.probability >= 0) & (found.probability <= 1 + 1e-6))


def test_up_to_three_stops_that_a_path_passes_were_played_and_more_were_left_out() -> None:
    assert played_stops(np.array([2, 2, 3, 7, 7])).tolist() == [2, 3, 4, 5, 6, 7]
    assert played_stops(np.array([2, 2, 3, 8, 8, 9])).tolist() == [2, 3, 8, 9]
    assert played_stops(np.array([4, 4])).tolist() == [4]


def test_the_tempo_of_a_straight_line_is_its_slope_and_a_change_is_followed() -> None:
    lasting = np.array([1.0, 0.5, 0.5, 2.0, 0.0, 1.0, 1.0])
    position = np.cumsum(lasting) - lasting
    for n_smoothed in (1, 3, 40):
        assert local_tempo(lasting, 7.0 + 0.4 * position, n_smoothed) == pytest.approx([0.4] * 7)
    arrival_sec = np.append(0.5 * np.arange(50), 25 + 1.0 * np.arange(50))
    tempo = local_tempo(np.ones(100), arrival_sec, 10)
    assert tempo[[0, 20, 39, 60, 80, 99]] == pytest.approx([0.5] * 3 + [1.0] * 3)
    assert local_tempo(np.ones(1), np.array([3.0]), 10).tolist() == [0.5]  # a single stop has none


@pytest.mark.parametrize(("n_usual", "n_durations"), [(6, 10), (10, 10), (11, 10), (400, 60)])
def test_durations_that_are_tried_grow_up_to_the_longest_usual_one_and_beyond(n_usual, n_durations) -> None:
    cells = _tried_cells(n_usual, n_durations, 0.02)
    usual, long = cells[cells <= n_usual], cells[cells > n_usual]
    assert (np.diff(cells) > 0).all()
    assert (cells[0], usual[-1], long[0], long[-1]) == (1, n_usual, n_usual + 1, 3 * n_usual + 125)  # 2.5 s
    assert len(usual) == n_usual if n_usual <= n_durations else n_durations / 2 < len(usual) <= n_durations
    assert len(long) <= 12
