from __future__ import annotations

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fusili_mir.decoding.course import Course, reading_course
from fusili_mir.decoding.similarity import (
    CourseSimilarity,
    column_similarity,
    frame_similarity,
    log_mean_exp,
    pool_frames,
    unit_vectors,
)
from fusili_mir.errors import InputError


def test_each_frame_is_most_similar_to_the_patch_it_was_copied_from() -> None:
    patches = np.eye(3, 4, dtype=np.float32)  # (N=3, d=4)
    frames = 5.0 * patches[[2, 0, 1, 1]]  # (M=4, d=4): scale must not matter
    assert frame_similarity(patches, frames).argmax(axis=0).tolist() == [2, 0, 1, 1]


def test_patches_and_frames_of_different_sizes_are_refused() -> None:
    with pytest.raises(InputError, match=r"\(2, 3\) and frames \(2, 4\)"):
        frame_similarity(np.ones((2, 3), np.float32), np.ones((2, 4), np.float32))


def test_embeddings_that_are_not_numbers_are_refused() -> None:
    with pytest.raises(InputError, match="finite"):
        unit_vectors(np.array([[1.0, np.nan]]))


def test_the_best_patch_of_a_column_counts_and_missing_ones_do_not() -> None:
    embeddings = np.array([[[1, 0], [0, 1]], [[1, 0], [0, 1]]], np.float32)  # (C=2, R=2, d=2)
    mask = np.array([[True, True], [True, False]])
    frames = np.array([[0, 1]], np.float32)
    assert column_similarity(embeddings, mask, frames).tolist() == [[1.0], [0.0]]


def random_similarity(seed: int, n_frames: int = 40) -> CourseSimilarity:
    """Six columns of two patches, one of them missing; four stops, two of which look at two columns."""
    rng = np.random.default_rng(seed)
    mask = np.ones((6, 2), bool)
    mask[4, 1] = False
    course = Course(np.array([0, 2, 3, 5, 4, 0]), np.array([0, 1, 3, 5, 6]), np.array([0.0, 1, 2, 3, 4]))
    return CourseSimilarity(
        unit_vectors(rng.normal(size=(6, 2, 8))), mask, unit_vectors(rng.normal(size=(n_frames, 8))), course
    )


def slow_stops(similarity: CourseSimilarity) -> list[list[float]]:
    """Similarity of frames and stops, one dot product after the other."""
    course = similarity.course
    return [
        [
            max(
                float(similarity.embeddings[column, row] @ frame)
                for column in course.columns[course.first[stop] : course.first[stop + 1]]
                for row in range(2)
                if similarity.mask[column, row]
            )
            for stop in range(len(course))
        ]
        for frame in similarity.frames[:]
    ]


@given(st.integers(0, 1000))
def test_a_stop_is_as_similar_as_the_best_patch_of_its_columns(seed: int) -> None:
    similarity = random_similarity(seed)
    slow = np.array(slow_stops(similarity))
    np.testing.assert_allclose(similarity.block(slice(3, 9), slice(1, 4)), slow[3:9, 1:4], atol=1e-6)
    np.testing.assert_allclose(similarity.pooled(1), slow, atol=1e-6)
    frames, stops = np.array([0, 5, 7, 7]), np.array([3, 1, 2, 0])
    np.testing.assert_allclose(similarity.pairs(frames, stops), slow[frames, stops], atol=1e-6)


def test_groups_of_stops_are_as_similar_as_their_best_stop() -> None:
    similarity = random_similarity(7)
    slow = np.array(slow_stops(similarity))
    np.testing.assert_allclose(similarity.pooled(3), np.c_[slow[:, :3].max(1), slow[:, 3]], atol=1e-6)


@given(n_stops=st.integers(1, 40), size=st.integers(1, 33))
def test_the_best_stop_of_a_group_counts_whatever_its_size(n_stops: int, size: int) -> None:
    rng = np.random.default_rng(n_stops)
    embeddings, frames = unit_vectors(rng.normal(size=(n_stops, 1, 5))), unit_vectors(rng.normal(size=(3, 5)))
    similarity = CourseSimilarity(
        embeddings, np.ones((n_stops, 1), bool), frames, reading_course(np.arange(n_stops))
    )
    single = similarity.pooled(1)
    slow = [[row[at : at + size].max() for at in range(0, n_stops, size)] for row in single]
    np.testing.assert_array_equal(similarity.pooled(size), np.array(slow, np.float32))


def test_pooled_frames_are_means_and_the_last_group_may_be_short() -> None:
    frames = np.array([[1.0], [3.0], [10.0]], np.float32)
    assert pool_frames(frames, 2).tolist() == [[2.0], [10.0]]


def test_the_baseline_is_the_log_of_the_mean_over_all_columns() -> None:
    similarity = random_similarity(3)
    columns = CourseSimilarity(
        similarity.embeddings, similarity.mask, similarity.frames, reading_course(np.arange(6))
    )
    expected = np.log(np.exp(20.0 * np.array(slow_stops(columns))).mean(axis=1))
    np.testing.assert_allclose(similarity.baseline(20.0), expected, atol=1e-4)


@pytest.mark.parametrize("block_cells", [2**22, 64])
def test_prominence_is_how_much_more_a_stop_resembles_all_frames_than_columns_do(
    block_cells: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fusili_mir.decoding.similarity._BLOCK_CELLS", block_cells)
    similarity = random_similarity(9)
    baseline = similarity.baseline(5.0)
    found = similarity.prominence(5.0, baseline)
    stops = np.array(slow_stops(similarity))  # (M, P)
    means = np.exp(5.0 * stops - baseline[:, None]).mean(axis=0)
    assert found == pytest.approx(np.log(means), abs=1e-5)
    assert (found > 0).any()
    assert (found < 0).any()


def test_prominence_is_measured_on_evenly_spaced_frames() -> None:
    similarity = random_similarity(3, n_frames=41)
    baseline = similarity.baseline(5.0)
    taken = np.arange(0, 41, 4)  # eleven, the first and the last among them
    some = replace(similarity, frames=similarity.frames[taken])
    found = similarity.prominence(5.0, baseline, n_frames=11)
    assert found == pytest.approx(some.prominence(5.0, baseline[taken]), abs=1e-6)


@pytest.mark.parametrize("block_cells", [2**22, 16])
def test_likeness_is_the_mean_cosine_of_the_patches_that_both_columns_show(
    block_cells: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fusili_mir.decoding.similarity._BLOCK_CELLS", block_cells)
    looks = np.array(
        [[[1, 0], [0, 1]], [[0.6, 0.8], [0, 1]], [[0.6, 0.8], [1, 0]]], np.float32
    )  # (C=3, R=2, d=2)
    similarity = CourseSimilarity(
        looks, np.array([[True, True], [True, True], [True, False]]), looks[0], reading_course(np.arange(3))
    )
    found = similarity.likeness(np.array([0, 1, 2, 2] * 5), np.array([1, 0, 0, 1] * 5))
    assert found == pytest.approx([0.8, 0.8, 0.6, 1.0] * 5)


def test_blocks_do_not_depend_on_how_the_frames_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    similarity = random_similarity(5, n_frames=100)
    whole, baseline = similarity.pooled(2), similarity.baseline(20.0)
    monkeypatch.setattr("fusili_mir.decoding.similarity._BLOCK_CELLS", 64)
    monkeypatch.setattr("fusili_mir.decoding.similarity._BLOCK_STOPS", 2)
    np.testing.assert_allclose(similarity.pooled(2), whole, atol=1e-6)
    np.testing.assert_allclose(similarity.grouped(np.array([0, 3])), similarity.pooled(3), atol=1e-6)
    np.testing.assert_allclose(similarity.baseline(20.0), baseline, atol=1e-5)


@pytest.mark.parametrize("axis", [0, 1])
def test_the_log_of_a_mean_of_exponentials_does_not_overflow_however_it_is_cut(
    axis: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fusili_mir.decoding.similarity._BLOCK_CELLS", 16)
    nats = np.random.default_rng(0).normal(size=(9, 7)).astype(np.float32)
    expected = 300 + np.log(np.exp(0.5 * nats.astype(np.float64)).mean(axis=axis))
    np.testing.assert_allclose(log_mean_exp(nats + 600, axis, scale=0.5), expected, atol=1e-3)


def test_onsets_count_in_full_and_columns_by_how_new_they_look() -> None:
    looks = np.array([[1, 0], [1, 0], [0, 1], [0.6, 0.8], [-0.6, -0.8]], np.float32)[:, None]
    course = reading_course(np.arange(5))
    similarity = CourseSimilarity(looks, np.ones((5, 1), bool), looks[:, 0], course)
    assert similarity.stop_weights() == pytest.approx([0, 0, 1, 0.2, 2])
    assert random_similarity(0).stop_weights().tolist() == [1, 1, 1, 1]


def test_chosen_frames_say_the_same_as_a_copy_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fusili_mir.decoding.similarity._POOLED_ROWS", 32)
    similarity = random_similarity(6, n_frames=100)
    chosen = np.delete(np.arange(100), [0, 17, 18, 50, 99])
    some, copy = similarity.among(chosen), replace(similarity, frames=similarity.frames[chosen])
    assert len(some.frames) == 95
    pairs = np.array([0, 7, 94, 30]), np.array([0, 3, 1, 2])
    baseline = copy.baseline(5.0)
    for found, expected in (
        (some.block(slice(10, 40), slice(1, 4)), copy.block(slice(10, 40), slice(1, 4))),
        (some.pooled(2), copy.pooled(2)),
        (some.baseline(5.0), baseline),
        (some.prominence(5.0, baseline), copy.prominence(5.0, baseline)),
        (some.pairs(*pairs), copy.pairs(*pairs)),
        (some.among(np.arange(3, 9)).pooled(1), copy.among(np.arange(3, 9)).pooled(1)),
        (pool_frames(some.frames, 8)[:], pool_frames(copy.frames, 8)[:]),
    ):
        np.testing.assert_array_equal(found, expected)
    last = pool_frames(copy.frames, 8)[11:]
    assert last == pytest.approx(np.mean(copy.frames[88:], axis=0)[None])
    np.testing.assert_array_equal(np.asarray(some.frames), copy.frames)


def test_silence_has_a_baseline_of_zero_which_is_not_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    similarity = random_similarity(0)
    assert isinstance(similarity.frames, np.ndarray)
    similarity.frames[:] = 0.0
    assert log_mean_exp(5.0 * similarity.pooled(1), axis=1).tolist() == [0.0] * 40
    monkeypatch.setattr(CourseSimilarity, "_columns", None)
    assert similarity.baseline(5.0).tolist() == [0.0] * 40


def test_choosing_frames_copies_none() -> None:
    similarity = random_similarity(0, n_frames=200_000)
    tracemalloc.start()
    some = similarity.among(np.arange(1, 200_000))
    pool_frames(some.frames, 64)
    some.block(slice(1000, 1064), slice(0, 4))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.9 * 200_000 * 8 * 4
