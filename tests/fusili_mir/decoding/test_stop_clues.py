from __future__ import annotations

import numpy as np
import pytest

from fusili_mir.arrays import Float64
from fusili_mir.decoding.certainty import STOP_CLUES
from fusili_mir.decoding.onset_evidence import NearbyOnsets
from fusili_mir.decoding.stop_clues import StopClues

EVENLY = np.arange(50.0)
HALF = np.full(50, 0.5)


def seen(
    posterior: Float64 = HALF,
    seconds: Float64 = EVENLY,
    arrival_sec: Float64 = EVENLY,
    activation: Float64 = HALF,
    rival: Float64 = HALF,
    passed: Float64 = HALF,
) -> dict[str, Float64]:
    ones, nearby = np.ones(50), NearbyOnsets(HALF, HALF, passed, HALF)
    clues = StopClues(posterior, 0.0 * ones, activation, seconds, ones, arrival_sec, rival, nearby)
    return dict(zip(STOP_CLUES, clues.table().T, strict=True))


def test_a_time_without_any_rival_is_as_sure_as_one_with_hardly_any() -> None:
    rival = HALF.copy()
    rival[:3] = np.inf, -np.inf, 7.0
    assert seen(rival=rival)["rival"][:4].tolist() == [50.0, -10.0, 7.0, 0.5]


def test_what_is_struck_between_two_stops_is_passed_by_both() -> None:
    passed = np.zeros(50)
    passed[20] = 0.9  # between stops 20 and 21
    assert np.flatnonzero(seen(passed=passed)["passed"]).tolist() == [20, 21]


def test_a_stop_is_doubted_if_one_beside_it_is_struck_weakly() -> None:
    activation = np.zeros(50)
    activation[[0, 20]] = -3.0
    assert np.flatnonzero(seen(activation=activation)["weakest"]).tolist() == [0, 1, 19, 20, 21]


def test_log_odds_are_averaged_over_three_and_ten_stops_to_either_side_and_over_all() -> None:
    posterior = np.full(50, 0.5)
    posterior[20] = 0.9  # log-odds log(9), all others 0
    clues = seen(posterior)
    assert clues["own"][20] == pytest.approx(np.log(9))
    assert clues["near"][23] == pytest.approx(np.log(9) / 7)
    assert clues["near"][24] == 0.0
    assert clues["around"][30] == pytest.approx(np.log(9) / 21)
    assert clues["around"][31] == 0.0
    assert clues["whole"] == pytest.approx(np.log(9) / 50)


def test_both_neighbours_of_a_displaced_stop_show_that_it_is_unsteady() -> None:
    seconds = EVENLY.copy()
    seconds[20] += 0.5  # lasts half as long as it should, and the one before half as long again
    clues = seen(seconds=seconds)
    assert clues["unsteady"][20] == pytest.approx(np.log(2))
    assert clues["unsteady"][21] == pytest.approx(np.log(2))
    assert clues["unsteady"][18] == 0.0


def test_a_stop_far_from_the_path_is_known_to_be() -> None:
    arrival_sec = EVENLY.copy()
    arrival_sec[7] += 0.97
    clues = seen(arrival_sec=arrival_sec)
    assert clues["moved"][7] == pytest.approx(0.0)
    assert clues["moved"][8] == pytest.approx(np.log(0.03))


def test_certain_posteriors_have_finite_log_odds() -> None:
    assert np.isfinite(seen(np.repeat([0.0, 1.0], 25))["own"]).all()
