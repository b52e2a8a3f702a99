"""Peaks of the spectrum, with tones whose pitch is known."""

import numpy as np
import pytest
from scipy.fft import rfft

from fusili_mir.arrays import Float32
from fusili_mir.audio import spectral_peaks
from fusili_mir.audio.spectral_peaks import find_peaks

RATE_HZ = 16_000


def tones(*hz: float, seconds: float = 2.0) -> Float32:
    time_sec = np.arange(round(seconds * RATE_HZ)) / RATE_HZ
    return np.asarray(np.sum([np.sin(2 * np.pi * f * time_sec) for f in hz], axis=0), dtype=np.float32)


@pytest.mark.parametrize("hz", [123.4, 220.0, 441.5, 1047.0])
def test_a_steady_tone_is_found_to_within_half_a_cent(hz: float) -> None:
    peaks = find_peaks([tones(hz)], RATE_HZ)
    assert (
        len(peaks) == 6
    )  # windows of 8192 samples, half a window apart: (32000 - 8192) / 4096, and one more
    np.testing.assert_allclose(peaks.cents, 1200 * np.log2(hz / 440), atol=0.5)


def test_the_notes_of_a_chord_are_found_one_by_one() -> None:
    peaks = find_peaks([tones(220.0, 277.2, 329.6, 440.0, seconds=0.6)], RATE_HZ)
    assert np.rint(peaks.cents / 100).tolist() == [-12, -8, -5, 0]


def test_windows_are_dated_by_their_middle_and_do_not_depend_on_blocks() -> None:
    sound = tones(440.0, seconds=3.0)
    whole = find_peaks([sound], RATE_HZ, start_sec=10.0)
    parts = find_peaks(np.array_split(sound, 7), RATE_HZ, start_sec=10.0)
    assert whole.seconds[0] == pytest.approx(10.0 + 4096 / RATE_HZ)
    np.testing.assert_allclose(np.diff(whole.seconds), 4096 / RATE_HZ)
    np.testing.assert_array_equal(parts.seconds, whole.seconds)
    np.testing.assert_allclose(parts.cents, whole.cents, atol=1e-6)


def test_a_wide_vibrato_is_one_tone_at_its_middle() -> None:
    time_sec = np.arange(4 * RATE_HZ) / RATE_HZ
    cents = 60 * np.sin(2 * np.pi * 5.5 * time_sec)  # more than a semitone from top to bottom
    phase = 2 * np.pi * np.cumsum(440 * 2 ** (cents / 1200)) / RATE_HZ
    peaks = find_peaks([np.sin(phase).astype(np.float32)], RATE_HZ)
    assert len(peaks) == 14  # one per window
    np.testing.assert_allclose(peaks.cents, 0.0, atol=15.0)
    assert abs(np.average(peaks.cents, weights=peaks.magnitude)) < 3.0


def test_some_seconds_can_be_taken_out() -> None:
    peaks = find_peaks([tones(440.0, seconds=4.0)], RATE_HZ)
    some = peaks.between(1.0, 2.0)
    assert len(some) == 4
    assert some.seconds.min() >= 1.0
    assert some.seconds.max() < 2.0


@pytest.mark.parametrize("n_samples", [0, 100, 8191])
def test_what_is_shorter_than_a_window_has_no_peaks(n_samples: int) -> None:
    assert len(find_peaks([np.ones(n_samples, np.float32)], RATE_HZ)) == 0
    assert len(find_peaks([np.zeros(20_000, np.float32)], RATE_HZ)) == 0


def test_silence_is_not_analysed_and_what_follows_it_keeps_its_time(monkeypatch) -> None:
    sound = np.concatenate(
        (tones(440, seconds=4.0), np.zeros(20 * RATE_HZ, np.float32), tones(440, seconds=4.0))
    )
    blocks = [sound[start : start + 2**14] for start in range(0, len(sound), 2**14)]
    whole = find_peaks([sound], RATE_HZ)
    analysed: list[int] = []

    def counted(windows: Float32) -> np.ndarray:
        analysed.append(len(windows))
        return np.asarray(rfft(windows))

    monkeypatch.setattr(spectral_peaks, "rfft", counted)
    found = find_peaks(blocks, RATE_HZ)
    assert 32 <= sum(analysed) < 50  # windows that are a quarter of a second apart, in 8 of 28 s
    for name in ("seconds", "cents", "magnitude"):
        np.testing.assert_array_equal(getattr(found, name), getattr(whole, name))
