from __future__ import annotations

import numpy as np
import pytest
from scipy import signal

from fusili_training.sound.mp3 import through_mp3


@pytest.mark.parametrize("sample_rate_hz", [16_000, 22_050, 48_000])
@pytest.mark.parametrize("loss", [0.0, 0.4, 0.8, 1.0])
def test_neither_length_nor_onsets_change(sample_rate_hz: int, loss: float) -> None:
    clip = np.zeros(4 * sample_rate_hz, np.float32)
    clip[sample_rate_hz : sample_rate_hz * 3 // 2] = 0.1 * np.random.default_rng(0).normal(
        size=sample_rate_hz * 3 // 2 - sample_rate_hz
    )
    heard = through_mp3(clip, sample_rate_hz, loss)
    assert len(heard) == len(clip)
    assert signal.correlate(heard, clip, method="fft").argmax() == len(clip) - 1


def test_something_is_lost_and_more_of_it_at_lower_rates() -> None:
    clip = (0.1 * np.random.default_rng(0).normal(size=32_000)).astype(np.float32)
    lost = [float(np.square(through_mp3(clip, 16_000, loss) - clip).mean()) for loss in (0.0, 1.0)]
    assert 0 < lost[0] < lost[1]


@pytest.mark.parametrize("n_samples", [0, 1, 700])
def test_short_and_silent_clips_keep_their_length(n_samples: int) -> None:
    assert len(through_mp3(np.ones(n_samples, np.float32), 16_000, 0.5)) == n_samples
    assert not through_mp3(np.zeros(n_samples, np.float32), 16_000, 0.5).any()


def test_loud_clips_are_not_clipped() -> None:
    clip = (3 * np.sin(2 * np.pi * 440 * np.arange(16_000) / 16_000)).astype(np.float32)
    assert np.abs(through_mp3(clip, 16_000, 0.0)[4000:12_000]).max() == pytest.approx(3.0, rel=0.05)
