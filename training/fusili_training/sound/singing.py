"""Singing: harmonics of a glottal source, filtered by vowels, with vibrato, portamento, consonants and breath.

A `Singer` takes the place of a sound bank for a part with words. Each harmonic is a sinusoid whose strength is
the gain of the vocal tract at its frequency, so nothing aliases, and vibrato makes harmonics wander through
formants; air is filtered noise. General MIDI has "aahs" and "oohs" only: looped samples that start like an organ.

The onset of a sung note is where its vowel begins; see `fusili_training.sound.sung_line`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
from scipy import fft, ndimage

from fusili_mir.arrays import Bool, Float32, Float64, Int64
from fusili_mir.errors import InputError
from fusili_training.random_streams import random_stream
from fusili_training.sound.notes import PerformedArray
from fusili_training.sound.sung_line import (
    FRAME_SEC,
    NoiseBurst,
    SungFrames,
    Traits,
    draw_traits,
    shape_line,
    tilt_gain,
)
from fusili_training.sound.vowels import PITCH_RANGES, REGISTERS, Register, formant_gain

__all__ = ["Singer", "draw_singer", "is_singer", "read_singer"]

_CHOIR_SHARE, _CHOIR_VOICES = 0.12, (3, 5)
_MOST_VOICES = 8
_CONTEXT_SEC = 4.0  # what ended earlier does not change how a note is sung
_LONGEST_CONSONANT_SEC = 0.2
_HIGHEST_HZ, _NEARLY_NYQUIST = 10_000.0, 0.94
_ASPIRATION_HZ = 300.0  # air in the voice has less below
_NAME = re.compile(r"singer-(?P<register>[a-z]+)-(?P<voices>\d)-(?P<rate>\d{4,6})-(?P<seed>\d{1,19})")


@dataclass(frozen=True)
class Singer:
    """One singer, or a small choir that sings the same.

    Parameters
    ----------
    register : "soprano", "alto", "tenor" or "bass"
        Whose vowels are sung; any pitch can be.
    sample_rate_hz : int
    seed : int
        All that is peculiar to the singer, and to how each note is sung.
    n_voices : int
        More than 1: a choir, together to 12 ms and some cents.
    """

    register: Register
    sample_rate_hz: int
    seed: int
    n_voices: int = 1

    def __post_init__(self) -> None:
        if self.register not in REGISTERS:
            raise InputError(f"a singer of register {self.register!r}; expected {', '.join(REGISTERS)}")
        if not 1 <= self.n_voices <= _MOST_VOICES:
            raise InputError(f"a singer of {self.n_voices} voices; expected 1 to {_MOST_VOICES}")

    @property
    def name(self) -> str:
        """All about the singer in one word, from which `read_singer` makes the same singer again."""
        return f"singer-{self.register}-{self.n_voices}-{self.sample_rate_hz}-{self.seed}"

    @property
    def sustained(self) -> bool:
        """Whether a note sounds for as long as it is held."""
        return True

    def sing(self, notes: PerformedArray, duration_sec: float, start_sec: float = 0.0) -> Float32:
        """Sing some notes; those that sound together are sung by several voices.

        Parameters
        ----------
        notes : np.ndarray [shape=(n,), dtype=PERFORMED_DTYPE]
        duration_sec : float
        start_sec : float
            Where the clip begins in the performance.

        Returns
        -------
        np.ndarray [shape=(samples,), dtype=float32]
        """
        clip = np.zeros(round(duration_sec * self.sample_rate_hz), np.float32)
        ends_sec = notes["onset_sec"] + notes["duration_sec"]
        notes = notes[
            (ends_sec > start_sec - _CONTEXT_SEC)
            & (notes["onset_sec"] < start_sec + duration_sec + _LONGEST_CONSONANT_SEC)
        ]
        if not len(notes) or not len(clip):
            return clip
        share = np.float32(1 / np.sqrt(self.n_voices))
        for number, line in enumerate(_lines(notes)):
            for voice in range(self.n_voices):
                traits = draw_traits(self.register, self.seed, voice + _MOST_VOICES * number, self.n_voices)
                clip += share * _sing_line(line, traits, self.sample_rate_hz, len(clip), start_sec)
        return clip


def draw_singer(pitches: Int64, sample_rate_hz: int, rng: np.random.Generator) -> Singer:
    """Draw a singer who has these MIDI pitches, or nearly all of them; seldom a choir."""
    low, high = np.percentile(pitches, [5, 95]) if len(pitches) else (60.0, 60.0)
    beyond = {
        register: max(least - low, 0) + max(high - most, 0)
        for register, (least, most) in PITCH_RANGES.items()
    }
    fitting = [register for register in REGISTERS if beyond[register] == min(beyond.values())]
    is_choir = rng.uniform() < _CHOIR_SHARE
    voices = int(rng.integers(_CHOIR_VOICES[0], _CHOIR_VOICES[1] + 1))
    register = fitting[int(rng.integers(len(fitting)))]
    return Singer(register, sample_rate_hz, int(rng.integers(2**31)), voices if is_choir else 1)


def is_singer(name: str) -> bool:
    """Return whether a name is that of a singer."""
    return name.startswith("singer-")


def read_singer(name: str) -> Singer:
    """Return the singer of a name."""
    found = _NAME.fullmatch(name)
    if found is None:
        raise InputError(f"a singer named {name!r}; expected singer-REGISTER-VOICES-RATE-SEED")
    register = next((known for known in REGISTERS if known == found["register"]), None)
    if register is None:
        raise InputError(f"a singer of register {found['register']!r}; expected {', '.join(REGISTERS)}")
    return Singer(register, int(found["rate"]), int(found["seed"]), int(found["voices"]))


def _lines(notes: PerformedArray) -> list[PerformedArray]:
    """Divide notes into lines in which one note follows another.

    A note belongs to another line if it begins before the middle of the one before; expression makes notes
    overlap by less than that.
    """
    lines: list[list[int]] = []
    for row in np.lexsort((-notes["pitch"], notes["onset_sec"])).tolist():
        onset_sec, pitch = float(notes["onset_sec"][row]), int(notes["pitch"][row])
        free = [
            line
            for line in lines
            if onset_sec >= notes["onset_sec"][line[-1]] + 0.5 * notes["duration_sec"][line[-1]]
            and onset_sec > notes["onset_sec"][line[-1]]
        ]
        if free:
            min(free, key=lambda line: abs(int(notes["pitch"][line[-1]]) - pitch)).append(row)
        else:
            lines.append([row])
    return [notes[line] for line in lines]


def _sing_line(
    notes: PerformedArray, traits: Traits, rate_hz: int, n_samples: int, start_sec: float
) -> Float32:
    hop = round(FRAME_SEC * rate_hz)
    n_frames = -(-n_samples // hop) + 1
    frames = shape_line(notes, traits, start_sec, n_frames, hop / rate_hz)
    sound = np.zeros(n_frames * hop, np.float32)
    for first, last in _runs(frames.level > 0):
        sound[first * hop : (last - 1) * hop] += _harmonics(frames, first, last, rate_hz, hop, traits)
    rng = random_stream(traits.seed, "air", round(1000 * start_sec))
    sound += _aspiration(frames, rate_hz, hop, traits, rng)
    for burst in frames.bursts:
        _add_burst(sound, burst, start_sec, rate_hz, rng)
    return sound[:n_samples]


def _runs(mask: Bool) -> list[tuple[int, int]]:
    """Return where runs of true values begin and end, with one frame around them."""
    labels, _ = ndimage.label(ndimage.binary_dilation(mask, iterations=1))
    return [
        (place.start, place.stop) for (place,) in ndimage.find_objects(labels) if place.stop - place.start > 1
    ]


def _harmonics(frames: SungFrames, first: int, last: int, rate_hz: int, hop: int, traits: Traits) -> Float32:
    """Return the voiced sound of some frames, ((last - first - 1) * hop,)."""
    pitch_hz = frames.pitch_hz[first:last]
    highest_hz = min(_HIGHEST_HZ, _NEARLY_NYQUIST * rate_hz / 2)
    n_harmonics = max(1, int(highest_hz / pitch_hz.min()))
    harmonic_hz = pitch_hz[:, None] * np.arange(1, n_harmonics + 1)  # (n, K)
    here = slice(first, last)
    gain = formant_gain(
        harmonic_hz, frames.formant_hz[here], frames.formant_db[here], frames.formant_width_hz[here]
    )
    gain *= tilt_gain(harmonic_hz, frames.tilt_db[here, None])
    gain *= (frames.level[here] * frames.gain[here])[:, None]
    gain *= np.clip((highest_hz - harmonic_hz) / 200.0, 0.0, 1.0)
    strength = np.ascontiguousarray(gain.T, dtype=np.float32)  # (K, n)

    ramp = np.arange(hop, dtype=np.float32) / np.float32(hop)
    sample_hz = (pitch_hz[:-1, None] + np.diff(pitch_hz)[:, None] * ramp).ravel()
    phase = 2 * np.pi * np.cumsum(sample_hz) / rate_hz
    turn = np.exp(1j * np.remainder(phase, 2 * np.pi)).astype(np.complex64)
    offsets = random_stream(traits.seed, "phases").uniform(-1.5, 1.5, size=n_harmonics)
    turned = np.ones_like(turn)
    sound = np.zeros(len(turn), np.float32)
    for harmonic in range(n_harmonics):
        turned *= turn
        place = np.cos(offsets[harmonic]), np.sin(offsets[harmonic])
        wave = np.float32(place[0]) * turned.real - np.float32(place[1]) * turned.imag
        steps = strength[harmonic]
        wave *= (steps[:-1, None] + np.diff(steps)[:, None] * ramp).ravel()
        sound += wave
    return sound


def _aspiration(
    frames: SungFrames, rate_hz: int, hop: int, traits: Traits, rng: np.random.Generator
) -> Float32:
    """Return the air in the voice: noise as loud as the voice, with the colour of its vowels, (n * hop,)."""
    n_samples = len(frames.level) * hop
    noise = rng.standard_normal(n_samples, dtype=np.float32)
    loud = frames.level > 0
    if not loud.any():
        return np.zeros(n_samples, np.float32)
    size = fft.next_fast_len(n_samples, real=True)
    frequency_hz = fft.rfftfreq(size, 1 / rate_hz)
    coarse_hz = np.linspace(0, rate_hz / 2, 400)
    gain = formant_gain(
        coarse_hz,
        frames.formant_hz[loud].mean(axis=0),
        frames.formant_db[loud].mean(axis=0)
        / 2,  # noise is made along the whole tract: flatter than the voice
        3 * frames.formant_width_hz[loud].mean(axis=0),
    )
    gain *= coarse_hz / np.hypot(coarse_hz, _ASPIRATION_HZ)
    shaped = fft.irfft(
        fft.rfft(noise, size) * np.interp(frequency_hz, coarse_hz, gain).astype(np.float32), size
    )
    shaped = shaped[:n_samples] / max(float(np.sqrt(np.mean(np.square(shaped)))), 1e-9)
    level = np.repeat(frames.level, hop) * 10 ** (traits.breath_db / 20)
    return np.asarray(shaped * level, np.float32)


def _add_burst(
    sound: Float32, burst: NoiseBurst, start_sec: float, rate_hz: int, rng: np.random.Generator
) -> None:
    """Add air to a sound, in place."""
    begin = round((burst.begin_sec - start_sec) * rate_hz)
    length = max(round(burst.duration_sec * rate_hz), 2)
    noise = _band_noise(length, burst, rate_hz, rng)
    place = np.arange(length) / length
    shape = np.minimum(place / burst.peak, (1 - place) / (1 - burst.peak))
    noise *= (burst.level * np.square(np.sin(np.pi / 2 * shape))).astype(np.float32)
    first, last = max(begin, 0), min(begin + length, len(sound))
    if first < last:
        sound[first:last] += noise[first - begin : last - begin]


def _band_noise(length: int, burst: NoiseBurst, rate_hz: int, rng: np.random.Generator) -> Float32:
    spectrum = fft.rfft(rng.standard_normal(length, dtype=np.float32))
    frequency_hz: Float64 = np.maximum(fft.rfftfreq(length, 1 / rate_hz), 20.0)
    octaves = np.log2(frequency_hz / burst.centre_hz) / burst.octaves
    noise = fft.irfft(spectrum * np.exp(-0.5 * np.square(octaves)).astype(np.float32), length)
    return np.asarray(noise / max(float(np.sqrt(np.mean(np.square(noise)))), 1e-9), np.float32)
