from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest

from fusili_mir.arrays import Float64
from fusili_mir.decoding.certainty import StopWeights
from fusili_mir.decoding.stop_clues import StopClues

NAMES = [field.name for field in fields(StopWeights)][:-1]
EVENLY = np.arange(50.0)


def seen(posterior: Float64, seconds: Float64 = EVENLY, arrival_sec: Float64 = EVENLY) -> dict[str, Float64]:
    ones = np.ones(len(posterior))
    table = StopClues(posterior, 0.0 * ones, 2.0 * ones, seconds, ones, arrival_sec).table()
    return dict(zip(NAMES, table.T, strict=True))


def test_there_is_a_clue_for_every_weight() -> None:
    assert StopClues(*np.full((6, 5), 0.5)).table().shape == (5, len(NAMES))


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
    clues = seen(np.full(50, 0.5), seconds)
    assert clues["unsteady"][20] == pytest.approx(np.log(2))
    assert clues["unsteady"][21] == pytest.approx(np.log(2))
    assert clues["unsteady"][18] == 0.0


def test_a_stop_far_from_the_path_is_known_to_be() -> None:
    arrival_sec = EVENLY.copy()
    arrival_sec[7] += 0.97
    clues = seen(np.full(50, 0.5), arrival_sec=arrival_sec)
    assert clues["moved"][7] == pytest.approx(0.0)
    assert clues["moved"][8] == pytest.approx(np.log(0.03))


def test_certain_posteriors_have_finite_log_odds() -> None:
    assert np.isfinite(seen(np.repeat([0.0, 1.0], 25))["own"]).all()
