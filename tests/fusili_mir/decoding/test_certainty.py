from __future__ import annotations

import numpy as np
import pytest

from fusili_mir.decoding.certainty import Certainty

ONE_SEC_APART = np.arange(50.0)
ONE_SEC = np.ones(50)


def test_the_log_odds_are_a_weighted_sum() -> None:
    posterior = np.full(50, 0.9)  # log-odds log(9), of the mean around, too
    certainty = Certainty(own=0.5, around=0.25, unsteady=-1.0, base=0.1)
    probability = certainty.probability(posterior, ONE_SEC_APART, ONE_SEC)
    assert probability == pytest.approx(1 / (1 + np.exp(-(0.75 * np.log(9) + 0.1))))


def test_a_sure_stop_among_doubtful_ones_is_doubtful() -> None:
    posterior = np.full(50, 0.1)
    posterior[25] = 1.0
    certainty = Certainty(own=0.2, around=0.8, unsteady=0.0, base=0.0)
    sure = certainty.probability(np.ones(50), ONE_SEC_APART, ONE_SEC)[25]
    assert certainty.probability(posterior, ONE_SEC_APART, ONE_SEC)[25] < 0.8 < 0.99 < sure


def test_stops_that_follow_each_other_unsteadily_are_less_certain() -> None:
    unsteady = ONE_SEC_APART + 0.4 * (-1.0) ** np.arange(50)
    certainty = Certainty(own=0.2, around=0.2, unsteady=-1.5, base=0.0)
    posterior = np.full(50, 0.99)
    steady = certainty.probability(posterior, ONE_SEC_APART, ONE_SEC)
    assert np.all(certainty.probability(posterior, unsteady, ONE_SEC) < steady)
