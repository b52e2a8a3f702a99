"""Ranks of segments by hand, and against an independent implementation."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fusili_mir.errors import InputError
from fusili_training.evaluation.global_retrieval import (
    Ranks,
    rank_by_product,
    rank_matrix,
    retrieval_interval,
)
from fusili_training.evaluation.retrieval_task import notes_in_order
from fusili_training.truth import TRUTH_DTYPE, TruthArray


def test_ranks_by_hand() -> None:
    similarities = np.array([[3, 2, 1], [5, 4, 1], [1, 2, 0]], np.float32)
    ranks = rank_matrix(similarities)
    assert ranks.better.tolist() == [0, 1, 2]
    assert ranks.recall(1).tolist() == [1, 0, 0]
    assert ranks.recall(2).tolist() == [1, 1, 0]
    assert ranks.reciprocal() == pytest.approx([1, 1 / 2, 1 / 3])


def test_ties_are_broken_by_chance_on_average() -> None:
    ranks = rank_matrix(np.array([[1, 1, 0]], np.float32), np.array([0]))
    assert ranks.recall(1).tolist() == [0.5]
    assert ranks.reciprocal() == pytest.approx([(1 + 1 / 2) / 2])


def test_a_model_that_distinguishes_nothing_gets_the_figures_of_guessing() -> None:
    ranks = rank_matrix(np.ones((3, 3), np.float32))
    assert ranks.recall(1) == pytest.approx([1 / 3] * 3)
    assert ranks.reciprocal() == pytest.approx([(1 + 1 / 2 + 1 / 3) / 3] * 3)
    guessed = Ranks.guess(np.arange(3))
    assert guessed.reciprocal().tolist() == ranks.reciprocal().tolist()


def test_a_candidate_that_is_like_the_partner_is_right() -> None:
    similarities = np.array([[3, 5, 4, 1], [3, 2, 5, 4], [1, 2, 3, 4], [6, 5, 5, 7]], np.float32)
    groups = np.array([7, 7, 8, 9])  # the first two are repeats
    ranks = rank_matrix(similarities, groups=groups)
    assert ranks.better.tolist() == [0, 2, 1, 0]
    assert rank_matrix(similarities).better.tolist() == [2, 3, 1, 0]
    assert ranks.reciprocal() == pytest.approx([1, 1 / 3, 1 / 2, 1])
    swapped = rank_matrix(similarities[[1, 0]], np.array([1, 0]), groups)
    assert swapped.better.tolist() == [2, 0]


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(0, 2), min_size=2, max_size=5), st.integers(0, 2**32 - 1))
def test_repeats_among_ties_agree_with_all_orders_one_by_one(groups: list[int], seed: int) -> None:
    n = len(groups)
    similarities = np.random.default_rng(seed).integers(0, 3, (n, n)).astype(np.float32)
    ranks = rank_matrix(similarities, groups=np.array(groups))
    for query in range(n):
        firsts = []
        for order in permutations(range(n)):  # decides between equal similarities
            sorted_ = sorted(order, key=lambda candidate: -similarities[query, candidate])
            firsts.append(1 + min(sorted_.index(c) for c in range(n) if groups[c] == groups[query]))
        assert ranks.reciprocal()[query] == pytest.approx(np.mean([1 / first for first in firsts]))
        for k in (1, 2):
            assert ranks.recall(k)[query] == pytest.approx(np.mean([first <= k for first in firsts]))


def test_guessing_among_repeats_is_easier() -> None:
    guessed = Ranks.guess(np.array([0, 1, 0]))
    assert guessed.recall(1) == pytest.approx([2 / 3, 1 / 3, 2 / 3])
    assert guessed.reciprocal()[0] == pytest.approx(2 / 3 + 1 / 3 * 1 / 2)


def test_segments_with_the_same_pitches_in_the_same_order_are_repeats() -> None:
    def segment(*notes: tuple[int, float]) -> TruthArray:
        truth = np.zeros(len(notes), TRUTH_DTYPE)
        truth["pitch"], truth["x0"] = zip(*notes, strict=True)
        return truth

    assert notes_in_order(segment((64, 30.2), (60, 30.0), (62, 9.0))) == (62, 60, 64)
    assert notes_in_order(segment((62, 12.0), (60, 50.0), (64, 50.0))) == (62, 60, 64)  # wider, same notes
    assert notes_in_order(segment((60, 9.0), (62, 30.0), (64, 30.0))) != (62, 60, 64)
    assert notes_in_order(np.zeros(0, TRUTH_DTYPE)) == ()


@settings(max_examples=30, deadline=None)
@given(st.integers(2, 40), st.integers(0, 2**32 - 1))
def test_retrieval_agrees_with_sorting_query_by_query(n: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    images, recordings = rng.normal(size=(2, n, 4)).astype(np.float32)
    ranks = rank_by_product(images, recordings)
    similarities = images @ recordings.T
    places = [sorted(range(n), key=lambda j: -similarities[i, j]).index(i) + 1 for i in range(n)]
    assert ranks.recall(1).mean() == pytest.approx(np.mean([place == 1 for place in places]))
    assert ranks.recall(5).mean() == pytest.approx(np.mean([place <= 5 for place in places]))
    assert ranks.reciprocal().mean() == pytest.approx(np.mean([1 / place for place in places]))


def test_blocks_of_queries_give_the_ranks_of_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    images, recordings = rng.normal(size=(2, 23, 3)).astype(np.float32)
    monkeypatch.setattr("fusili_training.evaluation.global_retrieval._BLOCK_NUMBERS", 100)
    blocks = rank_by_product(images, recordings)
    assert blocks.better.tolist() == rank_matrix(images @ recordings.T).better.tolist()


def test_similarities_that_are_not_numbers_are_refused() -> None:
    with pytest.raises(InputError, match="not numbers"):
        rank_matrix(np.array([[np.nan]], np.float32))


def test_queries_are_averaged_equally_and_drawn_by_piece() -> None:
    interval = retrieval_interval(np.array([1.0, 0.0, 0.0, 0.0]), ["a", "a", "a", "b"])
    assert interval.value == pytest.approx(1 / 4)
    assert (interval.low, interval.high) == pytest.approx((0, 1 / 3))


def test_joined_ranks_follow_each_other() -> None:
    joined = Ranks.join([Ranks(*np.array([[0], [1], [1]])), Ranks(*np.array([[3], [4], [2]]))])
    assert (joined.better.tolist(), joined.tied.tolist(), joined.right.tolist()) == ([0, 3], [1, 4], [1, 2])
