"""Ranks of segments by hand, and against an independent implementation."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fusili_mir.errors import InputError
from fusili_training.evaluation.baselines import (
    chance_mrr,
    chance_recall,
)
from fusili_training.evaluation.global_retrieval import (
    Ranks,
    rank_by_product,
    rank_matrix,
    retrieval_interval,
)


def test_ranks_by_hand() -> None:
    scores = np.array([[3, 2, 1], [5, 4, 1], [1, 2, 0]], np.float32)
    ranks = rank_matrix(scores)
    assert ranks.better.tolist() == [0, 1, 2]
    assert ranks.recall(1).tolist() == [1, 0, 0]
    assert ranks.recall(2).tolist() == [1, 1, 0]
    assert ranks.reciprocal() == pytest.approx([1, 1 / 2, 1 / 3])


def test_ties_are_broken_by_chance_on_average() -> None:
    ranks = rank_matrix(np.array([[1, 1, 0]], np.float32), np.array([0]))
    assert ranks.recall(1).tolist() == [0.5]
    assert ranks.reciprocal() == pytest.approx([(1 + 1 / 2) / 2])


def test_a_model_that_tells_nothing_apart_gets_what_guessing_gets() -> None:
    ranks = rank_matrix(np.ones((5, 5), np.float32))
    assert ranks.recall(1).mean() == pytest.approx(chance_recall(5))
    assert ranks.reciprocal().mean() == pytest.approx(chance_mrr(5))
    assert chance_mrr(3) == pytest.approx((1 + 1 / 2 + 1 / 3) / 3)


@settings(max_examples=30, deadline=None)
@given(st.integers(2, 40), st.integers(0, 2**32 - 1))
def test_retrieval_agrees_with_sorting_one_query_after_the_other(n: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    images, recordings = rng.normal(size=(2, n, 4)).astype(np.float32)
    ranks = rank_by_product(images, recordings)
    scores = images @ recordings.T
    places = [sorted(range(n), key=lambda j: -scores[i, j]).index(i) + 1 for i in range(n)]
    assert ranks.recall(1).mean() == pytest.approx(np.mean([place == 1 for place in places]))
    assert ranks.recall(5).mean() == pytest.approx(np.mean([place <= 5 for place in places]))
    assert ranks.reciprocal().mean() == pytest.approx(np.mean([1 / place for place in places]))


def test_blocks_of_queries_give_the_ranks_of_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    images, recordings = rng.normal(size=(2, 23, 3)).astype(np.float32)
    monkeypatch.setattr("fusili_training.evaluation.global_retrieval._BLOCK_NUMBERS", 100)
    blocks = rank_by_product(images, recordings)
    assert blocks.better.tolist() == rank_matrix(images @ recordings.T).better.tolist()


def test_scores_that_are_no_numbers_are_refused() -> None:
    with pytest.raises(InputError, match="not numbers"):
        rank_matrix(np.array([[np.nan]], np.float32))


def test_queries_are_averaged_alike_and_drawn_by_piece() -> None:
    interval = retrieval_interval(np.array([1.0, 0.0, 0.0, 0.0]), ["a", "a", "a", "b"])
    assert interval.value == pytest.approx(1 / 4)
    assert (interval.low, interval.high) == pytest.approx((0, 1 / 3))


def test_joined_ranks_stand_one_after_the_other() -> None:
    one = Ranks(np.array([0]), np.array([1]))
    assert Ranks.join([one, Ranks(np.array([3]), np.array([2]))]).better.tolist() == [0, 3]
