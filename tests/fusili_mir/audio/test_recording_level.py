from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fusili_mir.arrays import Float32
from fusili_mir.audio.recording_level import LevelMeter

RATE_HZ = 8_000


def tone(amplitude: float, seconds: float = 4.0) -> Float32:
    time_sec = np.arange(int(seconds * RATE_HZ)) / RATE_HZ
    return (amplitude * np.sin(2 * np.pi * 440 * time_sec)).astype(np.float32)


def measured(samples: Float32, n_blocks: int = 1) -> LevelMeter:
    meter = LevelMeter(RATE_HZ)
    for block in np.array_split(samples, n_blocks):
        meter.see(block)
    return meter


def loud_level_db(samples: Float32) -> float:
    return measured(samples).loud_db


def level_gain(samples: Float32) -> float:
    return measured(samples).gain


def test_a_sine_of_full_scale_is_three_decibels_below_it() -> None:
    assert loud_level_db(tone(1.0)) == pytest.approx(-3.01, abs=0.01)


def test_silence_around_the_music_does_not_count() -> None:
    music = tone(0.1)
    around = np.concatenate((np.zeros(10 * RATE_HZ, np.float32), music))
    assert loud_level_db(around) == pytest.approx(loud_level_db(tone(0.1)), abs=0.01)


@pytest.mark.parametrize("amplitude", [1.0, 0.1, 0.03])
def test_recordings_at_usual_levels_stay_as_they_are(amplitude: float) -> None:
    assert level_gain(tone(amplitude)) == 1.0


@given(amplitude=st.floats(2e-4, 0.02))
def test_quiet_recordings_are_amplified_to_one_level(amplitude: float) -> None:
    gain = level_gain(tone(amplitude, 1.0))
    assert loud_level_db(tone(gain * amplitude, 1.0)) == pytest.approx(-22.0, abs=0.05)


def test_silence_is_not_amplified() -> None:
    assert loud_level_db(tone(0.0)) == -np.inf
    assert level_gain(tone(0.0)) == 1.0


def test_the_level_of_a_very_short_recording_is_that_of_all_its_samples() -> None:
    assert level_gain(np.zeros(0, np.float32)) == 1.0
    assert loud_level_db(np.full(10, 0.5, np.float32)) == pytest.approx(-6.02, abs=0.01)


@given(n_blocks=st.integers(1, 50))
def test_the_level_does_not_depend_on_the_blocks(n_blocks: int) -> None:
    samples = np.concatenate((tone(0.01, 1.0), tone(0.003, 2.3)))
    assert measured(samples, n_blocks).loud_db == pytest.approx(measured(samples).loud_db, abs=1e-6)
