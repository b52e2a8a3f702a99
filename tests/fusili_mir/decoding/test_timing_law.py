from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fusili_mir.decoding.timing_law import TimingLaw
from fusili_mir.errors import InputError

SIMPLE = TimingLaw(
    onset_weight=2.0,
    onset_strength=0.5,
    read_onset_weight=3.0,
    read_onset_strength=0.25,
    faintest_strength=0.1,
    most_onset_nats=1.0,
    least_onset_nats=-1.5,
    duration_spread=0.5,
    place_spread=0.25,
    jitter_sec=0.03,
    rare_nats=4.0,
    grace_sec=0.1,
    grace_spread=1.0,
)


def onset_nats(strength: float, n_notes: float = 1.0, are_read: bool = False) -> float:
    return float(SIMPLE.onset_nats(np.array([strength], np.float32), n_notes, are_read)[0])


def cost_of(
    seconds: float,
    expected_sec: float,
    is_grace: bool = False,
    is_spaced: bool = False,
    law: TimingLaw = SIMPLE,
) -> float:
    cost = law.duration_cost(np.array([seconds], np.float32), expected_sec, is_grace, is_spaced)
    assert cost.dtype == np.float32
    return float(cost[0])


def test_an_activation_of_the_usual_strength_says_nothing_and_an_e_fold_more_says_the_weight() -> None:
    assert onset_nats(0.4) == pytest.approx(0.0, abs=1e-6)  # 0.4 + 0.1 = 0.5
    assert onset_nats(0.5 * math.sqrt(math.e) - 0.1) == pytest.approx(1.0)
    assert onset_nats(0.15) == pytest.approx(2 * math.log(0.5))


def test_the_ratio_is_bounded_before_it_is_weighted() -> None:
    assert onset_nats(50.0) == pytest.approx(2 * 1.0)
    assert onset_nats(0.0) == pytest.approx(2 * -1.5)  # log(0.1 / 0.5) = -1.61


def test_the_evidence_of_a_chord_grows_with_the_square_root_of_its_notes() -> None:
    assert onset_nats(0.15, n_notes=4.0) == pytest.approx(2 * onset_nats(0.15))


def test_pitches_that_are_read_have_a_strength_and_a_weight_of_their_own() -> None:
    assert onset_nats(0.15, are_read=True) == pytest.approx(0.0, abs=1e-6)  # 0.15 + 0.1 = 0.25
    assert onset_nats(0.4, are_read=True) == pytest.approx(3 * math.log(2))


def test_a_stop_lasts_its_duration_at_the_tempo_and_a_grace_note_its_usual_time() -> None:
    assert SIMPLE.expected_sec(1.5, 0.6) == pytest.approx(0.9)
    assert SIMPLE.expected_sec(0.0, 0.6) == 0.1


@pytest.mark.parametrize("expected_sec", [0.05, 0.4, 3.0])
@pytest.mark.parametrize("is_grace", [False, True])
def test_a_duration_as_expected_costs_nothing(expected_sec: float, is_grace: bool) -> None:
    assert cost_of(expected_sec, expected_sec, is_grace) == pytest.approx(0.0, abs=1e-6)


def test_durations_cost_the_square_of_the_logarithm_over_twice_the_variance() -> None:
    # 0.6 s: a variance of 0.5^2 + (0.03 / 0.6)^2 = 0.2525; half and twice as long cost the same.
    expected = math.log(2) ** 2 / (2 * 0.2525)
    assert cost_of(1.2, 0.6) == pytest.approx(expected, rel=1e-5)
    assert cost_of(0.3, 0.6) == pytest.approx(expected, rel=1e-5)
    # 0.03 s: the jitter is as large as the duration itself.
    assert cost_of(0.06, 0.03) == pytest.approx(math.log(2) ** 2 / (2 * 1.25), rel=1e-5)


def test_distances_on_a_page_and_grace_notes_have_spreads_of_their_own() -> None:
    assert cost_of(0.9, 0.6, is_spaced=True) == pytest.approx(math.log(1.5) ** 2 / (2 * 0.065), rel=1e-5)
    grace = math.log(2) ** 2 / (2 * 1.09)  # 1.0^2 + (0.03 / 0.1)^2
    assert cost_of(0.2, 0.1, is_grace=True) == pytest.approx(grace, rel=1e-5)
    assert cost_of(0.2, 0.1, is_grace=True, is_spaced=True) == pytest.approx(grace, rel=1e-5)


def test_beyond_rare_costs_the_cost_grows_with_its_square_root() -> None:
    # Without jitter and with a spread of 0.5, e^(sqrt(3.5)) times as long would cost 7 = 4 + 3 nats.
    law = TimingLaw(duration_spread=0.5, jitter_sec=1e-6, rare_nats=4.0)
    seconds = math.exp(math.sqrt(3.5))
    assert cost_of(seconds, 1.0, law=law) == pytest.approx(4 + 2 * (math.sqrt(3 + 1) - 1), rel=1e-5)


@given(st.floats(0.03, 5.0), st.booleans(), st.booleans(), st.booleans())
def test_costs_grow_continuously_away_from_what_is_expected(
    expected_sec: float, is_grace: bool, is_spaced: bool, is_longer: bool
) -> None:
    law = TimingLaw()
    away = np.linspace(0.0, 6.0, 2001)
    seconds = (expected_sec * np.exp(away if is_longer else -away)).astype(np.float32)
    cost = law.duration_cost(seconds, expected_sec, is_grace, is_spaced).astype(float)
    growth = np.diff(cost)
    assert growth.min() >= -1e-4
    # The slope of a^2 / 2v is steepest where it turns, at sqrt(2 * rare_nats / v); v is at least 0.28^2.
    assert growth.max() < 1.1 * 0.003 * math.sqrt(2 * law.rare_nats) / 0.28 + 1e-3
    assert cost[0] == pytest.approx(0.0, abs=1e-6)


@pytest.mark.parametrize(
    "name",
    [
        "onset_strength",
        "read_onset_strength",
        "faintest_strength",
        "duration_spread",
        "jitter_sec",
        "grace_sec",
    ],
)
@pytest.mark.parametrize("value", [0.0, -1.0, math.nan])
def test_parameters_that_are_divided_by_must_be_positive(name: str, value: float) -> None:
    with pytest.raises(InputError, match=rf"^{name} is {value}, expected more than 0$"):
        TimingLaw(**{name: value})  # type: ignore[arg-type]
