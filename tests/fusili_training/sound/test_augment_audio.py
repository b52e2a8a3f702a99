from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fusili_mir.errors import InputError
from fusili_training.sound.augment_audio import (
    AudioAugmentation,
    add_noise,
    augment_audio,
    colour,
    detune,
    reverberate,
)

RATE_HZ = 16_000
STRONG = AudioAugmentation(detune_cents=30, colour_db=6, reverb_sec=1.5, lowest_snr_db=15, gain_db=9)
ONSETS_SEC = np.array([0.31, 0.74, 1.02, 1.55, 1.93, 2.41])
seeds = st.integers(0, 2**32 - 1)


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


@pytest.fixture(scope="module")
def clip() -> np.ndarray:
    """Struck notes with six decaying harmonics, 3 s."""
    time = np.arange(3 * RATE_HZ) / RATE_HZ
    sound = np.zeros(len(time))
    for onset, hz in zip(ONSETS_SEC, (131, 220, 330, 494, 262, 740), strict=True):
        after = np.maximum(time - onset, 0)
        partials = sum(np.sin(2 * np.pi * hz * k * after) / k for k in range(1, 7))
        sound += 0.2 * partials * np.exp(-8 * after) * (time >= onset)
    return sound.astype(np.float32)


def tone(hz: float, sec: float = 1.0) -> np.ndarray:
    return (0.3 * np.sin(2 * np.pi * hz * np.arange(int(sec * RATE_HZ)) / RATE_HZ)).astype(np.float32)


def onset_envelope(clip: np.ndarray) -> np.ndarray:
    """Rise of the level from the 8 ms before to the 8 ms after each millisecond."""
    energy = np.square(clip[: len(clip) // 16 * 16].astype(float)).reshape(-1, 16).sum(axis=1)  # 1 ms each
    level = np.sqrt(np.convolve(energy, np.ones(8), mode="valid"))  # of the 8 ms from each millisecond on
    return np.concatenate([np.zeros(8), np.maximum(level[8:] - level[:-8], 0)])


def delay_ms(before: np.ndarray, after: np.ndarray) -> int:
    """Delay with the largest correlation of the onset envelopes, within 40 ms."""
    a, b = onset_envelope(before), onset_envelope(after)
    n = min(len(a), len(b))
    lags = range(-40, 41)
    return max(
        lags,
        key=lambda lag: float(np.dot(a[max(0, -lag) : n - max(0, lag)], b[max(0, lag) : n + min(0, lag)])),
    )


@given(seeds)
@settings(max_examples=25, deadline=None)
def test_onsets_stay_within_5_ms(clip: np.ndarray, seed: int) -> None:
    result = augment_audio(clip, RATE_HZ, STRONG, rng(seed))
    in_time = detune(result.samples, 1200 * np.log2(result.time_factor))
    assert abs(len(in_time) - len(clip)) <= 1
    assert abs(delay_ms(clip, in_time)) < 5


def test_a_delay_of_10_ms_would_be_noticed(clip: np.ndarray) -> None:
    assert delay_ms(clip, np.concatenate([np.zeros(160, dtype=np.float32), clip])) == 10


def test_without_amounts_nothing_changes(clip: np.ndarray) -> None:
    result = augment_audio(clip, RATE_HZ, AudioAugmentation(), rng())
    np.testing.assert_array_equal(result.samples, clip)
    assert result.time_factor == 1.0


@given(seeds)
@settings(max_examples=10, deadline=None)
def test_the_same_seed_gives_the_same_clip_within_full_scale(clip: np.ndarray, seed: int) -> None:
    first, again = (augment_audio(clip, RATE_HZ, STRONG, rng(seed)) for _ in range(2))
    np.testing.assert_array_equal(first.samples, again.samples)
    assert first.samples.dtype == np.float32
    assert np.abs(first.samples).max() <= 1.0


def test_detuning_by_a_semitone_raises_the_pitch_and_shortens_the_clip() -> None:
    raised = detune(tone(440.0), 100.0)
    assert len(raised) == pytest.approx(RATE_HZ / 2 ** (1 / 12), abs=1)
    spectrum = np.abs(np.fft.rfft(raised * np.hanning(len(raised)), 10 * RATE_HZ))
    assert np.argmax(spectrum) / 10 == pytest.approx(466.16, abs=0.2)


def test_detuned_onsets_are_at_their_time_factor(clip: np.ndarray) -> None:
    result = augment_audio(clip, RATE_HZ, AudioAugmentation(detune_cents=50), rng(3))
    assert result.time_factor != 1.0
    envelope = onset_envelope(result.samples)
    for onset_sec in ONSETS_SEC * result.time_factor:
        around = round(onset_sec * 1000) + np.arange(-30, 31)
        assert abs(around[np.argmax(envelope[around])] / 1000 - onset_sec) < 0.005


def test_noise_has_the_asked_ratio_and_colour() -> None:
    clean = tone(1000.0, 4.0)
    noise = add_noise(clean, 20.0, 2.0, rng()) - clean
    assert 10 * np.log10(np.mean(clean**2) / np.mean(noise**2)) == pytest.approx(20.0, abs=0.01)
    power = np.abs(np.fft.rfft(noise)) ** 2  # bins of 0.25 Hz
    octave_lower, octave = power[4000:8000].mean(), power[8000:16000].mean()
    assert 10 * np.log10(octave_lower / octave) == pytest.approx(6.0, abs=0.5)


def test_silence_stays_silent() -> None:
    assert not augment_audio(np.zeros(1000, dtype=np.float32), RATE_HZ, STRONG, rng()).samples.any()


def test_a_room_adds_a_tail_of_the_asked_energy_and_decay() -> None:
    click = np.zeros(2 * RATE_HZ, dtype=np.float32)
    click[0] = 1.0
    answer = reverberate(click, RATE_HZ, room_sec=1.0, direct_to_room_db=6.0, rng=rng()).astype(float)
    assert answer[0] == pytest.approx(1.0, abs=1e-3)
    assert np.abs(answer[1 : RATE_HZ // 200]).max() < 1e-3  # nothing within 5 ms
    assert 10 * np.log10(np.sum(answer[1:] ** 2)) == pytest.approx(-6.0, abs=0.1)
    early, late = (np.sum(answer[int(s * RATE_HZ) : int((s + 0.1) * RATE_HZ)] ** 2) for s in (0.1, 0.6))
    assert 10 * np.log10(early / late) == pytest.approx(30.0, abs=2.0)


def test_colour_changes_frequencies_by_different_amounts_and_reproducibly() -> None:
    def change_db(hz: float, seed: int) -> float:
        before, after = tone(hz), colour(tone(hz), RATE_HZ, 6.0, rng(seed))
        return float(10 * np.log10(np.mean(after**2) / np.mean(before**2)))

    assert change_db(200.0, 1) == pytest.approx(change_db(200.0, 1))
    levels = np.array([[change_db(hz, seed) for hz in (80.0, 320.0, 1280.0, 5120.0)] for seed in range(12)])
    assert 4.0 < levels.std() < 8.0


@pytest.mark.parametrize(
    "bad", [{"detune_cents": -1.0}, {"colour_db": float("inf")}, {"lowest_snr_db": float("nan")}]
)
def test_impossible_limits_are_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=next(iter(bad))):
        AudioAugmentation(**bad)


def test_two_channels_are_refused() -> None:
    with pytest.raises(InputError, match=r"\(2, 100\)"):
        augment_audio(np.zeros((2, 100), dtype=np.float32), RATE_HZ, STRONG, rng())


@pytest.mark.parametrize("change", ["shoebox", "plate", "worn", "mp3"])
def test_shares_of_clips_are_changed_and_their_onsets_stay(clip: np.ndarray, change: str) -> None:
    limits = AudioAugmentation(reverb_sec=1.0, direct_to_room_db=(20.0, 20.0), **{change: 1.0})
    without = AudioAugmentation(reverb_sec=1.0, direct_to_room_db=(20.0, 20.0))
    changed = augment_audio(clip, RATE_HZ, limits, rng(3)).samples
    assert len(changed) == len(clip)
    assert not np.array_equal(changed, augment_audio(clip, RATE_HZ, without, rng(3)).samples)
    assert abs(delay_ms(clip, changed)) <= 5


@pytest.mark.parametrize("share", [-0.1, 1.5, float("nan")])
def test_shares_outside_0_to_1_are_refused(share: float) -> None:
    with pytest.raises(InputError, match=r"worn is .*; expected a share of the clips, 0 to 1"):
        AudioAugmentation(worn=share)
