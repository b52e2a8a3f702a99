from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from example_evidence import all_sounding, nothing_heard
from example_performances import axis_of

from fusili_mir.alignment.note_places import NotePlaces, find_places
from fusili_mir.arrays import Float32, Int64
from fusili_mir.decoding.course import reading_course
from fusili_mir.decoding.similarity import CourseSimilarity, unit_vectors
from fusili_mir.decoding.stop_times import StopTimes
from fusili_mir.decoding.warping_path import decode_path
from fusili_mir.geometry import FrameGrid
from fusili_mir.pages.score_axis import ScoreAxis

SCALE = 20.0
PAPER = 0
COLUMNS = np.array([0, 1, 1, 1, 0, 0, 2, 2, 2, 0, 0, 0, 3, 3, 3, 0])
"""Three note heads, three columns wide each, and the paper between them."""


def vectors(sounds: npt.ArrayLike, noise: float = 0.0, seed: int = 0) -> Float32:
    """One axis for each sound."""
    clean = np.eye(8)[np.asarray(sounds)]
    return unit_vectors(clean + noise * np.random.default_rng(seed).normal(size=clean.shape))


def similarity_of(
    frames: npt.ArrayLike,
    columns: npt.ArrayLike,
    axis: ScoreAxis | None = None,
    played: Int64 | None = None,
    noise: float = 0.0,
) -> CourseSimilarity:
    looks = vectors(columns, noise, 1)[:, None]
    course = reading_course(np.arange(len(looks)) if played is None else played)
    return CourseSimilarity(looks, np.ones((len(looks), 1), bool), vectors(frames, noise), course)


def found(similarity: CourseSimilarity, axis: ScoreAxis) -> NotePlaces:
    return find_places(similarity, SCALE, axis, np.zeros(len(similarity.frames), bool))


def places_of(frames: npt.ArrayLike, columns: npt.ArrayLike, n_systems: int = 1) -> NotePlaces:
    axis = axis_of(len(np.asarray(columns)) // n_systems, n_systems)
    return found(similarity_of(frames, columns, axis), axis)


def times_at(*onset_sec: float) -> StopTimes:
    ones = np.ones(len(onset_sec))
    return StopTimes(np.array(onset_sec), 99.0, ones, ones, ones)


def test_a_head_of_several_columns_is_one_place_and_paper_is_not_a_place() -> None:
    places = places_of([1, 1, 2, 2, 3, 3], COLUMNS)
    assert places.first.tolist() == [1, 6, 12]
    assert places.last.tolist() == [3, 8, 14]
    assert places.course.columns.tolist() == [1, 2, 3, 6, 7, 8, 12, 13, 14]
    assert places.course.first.tolist() == [0, 3, 6, 9]
    assert not places.course.of_columns


def test_heads_that_are_not_heard_in_the_recording_are_not_places() -> None:
    assert places_of([1, 1, 3, 3], COLUMNS).first.tolist() == [1, 12]


def test_heads_side_by_side_are_two_places_if_they_sound_differently() -> None:
    places = places_of([1, 2], [0, 0, 0, 1, 1, 2, 2, 0, 0, 0])
    assert places.first.tolist() == [3, 5]
    assert places.last.tolist() == [4, 6]


def test_equal_heads_with_paper_between_them_are_two_places() -> None:
    assert places_of([1, 1], [0, 0, 0, 1, 1, 0, 1, 1, 0, 0]).first.tolist() == [3, 6]


def test_equal_heads_on_both_sides_of_a_line_break_are_two_places() -> None:
    places = places_of([1, 2], [0, 0, 2, 1, 1, 0, 0, 2], n_systems=2)
    assert places.first.tolist() == [2, 3, 4, 7]
    assert places.last.tolist() == [2, 3, 4, 7]


def test_if_nothing_resembles_the_recording_all_columns_belong_to_places() -> None:
    places = places_of([7, 7, 7], COLUMNS)
    assert places.course.columns.tolist() == list(range(len(COLUMNS)))


def test_repeated_columns_have_places_each_time_they_are_played() -> None:
    played = np.concatenate((np.arange(0, 10), np.arange(5, 16)))  # the second head twice
    axis = axis_of(16)
    places = found(similarity_of([1, 2, 2, 3], COLUMNS, axis, played), axis)
    assert played[places.first].tolist() == [1, 6, 6, 12]
    assert places.first.tolist() == [1, 6, 11, 17]


def test_paper_that_resembles_silence_is_not_a_place() -> None:
    axis = axis_of(16)
    similarity = similarity_of([1, 1, PAPER, PAPER, 2, 2, 3, 3], COLUMNS, axis)
    is_silent = np.array([False, False, True, True, False, False, False, False])
    assert find_places(similarity, SCALE, axis, is_silent).first.tolist() == [1, 6, 12]
    assert len(find_places(similarity, SCALE, axis, np.ones(8, bool)).first) > 3


CLEFS = np.tile([4, 4, 4, 0, 0, 1, 1, 0, 0, 0, 2, 2, 0, 0, 0], 3)
"""Three systems of 15 columns: a clef, a head in column 5 and one in column 10."""


def test_clefs_take_no_time_and_the_rest_of_a_system_takes_as_much_as_its_columns() -> None:
    places = places_of([1, 2, 1, 2, 1, 2], CLEFS, n_systems=3)
    assert places.lengths.tolist() == [0.0] * 5 + [1.0] * 10 + ([0.0] * 5 + [1.0] * 10) * 2
    assert places.course.start.tolist() == [0, 5, 10, 15, 20, 25, 30]


def test_the_music_moves_evenly_from_place_to_place_and_skips_clefs() -> None:
    places = places_of([1, 2, 1, 2, 1, 2], CLEFS, n_systems=3)
    times = times_at(0.0, 1.0, 3.0, 4.0, 5.0, 6.0)
    # From the middle of columns 10 and 11 to that of columns 20 and 21 are 10 columns, 5 of them a clef.
    seconds = np.array([0.0, 0.5, 1.0, 2.0, 2.59, 2.61, 3.0])
    assert places.position(times, seconds) == pytest.approx([6, 8.5, 11, 13.5, 14.975, 20.025, 21], abs=1e-9)


def test_the_music_is_left_of_the_first_place_before_it_and_right_of_the_last_one_after_it() -> None:
    places = places_of([1, 1, 2, 2, 3, 3], COLUMNS)
    position = places.position(times_at(np.nan, 1.0, 2.0), np.array([0.0, 0.99, 1.0, 2.0, 2.01, 50.0]))
    assert position == pytest.approx([6.5, 6.5, 7.5, 13.5, 14.5, 14.5])


def test_moments_are_those_of_heard_places_half_a_column_wider() -> None:
    axis = axis_of(16)  # columns of 10 px from 50 px on
    similarity = similarity_of([1, 1, 2, 2, 3, 3], COLUMNS, axis)
    places = found(similarity, axis)
    moments = places.moments(times_at(np.nan, 1.0, 2.5), similarity.course.columns, axis)
    assert moments.x0.tolist() == [50 + 60 - 5, 50 + 120 - 5]
    assert moments.x1.tolist() == [50 + 90 + 5, 50 + 150 + 5]
    assert moments.seconds.tolist() == [1.0, 2.5]
    assert moments.system.tolist() == [0, 0]


@pytest.mark.parametrize("noise", [0.0, 1e-7, 1e-5, 1e-3, 0.01])
@pytest.mark.parametrize("seed", range(3))
def test_rounding_does_not_decide_when_notes_begin(noise: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    sounds = rng.permutation(np.arange(1, 8))
    lengths = rng.integers(4, 15, len(sounds))
    heads = np.concatenate([np.repeat([PAPER, sound], [int(rng.integers(2, 6)), 3]) for sound in sounds])
    axis = axis_of(len(heads))
    similarity = similarity_of(np.repeat(sounds, lengths), heads, axis, noise=noise)
    places = found(similarity, axis)
    by_place = CourseSimilarity(similarity.embeddings, similarity.mask, similarity.frames, places.course)
    grid = FrameGrid(len(by_place.frames), 0.1)
    evidence = nothing_heard(len(places.course), grid.duration_sec)
    times = decode_path(by_place, grid, SCALE, all_sounding(len(grid)), evidence).times
    assert times.onset_sec == pytest.approx(0.1 * (np.cumsum(lengths) - lengths), abs=0.06)
