from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fusili_mir.arrays import Float32, Float64, Int64
from fusili_mir.audio.sound_envelope import FrameSound
from fusili_mir.decoding.course import Course
from fusili_mir.decoding.similarity import CourseSimilarity, unit_vectors
from fusili_mir.decoding.steady_path import _best_arrivals, _local_tempo, _played_stops, settle
from fusili_mir.decoding.stop_likelihoods import StopLikelihoods
from fusili_mir.decoding.viterbi import Block
from fusili_mir.decoding.warping_path import decode_path

SCALE = 20.0
FRAME_SEC = 0.04
SPREAD = 0.2


def course_of(columns: Int64, lasting: Float64 | None = None) -> Course:
    lasting = np.ones(len(columns)) if lasting is None else lasting
    return Course(columns, np.arange(len(columns) + 1), np.append(0.0, np.cumsum(lasting)))


def random_likelihoods(rng: np.random.Generator, n_frames: int, n_stops: int) -> StopLikelihoods:
    similarity = CourseSimilarity(
        unit_vectors(rng.normal(size=(n_stops, 1, 3))),
        np.ones((n_stops, 1), bool),
        unit_vectors(rng.normal(size=(n_frames, 3))),
        course_of(np.arange(n_stops)),
    )
    return StopLikelihoods.of(similarity, 4.0, np.float32(1.0), rng.random(n_frames) < 0.2)


def total(arrival: tuple[int, ...], stops: Int64, expected: Float64, nats: Float32, onset: Float32) -> float:
    """The value of beginning stops in some frames, term by term."""
    worth = 0.0
    for number, begin in enumerate(arrival):
        is_last = number + 1 == len(stops)
        end = len(onset) if is_last else arrival[number + 1]
        worth += float(onset[begin]) if end > begin else 0.0
        worth += sum(max(float(nats[frame, stops[number]]), -2.0) for frame in range(begin, end))
        if not is_last:
            ratio = np.log((end - begin + 0.7) / (expected[number] + 0.7))
            variance = SPREAD**2 + (0.7 / (expected[number] + 0.7)) ** 2
            worth -= min(ratio**2 / (2 * variance), 30.0)
    return worth


@pytest.mark.parametrize("block_stops", [1, 2, 16])
@settings(max_examples=10, deadline=None)
@given(st.integers(0, 10_000))
def test_no_other_arrivals_within_reach_have_a_higher_value(block_stops: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    n_frames, reach = int(rng.integers(1, 10)), 2
    likelihoods = random_likelihoods(rng, n_frames, 6)
    stops = np.sort(rng.choice(6, 4, replace=False))
    onset = rng.normal(size=n_frames).astype(np.float32)
    expected = rng.uniform(0, 4, 4)
    arrival = np.sort(rng.uniform(0, n_frames - 1, 4))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("fusili_mir.decoding.steady_path._BLOCK_STOPS", block_stops)
        found = _best_arrivals(stops, arrival, expected, likelihoods, onset, reach, SPREAD)

    nats = likelihoods(Block(slice(0, n_frames), slice(0, 6)))
    earliest = np.maximum(np.rint(arrival) - reach, 0).astype(int)
    windows = [range(first, min(first + 2 * reach + 1, n_frames)) for first in earliest]
    rising = [each for each in product(*windows) if list(each) == sorted(each)]
    best = max(total(each, stops, expected, nats, onset) for each in rising)
    chosen = tuple(found.astype(int).tolist())
    assert chosen in rising
    assert total(chosen, stops, expected, nats, onset) == pytest.approx(best, abs=1e-3)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10_000))
def test_a_settled_path_is_non_decreasing_and_has_only_stops_that_were_played(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n_frames, n_stops = int(rng.integers(1, 80)), int(rng.integers(1, 30))
    stop = np.sort(rng.integers(0, n_stops, n_frames))
    onset = rng.normal(size=n_frames).astype(np.float32)
    settled = settle(stop, random_likelihoods(rng, n_frames, n_stops), onset, FRAME_SEC)
    assert settled.shape == stop.shape
    assert np.all(np.diff(settled) >= 0)
    assert settled[-1] >= 0
    assert set(settled.tolist()) <= {-1, *_played_stops(stop).tolist()}


def test_up_to_three_stops_in_a_row_may_have_been_skipped_and_more_were_left_out() -> None:
    assert _played_stops(np.array([2, 2, 6, 11])).tolist() == [2, 3, 4, 5, 6, 11]


def test_the_local_tempo_is_the_slope_of_a_line_through_the_arrivals_nearby() -> None:
    lasting = np.array([1.0, 2.0, 1.0, 0.5, 1.5, 1.0, 1.0, 2.0])
    position = np.cumsum(lasting) - lasting
    arrival = np.array([0.0, 9.0, 31.0, 40.0, 44.0, 61.0, 70.0, 79.0])
    found = _local_tempo(lasting, arrival, 2)
    for number in range(8):
        near = slice(max(number - 2, 0), number + 3)
        assert found[number] == pytest.approx(np.polyfit(position[near], arrival[near], 1)[0])


@pytest.mark.parametrize("n_stops", [1, 2, 5])
def test_stops_that_last_no_time_have_the_tempo_of_the_whole_path(n_stops: int) -> None:
    assert np.isfinite(_local_tempo(np.zeros(n_stops), np.arange(n_stops) * 3.0, 4)).all()
    lasting = np.array([2.0, 0.0, 0.0, 0.0, 2.0, 1.0])
    found = _local_tempo(lasting, np.array([0.0, 20, 20, 20, 20, 40]), 1)
    assert found[2] == pytest.approx(10.0)


A, B, C = 1, 2, 3
CHORDS = np.array([B, A, A, A, A, A, A, C])
"""Sounds of eight stops: six times the same chord, between two others."""


def performed(frames_of_stop: Int64) -> CourseSimilarity:
    """Play each chord for a given number of frames."""
    looks = np.eye(8, dtype=np.float32)
    sounds = np.repeat(CHORDS, frames_of_stop)
    return CourseSimilarity(
        looks[CHORDS][:, None], np.ones((len(CHORDS), 1), bool), looks[sounds], course_of(np.arange(8))
    )


def heard_at(begins: Int64, n_frames: int) -> FrameSound:
    """Sound with onsets in some frames and nowhere else."""
    onset = np.full(n_frames, -1.0, np.float32)
    onset[begins] = 2.0
    return FrameSound(onset, np.zeros(n_frames, bool))


def begins_of(stop: Int64) -> Int64:
    return np.searchsorted(stop, np.arange(8))


@pytest.mark.parametrize(
    "lasting", [[10] * 8, [10, 12, 9, 11, 8, 12, 10, 10], [10, 8, 9, 10, 11, 12, 13, 10]]
)
def test_equal_chords_in_a_row_each_begin_with_their_own_onset(lasting: list[int]) -> None:
    begins = np.cumsum(lasting) - lasting
    path = decode_path(performed(np.array(lasting)), FRAME_SEC, SCALE, sound=heard_at(begins, sum(lasting)))
    assert begins_of(path.stop).tolist() == begins.tolist()
    assert not path.is_filler.any()


def test_equal_chords_in_a_row_are_spread_evenly_where_no_onsets_are_known() -> None:
    lasting = np.array([10, 12, 9, 11, 8, 12, 8, 10])
    path = decode_path(performed(lasting), FRAME_SEC, SCALE)
    assert begins_of(path.stop)[[0, 1, 7]].tolist() == [0, 10, 70]
    assert begins_of(path.stop) == pytest.approx(10 * np.arange(8), abs=1)


def test_equal_chords_of_unequal_length_last_as_long_as_in_the_score() -> None:
    beats = np.array([1, 1, 2, 1, 0.5, 0.5, 1, 1])
    lasting = (10 * beats).astype(int)
    similarity = performed(lasting)
    similarity = CourseSimilarity(
        similarity.embeddings, similarity.mask, similarity.frames, course_of(np.arange(8), beats)
    )
    path = decode_path(similarity, FRAME_SEC, SCALE)
    assert begins_of(path.stop) == pytest.approx(np.cumsum(lasting) - lasting, abs=1)


def test_a_false_onset_does_not_upset_the_others() -> None:
    begins = 10 * np.arange(8)
    path = decode_path(performed(np.full(8, 10)), FRAME_SEC, SCALE, sound=heard_at(np.append(begins, 34), 80))
    assert begins_of(path.stop).tolist() == begins.tolist()


@pytest.mark.parametrize("n_before", [1, 7, 30])
def test_a_recording_that_begins_later_is_settled_later_by_the_same_time(n_before: int) -> None:
    lasting = np.array([10, 12, 9, 11, 8, 12, 10, 10])
    similarity = performed(lasting)
    begins = np.cumsum(lasting) - lasting
    other = np.tile(np.eye(8, dtype=np.float32)[7], (n_before, 1))  # sounds like nothing in the score
    later = CourseSimilarity(
        similarity.embeddings, similarity.mask, np.concatenate((other, similarity.frames)), similarity.course
    )
    path = decode_path(similarity, FRAME_SEC, SCALE, sound=heard_at(begins, 82))
    moved = decode_path(later, FRAME_SEC, SCALE, sound=heard_at(begins + n_before, 82 + n_before))
    assert moved.is_filler.tolist() == [True] * n_before + [False] * 82
    assert moved.stop[n_before:].tolist() == path.stop.tolist()


def test_a_silence_between_chords_belongs_to_the_one_before() -> None:
    lasting = np.full(8, 10)
    begins = 10 * np.arange(8)
    sound = heard_at(begins, 80)
    sound.is_silent[25:30] = True
    path = decode_path(performed(lasting), FRAME_SEC, SCALE, sound=sound)
    assert begins_of(path.stop).tolist() == begins.tolist()
