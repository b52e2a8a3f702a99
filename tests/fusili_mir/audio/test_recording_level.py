from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fusili_mir.audio.recording import AudioSamples
from fusili_mir.audio.recording_level import level_gain, loud_level_db

RATE_HZ = 8_000


def tone(amplitude: float, seconds: float = 4.0) -> AudioSamples:
    time_sec = np.arange(int(seconds * RATE_HZ)) / RATE_HZ
    return AudioSamples((amplitude * np.sin(2 * np.pi * 440 * time_sec)).astype(np.float32), RATE_HZ)


def test_a_sine_of_full_scale_is_three_decibels_below_it() -> None:
    assert loud_level_db(tone(1.0)) == pytest.approx(-3.01, abs=0.01)


def test_silence_around_the_music_does_not_count() -> None:
    music = tone(0.1).samples
    around = AudioSamples(np.concatenate((np.zeros(10 * RATE_HZ, np.float32), music)), RATE_HZ)
    assert loud_level_db(around) == pytest.approx(loud_level_db(tone(0.1)), abs=0.01)


@pytest.mark.parametrize("amplitude", [1.0, 0.1, 0.03])
def test_recordings_of_usual_levels_stay_as_they_are(amplitude: float) -> None:
    assert level_gain(tone(amplitude)) == 1.0


@given(amplitude=st.floats(2e-4, 0.02))
def test_quiet_recordings_are_raised_to_one_level(amplitude: float) -> None:
    gain = level_gain(tone(amplitude, 1.0))
    assert loud_level_db(tone(gain * amplitude, 1.0)) == pytest.approx(-22.0, abs=0.05)


def test_silence_is_not_raised() -> None:
    assert loud_level_db(tone(0.0)) == -np.inf
    assert level_gain(tone(0.0)) == 1.0


def test_what_is_no_number_and_what_is_very_short_are_left_to_the_reader() -> None:
    broken = tone(0.5).samples.copy()
    broken[100:200] = np.nan
    assert level_gain(AudioSamples(broken, RATE_HZ)) == 1.0
    assert level_gain(AudioSamples(np.zeros(0, np.float32), RATE_HZ)) == 1.0
    assert loud_level_db(AudioSamples(np.full(10, 0.5, np.float32), RATE_HZ)) == pytest.approx(
        -6.02, abs=0.01
    )
