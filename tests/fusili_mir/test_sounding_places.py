from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest
from example_performances import axis_of

from fusili_mir.course import reading_course
from fusili_mir.decoding import WarpingPath, decode_path
from fusili_mir.geometry import FrameGrid
from fusili_mir.similarity import CourseSimilarity, Float32, unit_vectors
from fusili_mir.sounding_places import SoundingPlaces, sounding_places

SCALE = 20.0
PAPER = 0
COLUMNS = np.array([0, 1, 1, 1, 0, 0, 2, 2, 2, 0, 0, 0, 3, 3, 3, 0])
"""Three note heads, three columns wide each, and the paper between them."""


def vectors(sounds: npt.NDArray[np.int64], noise: float = 0.0, seed: int = 0) -> Float32:
    """One axis for each sound."""
    clean = np.eye(8)[sounds]
    return unit_vectors(clean + noise * np.random.default_rng(seed).normal(size=clean.shape))


def similarity_of(
    frames: npt.NDArray[np.int64], columns: npt.NDArray[np.int64], noise: float = 0.0
) -> CourseSimilarity:
    course = reading_course(axis_of(len(columns)))
    return CourseSimilarity(
        vectors(columns, noise, 1)[:, None], np.ones((len(columns), 1), bool), vectors(frames, noise), course
    )


def walked(stops: list[int], is_filler: list[bool] | None = None) -> WarpingPath:
    ones = np.ones(len(stops), np.float32)
    return WarpingPath(np.array(stops), np.array(is_filler or [False] * len(stops)), ones, ones, 1.0)


def places_of(path: WarpingPath, similarity: CourseSimilarity) -> SoundingPlaces:
    return sounding_places(path, similarity, SCALE, FrameGrid(len(path.stop), 0.1))


@pytest.mark.parametrize("stops", [[1, 1, 1, 6, 6, 6], [3, 3, 3, 8, 8, 8], [1, 2, 3, 6, 6, 8]])
def test_a_head_begins_when_the_path_comes_to_any_of_its_columns(stops: list[int]) -> None:
    places = places_of(walked(stops), similarity_of(np.array([1, 1, 1, 2, 2, 2]), COLUMNS))
    assert places.onset_sec == pytest.approx([0.0, 0.3])
    assert places.first.tolist() == [1.5, 6.5]
    assert places.last.tolist() == [3.5, 8.5]


def test_of_heads_that_sound_alike_the_first_begins() -> None:
    columns = np.array([0, 1, 1, 0, 2, 2, 0, 2, 2, 0])
    places = places_of(walked([1, 1, 4, 4, 7, 7]), similarity_of(np.array([1, 1, 2, 2, 2, 2]), columns))
    assert places.onset_sec == pytest.approx([0.0, 0.2])
    assert places.first.tolist() == [1.5, 4.5]
    assert places.last.tolist() == [2.5, 5.5]


def test_a_place_is_crossed_when_it_begins_and_then_left_evenly_for_the_next() -> None:
    places = SoundingPlaces(np.array([1.0, 9.0]), np.array([3.0, 12.0]), np.array([2.0, 5.0]))
    seconds = np.array([0.0, 1.9, 2.1, 3.5, 4.9, 5.1, 9.0])
    assert places.position(seconds, np.ones(20)) == pytest.approx([1, 1, 3.2, 6, 8.8, 12, 12])


def test_stops_without_length_are_passed_in_no_time() -> None:
    places = SoundingPlaces(np.array([0.0, 10.0]), np.array([0.0, 10.0]), np.array([0.0, 5.0]))
    lengths = np.array([1, 1, 0, 0, 0, 0, 0, 1, 1, 1], float)
    assert places.position(np.array([1.0, 1.9, 2.1, 3.0]), lengths) == pytest.approx([1, 1.9, 7.1, 8])


def test_an_onset_after_silence_is_where_the_music_goes_on() -> None:
    frames = np.array([7, 7, 1, 1, 7, 7, 2, 2])
    path = walked([1, 1, 1, 1, 1, 1, 6, 6], [True, True, False, False, True, True, False, False])
    places = places_of(path, similarity_of(frames, COLUMNS))
    assert places.onset_sec == pytest.approx([0.2, 0.6])


def test_a_glimpse_of_a_head_between_two_others_is_not_taken_for_its_onset() -> None:
    columns = np.array([1, 1, 0, 0, 2, 2, 0, 0, 3, 3])
    similarity = similarity_of(np.array([1] * 5 + [3] * 5), columns)
    mixed = unit_vectors(np.eye(8)[[1]] + np.eye(8)[[3]] + 0.1 * np.eye(8)[[2]])  # both notes in one frame
    frames = np.concatenate((similarity.frames[:4], mixed, similarity.frames[5:]))
    places = places_of(walked([1] * 4 + [5] + [8] * 5), replace(similarity, frames=frames))
    assert places.first.tolist() == [0.5, 8.5]
    assert places.onset_sec == pytest.approx([0.0, 0.45], abs=0.051)


def test_a_wide_place_ends_where_a_note_head_would() -> None:
    columns = np.array([1, 1, 0, 2, 2, 2, 2, 2, 2, 0, 3, 3])  # three heads of sound 2 touch each other
    places = places_of(walked([0] * 4 + [3] * 4 + [10] * 4), similarity_of(np.repeat([1, 2, 3], 4), columns))
    assert places.first.tolist() == [0.5, 3.5, 10.5]
    assert places.last.tolist() == [1.5, 4.5, 11.5]


def test_where_nothing_sounds_like_the_score_there_is_one_place() -> None:
    places = places_of(walked([2] * 5, [True] * 5), similarity_of(np.full(5, 7), COLUMNS))
    assert places.onset_sec.tolist() == [0.0]
    assert places.first[0] <= 2.5 <= places.last[0]


@pytest.mark.parametrize("noise", [0.0, 1e-7, 1e-5, 1e-3, 0.01])
@pytest.mark.parametrize("seed", range(4))
def test_rounding_does_not_decide_when_notes_begin(noise: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    sounds = rng.permutation(np.arange(1, 8))
    lengths = rng.integers(4, 15, len(sounds))
    heads = [np.repeat([PAPER, sound], [rng.integers(2, 6), 3]) for sound in sounds]
    similarity = similarity_of(np.repeat(sounds, lengths), np.concatenate(heads), noise)
    path = decode_path(similarity, 0.1, SCALE)
    onsets = places_of(path, similarity).onset_sec
    assert onsets == pytest.approx(0.1 * (np.cumsum(lengths) - lengths), abs=0.01)
