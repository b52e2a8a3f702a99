from __future__ import annotations

import numpy as np
import pytest

from fusili_benchmarks.calibration import (
    area_under_curve,
    calibration_error,
    false_alarms,
    fit_logistic,
    fit_quantile,
    held_out,
    reliability_table,
)


def test_the_area_is_the_share_of_pairs_in_which_the_right_one_is_more_probable() -> None:
    right = np.array([True, False, True, False])
    assert area_under_curve(right, np.array([0.9, 0.8, 0.7, 0.1])) == 0.75  # three of four pairs
    assert area_under_curve(right, np.full(4, 0.5)) == 0.5  # ties count half
    assert np.isnan(area_under_curve(np.ones(4, bool), np.ones(4)))


def test_saying_ninety_percent_where_seventy_are_right_is_off_by_twenty_points() -> None:
    right = np.arange(100) % 10 < 7
    assert calibration_error(right, np.full(100, 0.9), n_bins=1) == pytest.approx(0.2)


def test_false_alarms_are_wrong_ones_as_probable_as_nearly_all_right_ones() -> None:
    right = np.repeat([True, False], 100)
    said = np.concatenate((np.linspace(0.5, 1.0, 100), np.repeat([0.9, 0.1], 50)))
    assert false_alarms(right, said) == 0.5


def test_a_logistic_regression_finds_the_weights_that_outcomes_were_drawn_with() -> None:
    rng = np.random.default_rng(0)
    clues = rng.normal(3.0, 2.0, (40_000, 2))
    odds = clues @ [0.8, -0.5] + 0.3
    right = rng.random(len(odds)) < 1 / (1 + np.exp(-odds))
    assert fit_logistic(clues, right) == pytest.approx([0.8, -0.5, 0.3], abs=0.08)


def test_a_quantile_regression_follows_a_spread_that_changes() -> None:
    rng = np.random.default_rng(0)
    clue = rng.uniform(0, 4, 20_000)
    values = clue + rng.exponential(1.0, len(clue))  # nine in ten lie below clue + log(10)
    weights = fit_quantile(clue[:, None], values, 0.9)
    assert weights == pytest.approx([1.0, np.log(10)], abs=0.1)
    assert np.mean(values <= clue * weights[0] + weights[1]) == pytest.approx(0.9, abs=1e-3)


def test_what_is_held_out_has_no_part_in_the_fit() -> None:
    clues, targets = [np.ones((1, 1))] * 3, [np.array([value]) for value in (1.0, 10.0, 100.0)]
    sums = held_out(["a", "b", "b"], clues, targets, lambda _, y: np.array([0.0, y.sum()]))
    assert [float(each[0]) for each in sums] == [110.0, 1.0, 1.0]


def test_a_reliability_table_has_what_was_said_and_what_was_so() -> None:
    right, said = np.array([True, False, True]), np.array([0.2, 0.4, 0.9])
    rows = reliability_table(right, said, [0.0, 0.5, 1.01]).splitlines()
    assert rows[2:] == ["| 0 to 50 % | 2 | 30.0 % | 50.0 % |", "| 50 to 100 % | 1 | 90.0 % | 100.0 % |"]
