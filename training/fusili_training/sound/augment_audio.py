"""Augmenting a clip like a recording: tuning, colour, room, noise, wear, MP3, level. It takes milliseconds.

Onsets move by less than 5 ms: the filter of the tone colour is symmetric in time, and reverberation follows the
direct sound. Detuning resamples the clip, as if it were played back too fast or too slowly: a sound at second t
moves to ``time_factor * t``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import soxr
from scipy import fft

from fusili_mir.arrays import Float32
from fusili_mir.errors import InputError
from fusili_training.sound.mp3 import through_mp3
from fusili_training.sound.rooms import draw_plate, draw_room, play_in_room
from fusili_training.sound.wear import wear

__all__ = [
    "AudioAugmentation",
    "AugmentedClip",
    "add_noise",
    "augment_audio",
    "colour",
    "detune",
    "reverberate",
    "time_factor",
]


_LOWEST_HZ = 40.0  # the colour filter is flat below
_RINGING_SEC = 0.1  # longest response of the colour filter
_ROOM_DELAY_SEC = (0.005, 0.03)
_SHORTEST_ROOM_SEC = 0.05
_LOUDEST = 0.98


@dataclass(frozen=True)
class AudioAugmentation:
    """The largest changes of a clip, drawn anew for each clip. The defaults change nothing."""

    detune_cents: float = 0.0  # in either direction
    colour_db: float = 0.0  # standard deviation of the colour filter, per octave
    reverb_sec: float = 0.0  # longest reverberation time (60 dB)
    direct_to_room_db: tuple[float, float] = (
        0.0,
        20.0,
    )  # range of the level of the direct sound over the room
    lowest_snr_db: float = float("inf")  # signal-to-noise ratio with the loudest noise; inf: no noise
    snr_range_db: float = 40.0  # signal-to-noise ratios are drawn from the lowest up to this much above it
    gain_db: float = 0.0  # in either direction
    shoebox: float = 0.0  # share of the clips whose room is a shoebox, with its first reflections
    plate: float = 0.0  # share of the other clips whose room is a plate of steel, as in studios
    worn: float = 0.0  # share of the clips with the wear of shellac, tape and cheap microphones
    mp3: float = 0.0  # share of the clips that have been MP3 files at low rates

    def __post_init__(self) -> None:
        for name in ("shoebox", "plate", "worn", "mp3"):
            if not 0 <= getattr(self, name) <= 1:
                raise InputError(f"{name} is {getattr(self, name)}; expected a share of the clips, 0 to 1")
        for name in ("detune_cents", "colour_db", "reverb_sec", "snr_range_db", "gain_db"):
            value = getattr(self, name)
            if not (np.isfinite(value) and value >= 0):
                raise InputError(f"{name} is {value}; expected a finite number of at least 0")
        if np.isnan(self.lowest_snr_db) or self.lowest_snr_db == -np.inf:
            raise InputError(f"lowest_snr_db is {self.lowest_snr_db}; expected decibels, or inf for no noise")
        low_db, high_db = self.direct_to_room_db
        if not (np.isfinite([low_db, high_db]).all() and low_db <= high_db):
            raise InputError(
                f"direct_to_room_db is {self.direct_to_room_db}; expected two levels in dB, the lower one first"
            )


@dataclass(frozen=True, eq=False)
class AugmentedClip:
    """An augmented clip; second t of the original is now at second `time_factor * t`."""

    samples: Float32  # (samples,)
    time_factor: float


def augment_audio(
    clip: Float32, sample_rate_hz: int, limits: AudioAugmentation, rng: np.random.Generator
) -> AugmentedClip:
    """Augment a clip at random.

    Parameters
    ----------
    clip : np.ndarray [shape=(samples,)]
    sample_rate_hz : int
    limits : AudioAugmentation
    rng : np.random.Generator

    Returns
    -------
    AugmentedClip
        Its samples are within [-1, 1]: a clip that would be louder is scaled down.
    """
    if clip.ndim != 1:
        raise InputError(f"the clip has shape {clip.shape}; expected one channel, (samples,)")
    cents = limits.detune_cents * rng.uniform(-1.0, 1.0)
    room_sec = limits.reverb_sec * rng.uniform()
    direct_to_room_db = rng.uniform(*limits.direct_to_room_db)
    snr_db = limits.lowest_snr_db + limits.snr_range_db * rng.uniform()
    tilt = rng.uniform(0.0, 2.0)
    gain_db = limits.gain_db * rng.uniform(-1.0, 1.0)

    samples = clip.astype(np.float32)
    if cents:
        samples = detune(samples, cents)
    if limits.colour_db:
        samples = colour(samples, sample_rate_hz, limits.colour_db, rng)
    if _happens(limits.shoebox, rng) and limits.reverb_sec:
        samples = play_in_room(samples, draw_room(sample_rate_hz, limits.reverb_sec, rng))
    elif _happens(limits.plate, rng) and limits.reverb_sec:
        samples = play_in_room(samples, draw_plate(sample_rate_hz, limits.reverb_sec, rng))
    elif room_sec >= _SHORTEST_ROOM_SEC:
        samples = reverberate(samples, sample_rate_hz, room_sec, direct_to_room_db, rng)
    if np.isfinite(snr_db):
        samples = add_noise(samples, snr_db, tilt, rng)
    if _happens(limits.worn, rng):
        samples = wear(samples, sample_rate_hz, rng)
    if _happens(limits.mp3, rng):
        samples = through_mp3(samples, sample_rate_hz, rng.uniform())
    samples = samples * np.float32(10 ** (gain_db / 20))
    peak = float(np.abs(samples).max(initial=0.0))
    if peak > _LOUDEST and peak > np.abs(clip).max(initial=0.0):
        samples = samples * np.float32(_LOUDEST / peak)
    return AugmentedClip(samples, time_factor(cents))


def _happens(share: float, rng: np.random.Generator) -> bool:
    """Draw whether something happens; what never happens draws nothing, so that other draws stay as they were."""
    return share > 0 and rng.uniform() < share


def time_factor(cents: float) -> float:
    """Return the factor by which detuning lengthens a clip."""
    return float(2.0 ** (-cents / 1200))


def detune(clip: Float32, cents: float) -> Float32:
    """Raise the pitch by some cents through resampling; the length changes by `time_factor`."""
    return np.asarray(soxr.resample(clip, 1.0, time_factor(cents)), dtype=np.float32)


def colour(clip: Float32, sample_rate_hz: int, deviation_db: float, rng: np.random.Generator) -> Float32:
    """Filter with a smooth random response: normally distributed decibels per octave, linearly interpolated."""
    octaves = np.arange(np.log2(_LOWEST_HZ), np.log2(sample_rate_hz / 2) + 1)
    level_db = rng.normal(scale=deviation_db, size=len(octaves))
    size = fft.next_fast_len(len(clip) + int(_RINGING_SEC * sample_rate_hz), real=True)
    frequency_hz = np.maximum(fft.rfftfreq(size, 1 / sample_rate_hz), _LOWEST_HZ)
    response = 10 ** (np.interp(np.log2(frequency_hz), octaves, level_db) / 20)
    spectrum = fft.rfft(clip, size) * response.astype(np.float32)
    return np.asarray(fft.irfft(spectrum, size)[: len(clip)], dtype=np.float32)


def reverberate(
    clip: Float32, sample_rate_hz: int, room_sec: float, direct_to_room_db: float, rng: np.random.Generator
) -> Float32:
    """Add the reverberation of a room.

    Parameters
    ----------
    clip : np.ndarray [shape=(samples,)]
    sample_rate_hz : int
    room_sec : float
        Reverberation time, in which the level falls by 60 dB.
    direct_to_room_db : float
        Energy of the direct sound relative to the reverberation, which begins 5 to 30 ms later.
    rng : np.random.Generator

    Returns
    -------
    np.ndarray [shape=(samples,)]
        As long as the clip; the reverberation of the last note is cut off.
    """
    delay = int(rng.uniform(*_ROOM_DELAY_SEC) * sample_rate_hz)
    time_sec = np.arange(max(1, int(room_sec * sample_rate_hz))) / sample_rate_hz
    tail = rng.normal(size=len(time_sec)) * 10 ** (-3.0 * time_sec / room_sec)
    tail *= 10 ** (-direct_to_room_db / 20) / np.sqrt(np.sum(np.square(tail)))
    response = np.concatenate([[1.0], np.zeros(delay), tail]).astype(np.float32)
    size = fft.next_fast_len(len(clip) + len(response) - 1, real=True)
    spectrum = fft.rfft(clip, size) * fft.rfft(response, size)
    return np.asarray(fft.irfft(spectrum, size)[: len(clip)], dtype=np.float32)


def add_noise(clip: Float32, snr_db: float, tilt: float, rng: np.random.Generator) -> Float32:
    """Add noise with a power spectrum of ``1 / frequency**tilt``.

    Parameters
    ----------
    clip : np.ndarray [shape=(samples,)]
        A silent clip stays silent, as the noise is relative to its energy.
    snr_db : float
        Signal-to-noise ratio.
    tilt : float
        0: white noise, 1: pink noise, 2: brown noise.
    rng : np.random.Generator

    Returns
    -------
    np.ndarray [shape=(samples,)]
    """
    level = float(np.sqrt(np.mean(np.square(clip, dtype=np.float64)))) if len(clip) else 0.0
    if level == 0.0:
        return clip
    size = fft.next_fast_len(len(clip), real=True)
    bins = np.maximum(np.arange(size // 2 + 1), 1)
    spectrum = fft.rfft(rng.standard_normal(size, dtype=np.float32)) * (bins ** (-tilt / 2)).astype(
        np.float32
    )
    noise = fft.irfft(spectrum, size)[: len(clip)]
    loudness = float(np.sqrt(np.mean(np.square(noise, dtype=np.float64))))
    return np.asarray(clip + noise * np.float32(level * 10 ** (-snr_db / 20) / loudness), dtype=np.float32)
