"""Scenes: some seconds of sound, and when each pitch is struck in them.

A scene is a passage of a piece, performed with expression, or a texture made by rule; played by sampled
instruments or sung, in a room, and worn like a recording.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fusili_mir.arrays import Float32, Float64, Int64
from fusili_training.listening.textures import draw_texture
from fusili_training.pitches import LOWEST_PITCH, N_PITCHES
from fusili_training.sound.augment_audio import AudioAugmentation, augment_audio
from fusili_training.sound.expression import Expression, draw_expression, perform
from fusili_training.sound.notes import PerformedArray
from fusili_training.sound.rooms import draw_room, play_in_room
from fusili_training.sound.singing import draw_singer
from fusili_training.sound.soundbank import SoundBank
from fusili_training.sound.sounding_score import SoundingScore
from fusili_training.sound.synthesis import Instrument, synthesise
from fusili_training.sound.vowels import PITCH_RANGES
from fusili_training.sound.wear import wear

__all__ = ["Instruments", "Scene", "SceneMaker", "onset_targets"]

_LEAD_SEC = 2.5  # what sounds at the beginning of a scene may have begun before
_SIGMA_STEPS = 0.9  # width of a target: wide enough to be located more finely than steps
_EXPRESSION = Expression(
    tempo_factor=1.5,
    rubato=0.18,
    rubato_quarter=3.0,
    jitter_sec=0.02,
    chord_spread_sec=0.035,
    marks=1.0,
    dynamics=20.0,
    articulation=0.35,
    pedal=0.7,
)
_CHANGES = AudioAugmentation(
    detune_cents=35.0, colour_db=5.0, reverb_sec=0.0, lowest_snr_db=8.0, snr_range_db=50.0
)
_LEVEL_DB = (-42.0, -18.0)  # of a scene; the loud parts of a recording are brought to -22 dB
_LONGEST_ROOM_SEC = 2.6


@dataclass(frozen=True)
class Instruments:
    """Sound banks of keyboards, which have a pedal, and of others, each with its range of MIDI pitches."""

    keyboards: Sequence[SoundBank]
    others: Sequence[tuple[SoundBank, tuple[int, int]]]


@dataclass(frozen=True, eq=False)
class Scene:
    """Sound [shape=(n_samples,)], and the seconds and MIDI pitches of the notes that begin in it [shape=(n,)]."""

    samples: Float32
    onset_sec: Float64
    pitch: Int64


class SceneMaker:
    """Makes scenes.

    Parameters
    ----------
    scores : sequence of SoundingScore
        Pieces of which passages are played; may be empty.
    instruments : Instruments
    duration_sec : float
    piece_share : float
        Share of scenes that are passages of pieces.
    keyboard_share : float
        Share of textures that a keyboard plays.
    singing : float
        Share that is sung of the parts with words, and of the lines of other textures that a singer can reach.
    """

    def __init__(
        self,
        scores: Sequence[SoundingScore],
        instruments: Instruments,
        duration_sec: float,
        piece_share: float = 0.45,
        keyboard_share: float = 0.65,
        singing: float = 0.0,
    ) -> None:
        self.scores = [score for score in scores if len(score.notes)]
        self.instruments, self.duration_sec = instruments, duration_sec
        self.piece_share = piece_share if self.scores else 0.0
        self.keyboard_share, self.singing = keyboard_share, singing
        self._rate_hz = instruments.keyboards[0].sample_rate_hz

    def draw(self, rng: np.random.Generator) -> Scene:
        """Draw a scene."""
        is_piece = rng.uniform() < self.piece_share
        notes, banks = self._passage(rng) if is_piece else self._texture(rng)
        clip = synthesise(notes, banks, self.duration_sec)
        if rng.uniform() < 0.65:
            clip = play_in_room(clip, draw_room(self._rate_hz, _LONGEST_ROOM_SEC, rng))
        if rng.uniform() < 0.2:
            clip = wear(clip, self._rate_hz, rng)
        augmented = augment_audio(clip, self._rate_hz, _CHANGES, rng)
        samples = np.zeros(len(clip), np.float32)
        kept = min(len(clip), len(augmented.samples))
        samples[:kept] = augmented.samples[:kept]
        rms = float(np.sqrt(np.mean(np.square(samples, dtype=np.float64))))
        samples *= np.float32(10 ** (rng.uniform(*_LEVEL_DB) / 20) / max(rms, 1e-6))
        onset_sec = notes["onset_sec"] * augmented.time_factor
        heard = (onset_sec >= 0) & (onset_sec < self.duration_sec)
        return Scene(samples, onset_sec[heard], notes["pitch"][heard].astype(np.int64))

    def _passage(self, rng: np.random.Generator) -> tuple[PerformedArray, dict[int, Instrument]]:
        score = self.scores[int(rng.integers(len(self.scores)))]
        style = draw_expression(_EXPRESSION, rng)
        played = perform(score.notes, score.tempo, style, rng)
        first_sec, last_sec = float(played["onset_sec"].min()), float(played["onset_sec"].max())
        start_sec = rng.uniform(first_sec - 0.5, max(last_sec - self.duration_sec, first_sec))
        played["onset_sec"] -= start_sec
        near = (played["onset_sec"] > -_LEAD_SEC) & (played["onset_sec"] < self.duration_sec)
        banks: dict[int, Instrument] = {}
        for part in range(len(score.part_ids)):
            of_part = score.notes[score.notes["part"] == part]
            on_keyboard = len(np.unique(of_part["staff"])) > 1 or len(score.part_ids) == 1
            if on_keyboard:
                banks[part] = self._keyboard(rng)
            else:
                banks[part] = self._voice(of_part["pitch"], part in score.sung_parts, rng)
        return played[near], banks

    def _texture(self, rng: np.random.Generator) -> tuple[PerformedArray, dict[int, Instrument]]:
        if rng.uniform() < self.keyboard_share:
            notes = draw_texture(self.duration_sec, rng)
            bank: Instrument = self._keyboard(rng)
            return notes, dict.fromkeys(np.unique(notes["part"]).tolist(), bank)
        notes = draw_texture(self.duration_sec, rng, monophonic=True, fastest_hz=9.0)
        banks: dict[int, Instrument] = {}
        for part in np.unique(notes["part"]).tolist():
            pitches = notes["pitch"][notes["part"] == part]
            banks[part] = self._voice(pitches, _is_singable(pitches), rng)
        return notes, banks

    def _keyboard(self, rng: np.random.Generator) -> SoundBank:
        return self.instruments.keyboards[int(rng.integers(len(self.instruments.keyboards)))]

    def _voice(self, pitches: Int64, may_be_sung: bool, rng: np.random.Generator) -> Instrument:
        """Draw an instrument that has these pitches, or nearly all of them."""
        if self.singing and may_be_sung and rng.uniform() < self.singing:
            return draw_singer(pitches, self._rate_hz, rng)
        low, high = np.percentile(pitches, [5, 95]) if len(pitches) else (60, 60)
        fitting = [bank for bank, (least, most) in self.instruments.others if least <= low and high <= most]
        return fitting[int(rng.integers(len(fitting)))] if fitting else self._keyboard(rng)


def _is_singable(pitches: Int64) -> bool:
    return any(least <= pitches.min() and pitches.max() <= most for least, most in PITCH_RANGES.values())


def onset_targets(scene: Scene, n_steps: int, step_sec: float) -> Float32:
    """Return how much of an onset is at each step [shape=(n_steps, 88)]: 1 where it is in its middle."""
    targets = np.zeros((n_steps, N_PITCHES), np.float32)
    place = scene.onset_sec / step_sec - 0.5  # the middle of step i is at i + 1/2
    key = scene.pitch - LOWEST_PITCH
    nearest = np.rint(place).astype(np.int64)
    for away in (-2, -1, 0, 1, 2):
        step = nearest + away
        inside = (step >= 0) & (step < n_steps)
        share = np.exp(-0.5 * np.square((step - place) / _SIGMA_STEPS)).astype(np.float32)
        np.maximum.at(targets, (step[inside], key[inside]), share[inside])
    return targets
