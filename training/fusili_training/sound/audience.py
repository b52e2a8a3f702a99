"""What is heard before and after music: applause and speech, made by rule."""

from __future__ import annotations

from typing import get_args

import numpy as np
from scipy import fft

from fusili_mir.arrays import Float32, Float64
from fusili_training.sound.vowels import Register, draw_vowel, formant_gain

__all__ = ["applause", "audience", "speech"]

_CLAPS_A_SEC = (15.0, 400.0)  # of a few people, and of a hall
_CLAP_SEC = 0.03
_SYLLABLE_SEC = (0.12, 0.3)
_PAUSE_SHARE = 0.2
_HISS_HZ = 3000.0
_SPOKEN_HZ: dict[Register, tuple[float, float]] = {
    "soprano": (180, 260),
    "alto": (160, 230),
    "tenor": (100, 160),
    "bass": (80, 130),
}
_MOST_HZ = 5000.0


def audience(n_samples: int, sample_rate_hz: int, rng: np.random.Generator) -> Float32:
    """Return applause or speech of unit level, (n_samples,): its root mean square is 1."""
    draw = applause if rng.uniform() < 0.5 else speech
    sound = draw(n_samples, sample_rate_hz, rng)
    level = float(np.sqrt(np.mean(np.square(sound)))) if len(sound) else 0.0
    return sound / np.float32(level) if level else sound


def applause(n_samples: int, sample_rate_hz: int, rng: np.random.Generator) -> Float32:
    """Return clapping hands, (n_samples,): noise that dies away fast, in the band of the hands of each clap."""
    density = float(np.exp(rng.uniform(*np.log(_CLAPS_A_SEC)))) / sample_rate_hz
    struck = np.where(rng.uniform(size=n_samples) < density, rng.lognormal(0.0, 0.6, size=n_samples), 0.0)
    time_sec = np.arange(round(_CLAP_SEC * sample_rate_hz)) / sample_rate_hz
    hands = [
        np.exp(-time_sec / rng.uniform(0.003, 0.01)) * _band_noise(len(time_sec), sample_rate_hz, rng)
        for _ in range(8)
    ]
    whose = rng.integers(len(hands), size=n_samples)
    heard = [_convolved(struck * (whose == number), hand) for number, hand in enumerate(hands)]
    return np.asarray(np.sum(heard, axis=0), dtype=np.float32)


def speech(n_samples: int, sample_rate_hz: int, rng: np.random.Generator) -> Float32:
    """Return a voice that speaks, (n_samples,): syllables of a hiss and a vowel, falling in pitch, and pauses."""
    register = get_args(Register)[rng.integers(len(get_args(Register)))]
    spoken_hz = rng.uniform(*_SPOKEN_HZ[register])
    sound = np.zeros(n_samples)
    begin = 0
    while begin < n_samples:
        length = round(rng.uniform(*_SYLLABLE_SEC) * sample_rate_hz)
        if rng.uniform() >= _PAUSE_SHARE:
            syllable = _syllable(length, spoken_hz * rng.uniform(0.85, 1.25), register, sample_rate_hz, rng)
            sound[begin : begin + length] += syllable[: n_samples - begin]
        begin += length
    return np.asarray(sound, dtype=np.float32)


def _syllable(
    length: int, pitch_hz: float, register: Register, sample_rate_hz: int, rng: np.random.Generator
) -> Float64:
    place = np.linspace(0.0, 1.0, length)
    phase = 2 * np.pi * np.cumsum(pitch_hz * (1 - 0.15 * place)) / sample_rate_hz
    partials = np.arange(1, int(min(_MOST_HZ, 0.45 * sample_rate_hz) / pitch_hz) + 1, dtype=np.float64)
    vowel = draw_vowel(register, rng)
    gains = formant_gain(partials * pitch_hz, vowel.hz, vowel.db, vowel.width_hz)
    voiced = np.sin(partials[:, None] * phase[None]).T @ gains
    consonant = np.exp(-place / 0.1) * rng.uniform(0.0, 0.4)
    hiss = rng.normal(size=length)
    hiss[1:] -= 0.9 * hiss[:-1]
    return np.asarray(voiced * np.sin(np.pi * place) ** 0.7 + consonant * hiss)


def _band_noise(n_samples: int, sample_rate_hz: int, rng: np.random.Generator) -> Float64:
    """Return noise around the frequency at which two hands sound, (n_samples,)."""
    middle_hz = float(np.exp(rng.uniform(np.log(600), np.log(_HISS_HZ))))
    spectrum = np.fft.rfft(rng.normal(size=n_samples))
    octaves = np.log2(np.maximum(np.fft.rfftfreq(n_samples, 1 / sample_rate_hz), 1.0) / middle_hz)
    return np.asarray(np.fft.irfft(spectrum * np.exp(-np.square(octaves)), n_samples))


def _convolved(signal: Float64, response: Float64) -> Float64:
    size = fft.next_fast_len(len(signal) + len(response) - 1, real=True)
    spectrum = fft.rfft(signal, size) * fft.rfft(response, size)
    return np.asarray(fft.irfft(spectrum, size)[: len(signal)])
