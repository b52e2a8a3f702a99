"""Rooms and plates: impulse responses.

A shoebox has its first reflections and a tail of noise. A plate of steel, as studios used it, has no reflections
that one could tell apart; in it, low sounds travel more slowly than high ones.
"""

from __future__ import annotations

from itertools import product

import numpy as np
from scipy import fft

from fusili_mir.arrays import Float32

__all__ = ["draw_plate", "draw_room", "play_in_room"]

_SOUND_M_PER_SEC = 343.0
_ORDER = 2  # of the mirror images along each axis
_SMALLEST_M, _LARGEST_M = (2.5, 2.5, 2.2), (30.0, 45.0, 16.0)
_NEAREST_M = 0.4
_PLATE_DELAY_SEC = (0.002, 0.01)  # at 1 kHz
_PLATE_LEVEL_DB = (-18.0, 0.0)  # relative to the direct sound
_SLOWEST_HZ = 60.0


def draw_room(sample_rate_hz: int, longest_sec: float, rng: np.random.Generator) -> Float32:
    """Draw the impulse response of a room.

    Parameters
    ----------
    sample_rate_hz : int
    longest_sec : float
        Longest reverberation time, in which the level falls by 60 dB.
    rng : np.random.Generator

    Returns
    -------
    np.ndarray [shape=(n,)]
        It begins with the direct sound, whose level is 1: nothing is delayed.
    """
    size = np.exp(rng.uniform(np.log(_SMALLEST_M), np.log(_LARGEST_M)))
    source, ear = rng.uniform(0.1, 0.9, size=(2, 3)) * size
    away_m = max(float(np.linalg.norm(source - ear)) * rng.uniform(0.1, 1.0), _NEAREST_M)
    ear = source + (ear - source) * away_m / max(float(np.linalg.norm(ear - source)), 1e-6)
    reverberation_sec = longest_sec * rng.uniform(0.08, 1.0)
    volume = float(np.prod(size))
    surface = 2 * float(size[0] * size[1] + size[1] * size[2] + size[0] * size[2])
    absorbed = min(0.9, 0.161 * volume / (surface * reverberation_sec))  # Sabine
    response = np.zeros(int(reverberation_sec * sample_rate_hz) + 1, np.float32)
    for mirrored in product(range(-_ORDER, _ORDER + 1), repeat=3):
        image = [
            2 * np.ceil(number / 2) * side + (-1) ** (number % 2) * place
            for number, side, place in zip(mirrored, size, source, strict=True)
        ]
        path_m = float(np.linalg.norm(np.array(image) - ear))
        late = round((path_m - away_m) / _SOUND_M_PER_SEC * sample_rate_hz)
        if 0 <= late < len(response):
            n_walls = sum(abs(number) for number in mirrored)
            response[late] += away_m / max(path_m, away_m) * (1 - absorbed) ** (n_walls / 2)
    time_sec = np.arange(len(response)) / sample_rate_hz
    tail = rng.normal(size=len(response)) * 10 ** (-3.0 * time_sec / reverberation_sec)
    diffuse_sec = float(size.min()) / _SOUND_M_PER_SEC
    tail *= np.clip(time_sec / (4 * diffuse_sec) - 0.25, 0.0, 1.0)
    # At the critical distance, the energy of the room is that of the direct sound.
    critical_m = 0.057 * np.sqrt(volume / reverberation_sec)
    energy = min((away_m / critical_m) ** 2, 8.0)
    tail *= np.sqrt(energy / max(float(np.sum(np.square(tail))), 1e-9))
    return np.asarray(response + tail, dtype=np.float32)


def draw_plate(sample_rate_hz: int, longest_sec: float, rng: np.random.Generator) -> Float32:
    """Draw the impulse response of a plate; arguments and result are those of `draw_room`."""
    reverberation_sec = longest_sec * rng.uniform(0.3, 1.0)
    length = int(reverberation_sec * sample_rate_hz) + 1
    time_sec = np.arange(length) / sample_rate_hz
    tail = rng.normal(size=length) * 10 ** (-3.0 * time_sec / reverberation_sec)
    # Bending waves: what travels, travels with the root of its frequency. The phase is the integral of the delay.
    size = fft.next_fast_len(2 * length, real=True)
    hz = np.maximum(fft.rfftfreq(size, 1 / sample_rate_hz), _SLOWEST_HZ)
    phase = 2 * np.pi * rng.uniform(*_PLATE_DELAY_SEC) * 2 * np.sqrt(hz * 1000.0)
    tail = fft.irfft(fft.rfft(tail, size) * np.exp(-1j * phase), size)[:length]
    tail *= 10 ** (rng.uniform(*_PLATE_LEVEL_DB) / 20) / max(float(np.sqrt(np.sum(np.square(tail)))), 1e-9)
    tail[0] += 1.0
    return np.asarray(tail, dtype=np.float32)


def play_in_room(clip: Float32, room: Float32) -> Float32:
    """Return a clip [shape=(n,)] as it sounds in a room; what sounds after its end is cut off."""
    size = fft.next_fast_len(len(clip) + len(room) - 1, real=True)
    spectrum = fft.rfft(clip, size) * fft.rfft(room, size)
    return np.asarray(fft.irfft(spectrum, size)[: len(clip)], dtype=np.float32)
