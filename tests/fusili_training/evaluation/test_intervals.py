"""Figures of onset errors, and intervals over pieces."""

from __future__ import annotations

import numpy as np
import pytest

from fusili_mir.errors import InputError
from fusili_training.evaluation.bootstrap import bootstrap, ratio_interval, weighted_median
from fusili_training.evaluation.onset_errors import median_error_ms, share_within


def test_onset_figures_by_hand() -> None:
    pieces = [np.array([0.010, 0.025, 0.060]), np.array([0.300, np.inf])]
    assert median_error_ms(pieces).value == pytest.approx(60)
    within = [share_within(pieces, tolerance).value for tolerance in (25, 50, 100, 250, 500, 1000)]
    assert within == pytest.approx([2 / 5, 2 / 5, 3 / 5, 3 / 5, 4 / 5, 4 / 5])


def test_an_interval_of_equal_pieces_has_no_width() -> None:
    interval = ratio_interval([3, 3, 3], [4, 4, 4])
    assert (interval.value, interval.low, interval.high) == (0.75, 0.75, 0.75)


def test_intervals_cover_the_true_share_as_often_as_they_claim() -> None:
    rng = np.random.default_rng(5)
    covered = 0
    for trial in range(100):
        interval = ratio_interval(rng.binomial(20, 0.3, size=40), np.full(40, 20), seed=trial)
        covered += interval.low <= 0.3 <= interval.high
    assert 85 <= covered <= 100


def test_the_median_is_that_of_the_drawn_pieces() -> None:
    median = weighted_median([np.array([1.0, 5.0]), np.array([2.0]), np.array([9.0])])
    assert median(np.array([1, 1, 1])) == 3.5  # 1 2 5 9
    assert median(np.array([0, 0, 3])) == 9
    assert median(np.array([2, 1, 0])) == 2  # 1 1 2 5 5


def test_no_pieces_are_refused() -> None:
    with pytest.raises(InputError, match="no pieces"):
        bootstrap(0, lambda draw: 0.0)
