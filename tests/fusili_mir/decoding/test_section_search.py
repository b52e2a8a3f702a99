from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from fusili_mir.arrays import Int64
from fusili_mir.decoding.course import Course
from fusili_mir.decoding.rough_search import DecodingOptions
from fusili_mir.decoding.section_lattice import SectionGraph, build_lattice
from fusili_mir.decoding.section_search import search_sections
from fusili_mir.decoding.similarity import CourseSimilarity, unit_vectors

FRAME_SEC, SCALE = 0.04, 10.0
N_MEASURES, STOPS, FRAMES = 12, 6, 12  # stops in a measure, frames in a stop

# |: 1 2 3 4 [1. 5 :| [2. 6 | 7 ... 12
SECTIONS = [(0, 4), (4, 5), (0, 4), (5, 6), (6, 12)]
EDGES = [(0, 1), (0, 3), (1, 2), (2, 3), (3, 4)]

REPEATED = ((0, 5), (0, 4), (5, 12))
NOT_REPEATED = ((0, 4), (5, 12))


def graph(
    cut_cost: float | None = None, measures: Int64 | None = None, return_cost: float | None = None
) -> SectionGraph:
    cut_costs = None if cut_cost is None else np.full(N_MEASURES, cut_cost, np.float32)
    if cut_costs is not None and return_cost is not None:
        cut_costs[-1] = return_cost
    return SectionGraph(
        first=np.array([first for first, _ in SECTIONS]),
        end=np.array([end for _, end in SECTIONS]),
        source=np.array([source for source, _ in EDGES]),
        target=np.array([target for _, target in EDGES]),
        cost=np.full(len(EDGES), 0.5, np.float32),
        may_end=np.array([False, False, False, False, True]),
        measures=STOPS * np.arange(N_MEASURES + 1) if measures is None else measures,
        cut_cost=cut_costs,
    )


def recording(
    *played: tuple[int, int], alike: tuple[int, int] | None = None, seed: int = 0, noise: float = 1.5
) -> CourseSimilarity:
    """Play stretches of measures of a score in which every stop sounds different, but for two measures."""
    rng = np.random.default_rng(seed)
    stops = unit_vectors(rng.normal(size=(N_MEASURES * STOPS, 32)))
    if alike is not None:
        one, other = (STOPS * measure for measure in alike)
        stops[other : other + STOPS] = stops[one : one + STOPS]
    order = np.concatenate([np.arange(STOPS * first, STOPS * end) for first, end in played]).repeat(FRAMES)
    frames = unit_vectors(stops[order] + noise * rng.normal(size=(len(order), 32)) / np.sqrt(32))
    steps = np.arange(len(stops) + 1)
    course = Course(steps[:-1], steps, steps.astype(np.float64))
    return CourseSimilarity(stops[:, None], np.ones((len(stops), 1), bool), frames, course)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("played", [REPEATED, NOT_REPEATED])
def test_a_repeat_is_found_as_it_was_played(played: tuple[tuple[int, int], ...], seed: int) -> None:
    found = search_sections(recording(*played, seed=seed), graph(), FRAME_SEC, SCALE)
    assert found.measures == played
    assert found.probability > 0.99


def test_what_an_excerpt_leaves_open_is_filled_in_the_shortest_way() -> None:
    assert search_sections(recording((7, 12)), graph(), FRAME_SEC, SCALE).measures == NOT_REPEATED
    assert search_sections(recording((0, 3)), graph(), FRAME_SEC, SCALE).measures == NOT_REPEATED
    assert search_sections(recording((2, 5), (0, 2)), graph(), FRAME_SEC, SCALE).measures == REPEATED


def test_where_both_endings_sound_alike_a_recording_that_breaks_off_may_be_in_either() -> None:
    open_end = recording((0, 5), alike=(4, 5), noise=0.5)
    assert 0.3 < search_sections(open_end, graph(), FRAME_SEC, SCALE).probability < 0.7


def test_measures_that_no_sign_repeats_are_repeated_at_a_price() -> None:
    again = recording((0, 4), (5, 10), (7, 12))
    assert search_sections(again, graph(cut_cost=60.0), FRAME_SEC, SCALE).measures == (
        (0, 4),
        (5, 10),
        (7, 12),
    )
    assert search_sections(again, graph(cut_cost=1e6), FRAME_SEC, SCALE).measures == NOT_REPEATED
    assert search_sections(again, graph(), FRAME_SEC, SCALE).measures == NOT_REPEATED


def test_going_back_after_the_last_measure_may_cost_less_than_elsewhere() -> None:
    da_capo = recording((0, 4), (5, 12), (2, 4))
    prices = graph(cut_cost=1e6, return_cost=60.0)
    assert search_sections(da_capo, prices, FRAME_SEC, SCALE).measures == (*NOT_REPEATED, (2, 4), (5, 12))
    assert search_sections(da_capo, graph(cut_cost=1e6), FRAME_SEC, SCALE).measures == NOT_REPEATED


def test_both_endings_played_in_a_row_are_found_at_a_price() -> None:
    found = search_sections(recording((0, 12)), graph(cut_cost=60.0), FRAME_SEC, SCALE)
    assert found.measures == ((0, 12),)


def test_a_section_of_rests_is_passed() -> None:
    silent = STOPS * np.arange(N_MEASURES + 1)
    silent[5] = silent[4]  # the first ending has no stops: its music belongs to the second
    found = search_sections(recording((0, 4), (0, 4), (4, 12)), graph(measures=silent), FRAME_SEC, SCALE)
    assert found.measures == REPEATED


def test_long_recordings_are_searched_in_groups_with_the_same_result(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fusili_mir.decoding.section_lattice._CELLS", 2**13)
    for played in (REPEATED, NOT_REPEATED):
        assert search_sections(recording(*played), graph(), FRAME_SEC, SCALE).measures == played


@pytest.mark.parametrize("seed", range(3))
def test_no_path_races_through_a_long_piece_for_what_sounds_alike(seed: int) -> None:
    # Twelve sounds come back all the time, and frames are longer than notes: any place has something that fits.
    n_measures, rng = 120, np.random.default_rng(seed)
    sounds = unit_vectors(rng.normal(size=(12, 32)))
    stops = (
        sounds[rng.integers(12, size=n_measures * STOPS)]
        + 0.5 * rng.normal(size=(n_measures * STOPS, 32)) / 32**0.5
    )
    stops = unit_vectors(stops)
    frames = unit_vectors(stops.repeat(2, axis=0) + 3 * rng.normal(size=(2 * len(stops), 32)) / 32**0.5)
    steps = np.arange(len(stops) + 1)
    course = Course(steps[:-1], steps, steps.astype(np.float64))
    heard = CourseSimilarity(stops[:, None], np.ones((len(stops), 1), bool), frames, course)
    no_edges = np.zeros(0, np.int64)
    one_section = SectionGraph(
        first=np.array([0]),
        end=np.array([n_measures]),
        source=no_edges,
        target=no_edges,
        cost=no_edges.astype(np.float32),
        may_end=np.array([True]),
        measures=STOPS * np.arange(n_measures + 1),
        cut_cost=np.full(n_measures, 30.0, np.float32),
    )
    assert search_sections(heard, one_section, 0.1, SCALE).measures == ((0, n_measures),)


def test_only_one_of_the_two_sweeps_keeps_its_paths() -> None:
    similarity = recording(*REPEATED * 8, alike=(3, 9))
    lattice, emission = build_lattice(similarity, graph(cut_cost=30.0), FRAME_SEC, SCALE, DecodingOptions())
    tracemalloc.start()
    search_sections(similarity, graph(cut_cost=30.0), FRAME_SEC, SCALE)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    paths = 2 * 4 * len(emission) * int((lattice.section >= 0).sum())  # bytes of one sweep
    assert peak < 1.6 * paths + emission.nbytes
