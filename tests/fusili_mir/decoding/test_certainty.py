from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fusili_mir.arrays import Float64
from fusili_mir.decoding.certainty import (
    STOP_CLUES,
    Certainty,
    PieceWeights,
    StopWeights,
    log_odds,
    weighted,
)
from fusili_mir.decoding.piece_clues import PieceClues

NOTHING = StopWeights(*np.zeros(len(STOP_CLUES) + 1).tolist())
RIGHT = replace(NOTHING, own=0.5, activation=1.0, base=0.25)
MARGIN = replace(NOTHING, activation=-1.0, base=float(np.log(0.05)))


def clues(own: float = 0.0, activation: float = 0.0, rival: float = 0.0) -> Float64:
    row = np.zeros((1, len(STOP_CLUES)))
    row[0, [0, 4, 10]] = own, activation, rival
    return row


def test_the_log_odds_are_a_weighted_sum_of_the_clues_in_the_order_of_their_names() -> None:
    certainty = Certainty(RIGHT, MARGIN)
    assert log_odds(certainty.probability(clues(own=3.0, activation=-2.0))) == pytest.approx(
        0.5 * 3 - 2 + 0.25, abs=1e-4
    )


def test_a_stop_that_is_struck_weakly_has_a_wider_interval() -> None:
    certainty = Certainty(RIGHT, MARGIN)
    assert certainty.margin_sec(clues())[0] == pytest.approx(0.05)
    assert certainty.margin_sec(clues(activation=-1.0))[0] == pytest.approx(0.05 * np.e)


def test_an_interval_is_never_empty_and_never_longer_than_two_minutes() -> None:
    certainty = Certainty(RIGHT, MARGIN)
    assert certainty.margin_sec(clues(activation=1e6))[0] == pytest.approx(0.005)
    assert certainty.margin_sec(clues(activation=-1e6))[0] == pytest.approx(60.0)


def test_a_note_struck_like_its_stop_is_as_sure_and_one_struck_weakly_less() -> None:
    certainty = Certainty(RIGHT, MARGIN)
    probability, margin_sec = certainty.of_notes(
        np.array([0.9, 0.9, 1.0, 0.0]), np.array([0.1, 0.1, 0.0, 0.1]), np.array([0.0, -2.0, -2.0, 2.0])
    )
    assert probability[0] == pytest.approx(0.9)
    assert margin_sec[0] == pytest.approx(0.1)
    assert probability[1] < 0.6
    assert margin_sec[1] > 0.7
    assert probability[2] == 1.0  # what is known stays so
    assert margin_sec[2] == 0.0
    assert probability[3] == 0.0  # and what was left out


def test_the_probability_of_a_piece_is_one_half_where_its_log_odds_are_zero() -> None:
    weights = PieceWeights(order=10.0, sure=0, struck=2.0, unsteady=0, base=-3.0)
    seen = PieceClues(order=0.1, sure=9.0, struck=1.0, unsteady=9.0)
    assert float(weighted(seen.row(), weights)) == pytest.approx(0.0)
    assert seen.probability(weights) == pytest.approx(0.5)
