from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fusili_mir.arrays import Float64
from fusili_mir.decoding.course import Course
from fusili_mir.decoding.similarity import CourseSimilarity, unit_vectors
from fusili_mir.decoding.stop_likelihoods import StopLikelihoods
from fusili_mir.decoding.viterbi import Block

SCALE = 10.0
HUB_WEIGHT = 0.5


def random_similarity(seed: int) -> CourseSimilarity:
    """Twelve frames, and four stops that look at five columns of two patches."""
    rng = np.random.default_rng(seed)
    course = Course(np.array([0, 1, 2, 4, 3]), np.array([0, 1, 3, 4, 5]), np.arange(5.0))
    return CourseSimilarity(
        unit_vectors(rng.normal(size=(5, 2, 4))),
        np.ones((5, 2), bool),
        unit_vectors(rng.normal(size=(12, 4))),
        course,
    )


def slow_likelihoods(similarity: CourseSimilarity, is_silent: np.ndarray) -> Float64:
    """All likelihoods, by their definitions."""
    cosines = np.einsum("crd,md->mcr", similarity.embeddings, similarity.frames[:]).max(axis=2)  # (M, C)
    baseline = np.log(np.exp(SCALE * cosines).mean(axis=1))
    course = similarity.course
    looks = [course.columns[course.first[stop] : course.first[stop + 1]] for stop in range(len(course))]
    nats = SCALE * np.stack([cosines[:, columns].max(axis=1) for columns in looks], axis=1)
    nats -= baseline[:, None]
    nats -= HUB_WEIGHT * np.maximum(np.log(np.exp(nats).mean(axis=0)), 0.0)
    nats[is_silent] = 0.0
    return np.asarray(nats)


def likelihoods_of(similarity: CourseSimilarity, is_silent: np.ndarray) -> StopLikelihoods:
    return StopLikelihoods.of(similarity, SCALE, np.float32(HUB_WEIGHT), is_silent)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 1000))
def test_likelihoods_are_scaled_cosines_minus_baseline_and_hubs(seed: int) -> None:
    similarity = random_similarity(seed)
    is_silent = np.random.default_rng(seed).random(12) < 0.2
    slow, likelihoods = slow_likelihoods(similarity, is_silent), likelihoods_of(similarity, is_silent)
    np.testing.assert_allclose(likelihoods(Block(slice(0, 12), slice(0, 4))), slow, atol=1e-4)
    np.testing.assert_allclose(likelihoods(Block(slice(3, 9), slice(1, 3))), slow[3:9, 1:3], atol=1e-4)
    frames, stops = np.arange(12), np.arange(12) % 4
    np.testing.assert_allclose(likelihoods.pairs(frames, stops), slow[frames, stops], atol=1e-4)


def test_a_silent_frame_says_nothing_about_any_stop() -> None:
    is_silent = np.arange(12) == 5
    likelihoods = likelihoods_of(random_similarity(0), is_silent)
    assert likelihoods(Block(slice(4, 7), slice(0, 4)))[1].tolist() == [0.0] * 4
    assert likelihoods.pairs(np.array([5, 5]), np.array([0, 3])).tolist() == [0.0] * 2


def test_selected_frames_keep_the_likelihoods_that_they_had_among_all() -> None:
    is_silent = np.arange(12) == 5
    likelihoods = likelihoods_of(random_similarity(0), is_silent)
    whole = likelihoods(Block(slice(0, 12), slice(0, 4)))
    kept = np.array([1, 2, 5, 9])
    assert likelihoods.among(kept)(Block(slice(0, 4), slice(0, 4))) == pytest.approx(whole[kept], abs=1e-6)


def test_only_stops_that_resemble_everything_are_penalised() -> None:
    looks = np.eye(4, dtype=np.float32)[:, None]  # (C=4, R=1, d=4)
    frames = np.eye(4, dtype=np.float32)[[0, 0, 0, 1]]
    course = Course(np.arange(4), np.arange(5), np.arange(5.0))
    similarity = CourseSimilarity(looks, np.ones((4, 1), bool), frames, course)
    hubs = likelihoods_of(similarity, np.zeros(4, bool)).hubs
    assert hubs[0] == pytest.approx(HUB_WEIGHT * np.log(0.75 * 4), abs=0.01)  # over a quarter of all
    assert hubs[1:] == pytest.approx([0.0] * 3, abs=0.01)
