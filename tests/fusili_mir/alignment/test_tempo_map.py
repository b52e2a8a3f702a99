from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fusili_mir.alignment.tempo_map import TempoMap
from fusili_mir.errors import InputError

MAP = TempoMap(np.array([0.0, 2.0, 4.0]), np.array([1.0, 2.0, 4.0]))


def test_between_pairs_time_runs_evenly_and_beyond_them_at_the_average_tempo() -> None:
    assert MAP.sec_per_beat == 0.75
    assert MAP.to_seconds([-1, 0, 1, 3, 4, 6]).tolist() == [0.25, 1, 1.5, 3, 4, 5.5]


@given(st.floats(-100, 100))
def test_beats_and_seconds_are_inverses(beat: float) -> None:
    assert float(MAP.to_beats(MAP.to_seconds(beat))) == pytest.approx(beat, abs=1e-9)


def test_the_last_of_several_beats_at_the_same_second_is_played() -> None:
    tempo = TempoMap(np.array([0.0, 1.0, 2.0, 3.0]), np.array([0.0, 1.0, 1.0, 2.0]))
    assert tempo.to_beats([0.5, 1.0, 1.5]).tolist() == [0.5, 2.0, 2.5]


def test_a_single_pair_continues_at_half_a_second_per_beat() -> None:
    assert TempoMap(np.array([1.0]), np.array([3.0])).to_seconds([1, 2]).tolist() == [3.0, 3.5]


@pytest.mark.parametrize(("beats", "seconds"), [([], []), ([0, 0], [0, 1]), ([0, 1], [1, 0]), ([0, 1], [0])])
def test_invalid_pairs_are_refused(beats: list[float], seconds: list[float]) -> None:
    with pytest.raises(InputError):
        TempoMap(np.array(beats, float), np.array(seconds, float))
