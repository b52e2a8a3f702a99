import numpy as np
import pytest
from scipy import signal

from fusili_mir.arrays import Float32
from fusili_training.sound.audience import applause, audience, speech

RATE_HZ = 16_000
SECONDS = 4


def _envelope(sound: Float32) -> np.ndarray:
    """Levels of 10 ms, (400,)."""
    return np.sqrt(np.square(sound.reshape(-1, RATE_HZ // 100)).mean(axis=1))


@pytest.mark.parametrize("seed", range(6))
def test_an_audience_has_unit_level_and_never_falls_silent_for_two_seconds(seed: int) -> None:
    sound = audience(SECONDS * RATE_HZ, RATE_HZ, np.random.default_rng(seed))
    assert sound.shape == (SECONDS * RATE_HZ,)
    assert np.sqrt(np.mean(np.square(sound))) == pytest.approx(1.0, abs=1e-4)
    assert all(half.max() > 0.1 for half in np.split(_envelope(sound), 2))


@pytest.mark.parametrize("seed", range(4))
def test_applause_has_no_pitch(seed: int) -> None:
    """Its spectrum is smooth: no line stands out of what is around it."""
    hz, power = signal.welch(
        applause(SECONDS * RATE_HZ, RATE_HZ, np.random.default_rng(seed)), RATE_HZ, nperseg=2048
    )
    around = signal.medfilt(power, 31)
    heard = (hz > 300) & (hz < 5000)
    assert (power[heard] / around[heard]).max() < 5


@pytest.mark.parametrize("seed", range(4))
def test_speech_comes_in_syllables_a_few_times_a_second(seed: int) -> None:
    envelope = _envelope(speech(4 * SECONDS * RATE_HZ, RATE_HZ, np.random.default_rng(seed)))
    rate_hz, power = signal.periodogram(envelope - envelope.mean(), 100)
    power = power[rate_hz < 20]
    slow = rate_hz[rate_hz < 20] <= 8
    assert power[slow].sum() > 0.7 * power.sum()


def test_the_same_seed_gives_the_same_audience_of_any_length() -> None:
    first, again = (audience(1000, RATE_HZ, np.random.default_rng(5)) for _ in range(2))
    assert np.array_equal(first, again)
    assert len(audience(0, RATE_HZ, np.random.default_rng(5))) == 0
    assert len(audience(1, RATE_HZ, np.random.default_rng(5))) == 1
