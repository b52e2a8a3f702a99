"""The log-frequency spectrum, against tones whose band and amplitude are known."""

import math

import numpy as np
import pytest
import torch

from fusili_mir.errors import InputError
from fusili_training.backbones.filter_bank import LogFrequencyFilterBank

RATE_HZ, HOP = 16_000, 640


@pytest.fixture(scope="module")
def bank() -> LogFrequencyFilterBank:
    return LogFrequencyFilterBank(RATE_HZ, HOP)


def tone(frequency_hz: float, seconds: float = 1.0, amplitude: float = 0.1) -> torch.Tensor:
    times = torch.arange(int(seconds * RATE_HZ), dtype=torch.float64) / RATE_HZ
    return (amplitude * torch.sin(2 * math.pi * frequency_hz * times)).float()[None]


@pytest.mark.parametrize("midi_pitch", [36, 45, 60, 69, 71, 72, 84, 96, 107])
def test_a_tone_is_strongest_in_its_own_band(bank: LogFrequencyFilterBank, midi_pitch: int) -> None:
    spectrum = bank(tone(440 * 2 ** ((midi_pitch - 69) / 12)))[0, 12]  # a frame in the middle
    # Band 0 is C1, MIDI 24; two bands per semitone.
    assert spectrum.argmax().item() == pytest.approx(2 * (midi_pitch - 24), abs=1)


def test_the_spectrum_is_that_of_a_plain_windowed_fourier_sum(bank: LogFrequencyFilterBank) -> None:
    samples = torch.randn(1, 20 * HOP, generator=torch.Generator().manual_seed(0))
    frame, length = 9, 6 * HOP
    middle = frame * HOP + HOP // 2
    piece = samples[0, middle - length // 2 : middle + length // 2].double().numpy()
    offsets = np.arange(length) - length / 2 + 0.5
    window = 0.5 + 0.5 * np.cos(2 * np.pi * offsets / length)
    bins_hz = np.arange(1, 200) * RATE_HZ / length
    amplitudes = np.abs(np.exp(-2j * np.pi * bins_hz[:, None] * offsets / RATE_HZ) @ (window * piece))
    amplitudes *= 2 / window.sum()
    centre_hz = 32.7 * 2 ** (50 / 24)
    reach_hz = max(centre_hz * (2 ** (1 / 24) - 1), RATE_HZ / length)
    weights = np.clip(1 - np.abs(bins_hz - centre_hz) / reach_hz, 0, None)
    expected = np.log(1 + 30 * (weights * amplitudes).sum())
    assert bank(samples)[0, frame, 50].item() == pytest.approx(expected, rel=1e-4)


def test_the_spectrum_keeps_its_precision_under_autocast(bank: LogFrequencyFilterBank) -> None:
    expected = bank(tone(440))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        torch.testing.assert_close(bank(tone(440)), expected)


def test_silence_is_zero_and_louder_is_larger(bank: LogFrequencyFilterBank) -> None:
    assert bank(torch.zeros(1, RATE_HZ)).max() < 1e-3
    quiet, loud = bank(tone(440, amplitude=0.01)), bank(tone(440, amplitude=0.5))
    assert loud.max() > quiet.max() > 0.1


def test_an_onset_is_seen_in_its_frame(bank: LogFrequencyFilterBank) -> None:
    samples = torch.zeros(1, 20 * HOP)
    samples[:, 10 * HOP :] = tone(2000, seconds=1)[:, : 10 * HOP]
    energy = bank(samples)[0, :, 120:].sum(dim=1)
    assert energy[8] < 0.01 * energy[12]
    assert energy[10] > 0.5 * energy[12]


@pytest.mark.parametrize(("n_samples", "n_frames"), [(640, 1), (1279, 1), (1280, 2), (16_000, 25)])
def test_a_rest_that_fills_no_frame_is_left_out(
    bank: LogFrequencyFilterBank, n_samples: int, n_frames: int
) -> None:
    assert bank(torch.zeros(2, n_samples)).shape == (2, n_frames, bank.n_bands)


@pytest.mark.parametrize("hop", [320, 160])
def test_a_shorter_hop_gives_more_frames_of_the_same_sound(bank: LogFrequencyFilterBank, hop: int) -> None:
    finer = LogFrequencyFilterBank(RATE_HZ, hop)(tone(440))
    assert finer.shape[1] == RATE_HZ // hop
    coarse = bank(tone(440))[0, 12]
    assert (finer[0, finer.shape[1] // 2] - coarse).abs().max() < 0.1


@pytest.mark.parametrize("arguments", [{"hop_samples": 641}, {"highest_hz": 9000.0}, {"lowest_hz": 600.0}])
def test_impossible_banks_are_refused(arguments: dict[str, float]) -> None:
    with pytest.raises(InputError, match="expected"):
        LogFrequencyFilterBank(**arguments)  # type: ignore[arg-type]
