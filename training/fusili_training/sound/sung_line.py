"""How one line of notes is sung: pitch, loudness, vowels and consonants over time.

When a note begins
------------------
Its onset is where its vowel begins to sound. The consonant before the vowel comes earlier, at the cost of the
note before; a glide from the note before is over at the onset. Where a vowel goes on from note to note (a
melisma), the onset is the middle of the glide between both pitches.

What is drawn for a note depends on the singer, its second and its pitch, so every clip that contains it has the
same syllable at the same time; how a note starts also depends on the note before, and small wavering on the clip.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import Literal, TypeAlias

import numpy as np
from scipy import ndimage

from fusili_mir.arrays import Float64
from fusili_training.random_streams import random_stream
from fusili_training.sound.notes import PerformedArray
from fusili_training.sound.vowels import Register, Vowel, draw_vowel, formant_gain, tuned_to_pitch

__all__ = ["FRAME_SEC", "NoiseBurst", "SungFrames", "Traits", "draw_traits", "shape_line", "tilt_gain"]

FRAME_SEC = 0.002
"""Distance of the frames in which pitch, loudness and vowels are given."""

_Start: TypeAlias = Literal["melisma", "vowel", "plosive", "fricative", "nasal"]

_STARTS: tuple[_Start, ...] = ("vowel", "plosive", "fricative", "nasal")
_START_SHARES = (0.2, 0.3, 0.25, 0.25)
_LEGATO_SEC = 0.06  # a shorter silence between two notes is none
_BREATH_GAP_SEC = 0.45  # a longer one is used for breathing
_LEFT_TO_VOWEL = 0.6  # share of a note that the consonant of the next one leaves to it
_REFERENCE_RMS, _REFERENCE_VELOCITY = 0.03, 64  # as sound banks have it
_NASAL = Vowel(
    np.array([260.0, 1150.0, 2250.0, 3100.0, 4000.0]),
    np.array([0.0, -26.0, -30.0, -36.0, -48.0]),
    np.array([70.0, 150.0, 180.0, 200.0, 220.0]),
)
_NASAL_LEVEL = 0.35
_TILT_FROM_HZ = 500.0
_VIBRATO_RISE_SEC, _VIBRATO_FALL_SEC = 0.25, 0.06
_SHORTEST_VIBRATO_SEC = 0.3  # of a note
_VOWEL_CHANGE_SEC = 0.018
_DRIFT_SEC, _DRIFT_CENTS = 0.12, 5.0
_JITTER_SEC, _JITTER_CENTS = 0.004, 5.0
_SHIMMER = 0.03
_SCOOPED, _SCOOP_SEC = 0.3, 0.035  # share of first notes that begin too low, and how soon they are in tune


@dataclass(frozen=True)
class Traits:
    """What is peculiar to one singer."""

    register: Register
    seed: int
    words: int  # seed of vowels and consonants, which a choir shares
    tract: float  # factor of all formants
    tuning_cents: float
    late_sec: float  # after the others of a choir
    vibrato_hz: float
    vibrato_cents: float  # to either side
    vibrato_delay_sec: float
    glide_sec: float
    attack_sec: float
    tilt_db: float  # per octave, above 500 Hz, at a middling loudness
    breath_db: float  # of the air in the voice, below the voice
    melisma: float  # share of tied-over vowels among legato notes
    breathes: float  # share of breaths that are heard


def draw_traits(register: Register, seed: int, voice: int, n_voices: int) -> Traits:
    """Draw the traits of a singer, or of one voice of a choir, which sings the same words together."""
    rng = random_stream(seed, "singer", voice)
    straight = rng.uniform() < 0.15
    choir = n_voices > 1
    return Traits(
        register,
        int(rng.integers(2**62)),
        seed,
        tract=float(np.exp(rng.normal(0.0, 0.05))),
        tuning_cents=float(rng.normal(0.0, 8.0 if choir else 3.0)),
        late_sec=float(rng.uniform(-0.012, 0.012)) if choir else 0.0,
        vibrato_hz=float(rng.uniform(4.8, 6.6)),
        vibrato_cents=float(rng.uniform(0.0, 10.0) if straight else rng.uniform(25.0, 100.0)),
        vibrato_delay_sec=float(rng.uniform(0.05, 0.4)),
        glide_sec=float(np.exp(rng.uniform(np.log(0.05), np.log(0.16)))),
        attack_sec=float(np.exp(rng.uniform(np.log(0.015), np.log(0.05)))),
        tilt_db=float(rng.uniform(-3.0, 1.5)),
        breath_db=float(rng.uniform(-45.0, -26.0)),
        melisma=float(random_stream(seed, "melismas").uniform(0.0, 0.5)),
        breathes=float(rng.uniform(0.0, 0.9)),
    )


@dataclass(frozen=True)
class NoiseBurst:
    """Air: noise around a frequency, which rises to its peak and falls again."""

    begin_sec: float
    duration_sec: float
    peak: float  # share of the duration until the peak
    level: float
    centre_hz: float
    octaves: float  # standard deviation around the centre


@dataclass(frozen=True, eq=False)
class SungFrames:
    """How a line is sung in each frame, (n,) but for the formants, which are (n, 5)."""

    pitch_hz: Float64
    level: Float64  # root mean square; 0 where no vowel or nasal sounds
    gain: Float64  # factor of a harmonic that is not filtered, with which the voice has a level of 1
    tilt_db: Float64
    formant_hz: Float64
    formant_db: Float64
    formant_width_hz: Float64
    bursts: list[NoiseBurst] = field(default_factory=list)


@dataclass(frozen=True, eq=False)
class _Sung:
    """One note of a line, with what was drawn for it."""

    onset_sec: float
    stop_sec: float  # of its vowel
    pitch: float
    start: _Start
    start_sec: float  # length of the consonant
    legato: bool
    pause_sec: float  # of silence before it
    level: float
    gain: float
    tilt_db: float
    vowel: Vowel
    glide_sec: float
    attack_sec: float
    release_sec: float
    chance: Float64  # (8,): of further details


def shape_line(
    notes: PerformedArray, traits: Traits, start_sec: float, n_frames: int, frame_sec: float = FRAME_SEC
) -> SungFrames:
    """Decide how a line of notes is sung.

    Parameters
    ----------
    notes : np.ndarray [shape=(n,), dtype=PERFORMED_DTYPE]
        One after another; a note that overlaps the next one ends there.
    traits : Traits
    start_sec : float
        Second of the first frame.
    n_frames : int
    frame_sec : float
        `FRAME_SEC`, or the whole number of samples that is nearest to it.

    Returns
    -------
    SungFrames
    """
    sung = _sung_notes(notes, traits)
    time_sec = start_sec + frame_sec * np.arange(n_frames, dtype=np.float64)
    rng = random_stream(traits.seed, "frames", round(1000 * start_sec))
    level = _level(sung, time_sec)
    level *= 1 + _SHIMMER * _smooth_noise(n_frames, _JITTER_SEC, rng)
    cents = _vibrato_cents(sung, traits, time_sec)
    cents += _DRIFT_CENTS * _smooth_noise(n_frames, _DRIFT_SEC, rng)
    cents += _JITTER_CENTS * _smooth_noise(n_frames, _JITTER_SEC, rng)
    pitch_hz = _hz(_pitch(sung, time_sec) + (cents + traits.tuning_cents) / 100)
    formants = _formants(sung, traits, time_sec)  # (n, 3, 5)
    formants[:, 0, 0] = tuned_to_pitch(formants[:, 0, 0], pitch_hz)
    return SungFrames(
        pitch_hz,
        np.maximum(level, 0.0),
        np.exp(_smoothed(_log_gain(sung, traits, time_sec))),
        _stepwise(sung, time_sec, np.array([note.tilt_db for note in sung])),
        formants[:, 0],
        formants[:, 1],
        formants[:, 2],
        [burst for note in sung for burst in _bursts(note, traits)],
    )


def _hz(pitch: Float64) -> Float64:
    return np.asarray(440.0 * 2 ** ((pitch - 69) / 12))


def _sung_notes(notes: PerformedArray, traits: Traits) -> list[_Sung]:
    sung: list[_Sung] = []
    onsets = [*notes["onset_sec"].tolist(), np.inf]
    starts = [_draw_start(note, notes[row - 1] if row else None, traits) for row, note in enumerate(notes)]
    vowel = draw_vowel(traits.register, random_stream(traits.words, "first vowel")).scaled(traits.tract)
    before_onset = before_end = -np.inf
    for row, note in enumerate(notes):
        onset_sec = float(note["onset_sec"])
        end_sec = min(onset_sec + float(note["duration_sec"]), onsets[row + 1])
        pause_sec = onset_sec - before_end
        legato = pause_sec < _LEGATO_SEC
        chance = _stream_of(note, traits.seed, "note").uniform(size=8)
        start, start_sec = _fitted(starts[row], legato, onset_sec, before_onset, before_end)
        next_sec = 0.0
        is_followed = row + 1 < len(notes) and onsets[row + 1] - end_sec < _LEGATO_SEC
        if is_followed:
            next_sec = _fitted(starts[row + 1], True, onsets[row + 1], onset_sec, end_sec)[1]
        if start != "melisma":
            vowel = draw_vowel(traits.register, _stream_of(note, traits.words, "vowel")).scaled(traits.tract)
        length_sec = end_sec - onset_sec
        shorter_sec = min(length_sec, before_end - before_onset) if row else length_sec
        velocity = int(note["velocity"])
        tilt_db = traits.tilt_db + 4.0 * (velocity - _REFERENCE_VELOCITY) / _REFERENCE_VELOCITY
        sung.append(
            _Sung(
                onset_sec + traits.late_sec,
                min(end_sec, onsets[row + 1] - next_sec) + traits.late_sec,
                float(note["pitch"]),
                start,
                start_sec,
                legato,
                pause_sec,
                _REFERENCE_RMS * (velocity / _REFERENCE_VELOCITY) ** 2,
                _gain_of(float(note["pitch"]), vowel, tilt_db),
                tilt_db,
                vowel,
                glide_sec=min(traits.glide_sec * (0.6 + 0.8 * chance[0]), 0.5 * shorter_sec),
                attack_sec=min(traits.attack_sec * (0.6 + 0.8 * chance[1]), 0.5 * length_sec),
                release_sec=0.03 if is_followed else 0.06 + 0.12 * float(chance[2]),
                chance=chance,
            )
        )
        before_onset, before_end = onset_sec, end_sec
    return sung


def _stream_of(note: np.void, seed: int, purpose: str) -> np.random.Generator:
    return random_stream(seed, purpose, round(10_000 * float(note["onset_sec"])), int(note["pitch"]))


def _draw_start(note: np.void, before: np.void | None, traits: Traits) -> tuple[bool, _Start, float]:
    """Return whether a note goes on with the vowel before, if it can, or else its consonant and its length."""
    rng = _stream_of(note, traits.words, "start")
    slurred = bool(rng.uniform() < traits.melisma)
    start: _Start = _STARTS[int(rng.choice(len(_STARTS), p=_START_SHARES))]
    shortest, longest = {
        "vowel": (0.0, 0.03),  # a closed glottis
        "plosive": (0.05, 0.11),
        "fricative": (0.06, 0.15),
        "nasal": (0.05, 0.11),
    }[start]
    # The same pitch on the same vowel would be one longer note.
    is_other_pitch = before is not None and int(before["pitch"]) != int(note["pitch"])
    return slurred and is_other_pitch, start, float(rng.uniform(shortest, longest))


def _fitted(
    drawn: tuple[bool, _Start, float], legato: bool, onset_sec: float, before_onset: float, before_end: float
) -> tuple[_Start, float]:
    """Return how a note starts, and how long its consonant lasts with the note before it."""
    slurred, start, start_sec = drawn
    if slurred and legato:
        return "melisma", 0.0
    if not np.isfinite(before_end):
        return start, start_sec
    room_sec = onset_sec - (before_onset + _LEFT_TO_VOWEL * (before_end - before_onset))
    return start, min(start_sec, room_sec)


def _gain_of(pitch: float, vowel: Vowel, tilt_db: float) -> float:
    """Return the factor of the harmonics with which a vowel has a root mean square of 1."""
    pitch_hz = _hz(np.array(pitch))
    harmonics_hz = pitch_hz * np.arange(1, max(2, int(5000 / pitch_hz)))
    first_hz = tuned_to_pitch(vowel.hz[:1], pitch_hz)
    gain = formant_gain(harmonics_hz, np.concatenate([first_hz, vowel.hz[1:]]), vowel.db, vowel.width_hz)
    gain *= tilt_gain(harmonics_hz, np.array(tilt_db))
    return 1 / max(float(np.sqrt(np.sum(np.square(gain)) / 2)), 1e-6)


def tilt_gain(frequency_hz: Float64, tilt_db: Float64) -> Float64:
    """Return the gain of a slope above 500 Hz, in dB per octave; shapes as in broadcasting."""
    octaves = np.log2(np.maximum(frequency_hz, _TILT_FROM_HZ) / _TILT_FROM_HZ)
    return np.asarray(10 ** (tilt_db * octaves / 20))


def _step(x: Float64) -> Float64:
    """Rise smoothly from 0 at -1/2 to 1 at 1/2."""
    share = np.clip(x + 0.5, 0.0, 1.0)
    return np.asarray(share * share * (3 - 2 * share))


def _level(sung: list[_Sung], time_sec: Float64) -> Float64:
    level = np.zeros(len(time_sec))
    for place, note in enumerate(sung):
        following = sung[place + 1] if place + 1 < len(sung) else None
        into_next = following is not None and following.start == "melisma"
        rise_sec = note.glide_sec if note.start == "melisma" else note.attack_sec
        rise_from = note.onset_sec - (rise_sec / 2 if note.start == "melisma" else 0.0)
        fall_sec = following.glide_sec if following is not None and into_next else note.release_sec
        fall_from = note.stop_sec
        if following is not None and into_next:
            fall_from = following.onset_sec - fall_sec / 2
        elif following is not None and following.legato:
            fall_from = max(note.stop_sec - fall_sec, note.onset_sec + rise_sec)
        first = np.searchsorted(time_sec, min(rise_from, note.onset_sec - note.start_sec))
        last = np.searchsorted(time_sec, fall_from + fall_sec)
        here = time_sec[first:last]
        shape = _step((here - rise_from) / max(rise_sec, FRAME_SEC) - 0.5)
        if note.start == "nasal":
            nasal_sec = max(note.start_sec, FRAME_SEC)
            hum = _step((here - (note.onset_sec - nasal_sec)) / min(0.02, nasal_sec) - 0.5)
            shape = _NASAL_LEVEL * hum + (1 - _NASAL_LEVEL) * shape
        shape *= 1 - _step((here - fall_from) / max(fall_sec, FRAME_SEC) - 0.5)
        swell = (float(note.chance[3]) - 0.3) * 0.6  # more often a swell than a fading
        share = np.clip((here - note.onset_sec) / max(note.stop_sec - note.onset_sec, FRAME_SEC), 0, 1)
        level[first:last] += note.level * shape * (1 + swell * np.sin(np.pi * share))
    return level


def _pitch(sung: list[_Sung], time_sec: Float64) -> Float64:
    pitch = _stepwise(sung, time_sec, np.array([note.pitch for note in sung]))
    for before, note in pairwise(sung):
        if note.legato:
            until_sec = note.onset_sec + (note.glide_sec / 2 if note.start == "melisma" else 0.0)
            begin_sec = min(until_sec - note.glide_sec, note.onset_sec - note.start_sec)
            here = slice(*np.searchsorted(time_sec, [begin_sec, until_sec]))
            share = _step((time_sec[here] - until_sec) / max(note.glide_sec, FRAME_SEC) + 0.5)
            pitch[here] = before.pitch + (note.pitch - before.pitch) * share
    for note in sung:
        if not note.legato and note.chance[4] < _SCOOPED:
            here = slice(*np.searchsorted(time_sec, [note.onset_sec - note.start_sec, note.stop_sec]))
            since_sec = np.maximum(time_sec[here] - note.onset_sec, 0.0)
            pitch[here] -= (0.3 + 1.2 * note.chance[5]) * np.exp(-since_sec / _SCOOP_SEC)
    return pitch


def _vibrato_cents(sung: list[_Sung], traits: Traits, time_sec: Float64) -> Float64:
    depth, rate_hz = np.zeros(len(time_sec)), np.full(len(time_sec), traits.vibrato_hz)
    for note in sung:
        if note.stop_sec - note.onset_sec < _SHORTEST_VIBRATO_SEC:
            continue
        here = slice(*np.searchsorted(time_sec, [note.onset_sec, note.stop_sec + note.release_sec]))
        delay_sec = traits.vibrato_delay_sec * (0.5 + note.chance[6])
        rise = _step((time_sec[here] - note.onset_sec - delay_sec) / _VIBRATO_RISE_SEC - 0.5)
        fall = 1 - _step((time_sec[here] - note.stop_sec) / _VIBRATO_FALL_SEC + 0.5)
        depth[here] = traits.vibrato_cents * (0.7 + 0.6 * note.chance[7]) * rise * np.maximum(fall, 0.3)
        rate_hz[here] *= 0.96 + 0.08 * note.chance[0]
    rate_hz = ndimage.gaussian_filter1d(rate_hz, 0.05 / FRAME_SEC, mode="nearest")
    phase = 2 * np.pi * (traits.vibrato_hz * time_sec[0] + np.cumsum(rate_hz) * FRAME_SEC)
    return np.asarray(depth * np.sin(phase))


def _stepwise(sung: list[_Sung], time_sec: Float64, values: Float64) -> Float64:
    """Return the value of the note of each frame; a note has the time of its consonant, too; (n, ...)."""
    begins = [note.onset_sec - note.start_sec for note in sung]
    return np.asarray(values[np.maximum(np.searchsorted(begins, time_sec, side="right") - 1, 0)])


def _formants(sung: list[_Sung], traits: Traits, time_sec: Float64) -> Float64:
    """Return frequencies, levels and widths, (n, 3, 5)."""
    vowels = np.array([(note.vowel.hz, note.vowel.db, note.vowel.width_hz) for note in sung])
    formants = _stepwise(sung, time_sec, vowels)
    closed = _NASAL.scaled(traits.tract)
    for note in sung:
        if note.start == "nasal":
            here = slice(*np.searchsorted(time_sec, [note.onset_sec - note.start_sec, note.onset_sec]))
            formants[here] = closed.hz, closed.db, closed.width_hz
    return _smoothed(formants)


def _log_gain(sung: list[_Sung], traits: Traits, time_sec: Float64) -> Float64:
    gain = _stepwise(sung, time_sec, np.log([note.gain for note in sung]))
    for note in sung:
        if note.start == "nasal":
            here = slice(*np.searchsorted(time_sec, [note.onset_sec - note.start_sec, note.onset_sec]))
            gain[here] = np.log(_gain_of(note.pitch, _NASAL.scaled(traits.tract), note.tilt_db))
    return gain


def _smoothed(values: Float64) -> Float64:
    """Smooth steps over frames, (n, ...): mouths move."""
    return np.asarray(
        ndimage.gaussian_filter1d(values, _VOWEL_CHANGE_SEC / FRAME_SEC, axis=0, mode="nearest")
    )


def _bursts(note: _Sung, traits: Traits) -> list[NoiseBurst]:
    bursts = []
    begin_sec = note.onset_sec - note.start_sec
    more, other = float(note.chance[1]), float(note.chance[2])
    if note.start == "fricative" and note.start_sec > 0.02:
        level = note.level * 10 ** ((-16.0 + 10.0 * more) / 20)
        centre_hz = float(np.exp(np.log(2200) + other * np.log(3)))
        bursts.append(NoiseBurst(begin_sec, note.start_sec + 0.015, 0.6, level, centre_hz, 0.5))
    if note.start == "plosive" and note.start_sec > 0.02:
        aspired_sec = 0.008 + 0.03 * other * other  # from the burst to the vowel
        level = note.level * 10 ** ((-14.0 + 9.0 * more) / 20)
        centre_hz = float(np.exp(np.log(600) + other * np.log(7)))
        bursts.append(
            NoiseBurst(note.onset_sec - aspired_sec, aspired_sec + 0.012, 0.1, level, centre_hz, 1.0)
        )
    if note.pause_sec > _BREATH_GAP_SEC and note.chance[5] < traits.breathes:
        length_sec = 0.2 + 0.3 * other
        length_sec = min(length_sec, note.pause_sec - 0.2)
        level = note.level * 10 ** ((-28.0 + 12.0 * more) / 20)
        bursts.append(
            NoiseBurst(begin_sec - 0.04 - length_sec, length_sec, 0.7, level, 1400 + 1000 * other, 0.7)
        )
    return bursts


def _smooth_noise(n_frames: int, sigma_sec: float, rng: np.random.Generator) -> Float64:
    """Return noise of standard deviation 1, without quick changes, (n,)."""
    sigma = sigma_sec / FRAME_SEC
    noise = ndimage.gaussian_filter1d(rng.standard_normal(n_frames), sigma, mode="wrap")
    return np.asarray(noise * np.sqrt(2 * np.sqrt(np.pi) * sigma))
