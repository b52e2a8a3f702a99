"""Figures of keyboard music, as endless rows of moments: runs, arpeggios, chords, tremolos, trills, leaps.

What plays them decides how long a step lasts: `fusili_training.listening.textures` in seconds, for ears, and
`fusili_training.notation.written_textures` in note values, for eyes and ears.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

__all__ = ["CHORDS", "FIGURES", "SCALES", "VOICES", "Figure", "Ground", "Moment"]

SCALES = ((0, 2, 4, 5, 7, 9, 11), (0, 2, 3, 5, 7, 8, 11), tuple(range(12)), (0, 2, 4, 7, 9))
CHORDS = ((0, 4, 7), (0, 3, 7), (0, 4, 7, 10), (0, 3, 6, 9), (0, 4, 8), (0, 3, 7, 10), (0, 7))


@dataclass(frozen=True)
class Moment:
    """Pitches that are struck together, and for how many steps of the figure they last."""

    pitches: tuple[int, ...]
    steps: float = 1.0


@dataclass(frozen=True)
class Ground:
    """The tonic, the scale and the chord of a layer, and the pitch around which it moves."""

    tonic: int
    scale: tuple[int, ...]
    chord: tuple[int, ...]
    centre: int

    def degree(self, number: int) -> int:
        """Return the pitch of a degree of the scale, counted from the one nearest to the centre."""
        return self._pitch(self.scale, number)

    def chord_tone(self, number: int) -> int:
        """Return a pitch of the chord, counted from the one nearest to the centre."""
        return self._pitch(self.chord, number)

    def _pitch(self, steps: tuple[int, ...], number: int) -> int:
        octave, step = divmod(number, len(steps))
        return self.centre - (self.centre - self.tonic) % 12 + 12 * octave + steps[step]


Figure: TypeAlias = Callable[[Ground, np.random.Generator], Iterator[Moment]]


def _runs(ground: Ground, rng: np.random.Generator) -> Iterator[Moment]:
    place, direction = int(rng.integers(-7, 8)), 1
    doubling = [(0,), (0, 2), (0, len(ground.scale)), (0, 5)][int(rng.choice(4, p=[0.6, 0.13, 0.2, 0.07]))]
    while True:
        yield Moment(tuple(ground.degree(place + step) for step in doubling))
        if abs(place) > 14 or rng.uniform() < 0.06:
            direction = -1 if place > 0 else 1
        place += direction


def _arpeggios(ground: Ground, rng: np.random.Generator) -> Iterator[Moment]:
    width = int(rng.integers(3, 10))
    order = list(range(width)) + (list(range(width - 2, 0, -1)) if rng.uniform() < 0.6 else [])
    if rng.uniform() < 0.3:
        rng.shuffle(order)
    while True:
        for number in order:
            yield Moment((ground.chord_tone(number - width // 2),))
        if rng.uniform() < 0.3:
            chord = CHORDS[int(rng.integers(len(CHORDS)))]
            ground = Ground(int(rng.integers(12)), ground.scale, chord, ground.centre)


def _chords(ground: Ground, rng: np.random.Generator) -> Iterator[Moment]:
    while True:
        n_notes, place = int(rng.integers(2, 6)), int(rng.integers(-3, 2))
        pitches = {ground.chord_tone(place + number) for number in range(n_notes)}
        for _ in range(int(rng.integers(1, 9))):
            yield Moment(tuple(sorted(pitches)))
        chord = CHORDS[int(rng.integers(len(CHORDS)))]
        ground = Ground(int(rng.integers(12)), ground.scale, chord, ground.centre)


def _tremolos(ground: Ground, rng: np.random.Generator) -> Iterator[Moment]:
    while True:
        place, width = int(rng.integers(-3, 2)), int(rng.integers(1, 4))
        low = tuple(ground.chord_tone(place + number) for number in range(int(rng.integers(1, 3))))
        high = tuple(ground.chord_tone(place + width + number) for number in range(int(rng.integers(1, 3))))
        for _ in range(int(rng.integers(4, 16))):
            yield Moment(low)
            yield Moment(high)


def _trills(ground: Ground, rng: np.random.Generator) -> Iterator[Moment]:
    while True:
        place = int(rng.integers(-7, 8))
        for _ in range(int(rng.integers(4, 24))):
            yield Moment((ground.degree(place),))
            yield Moment((ground.degree(place + 1),))
        yield Moment((ground.degree(place),), float(rng.integers(1, 8)))


def _leaps(ground: Ground, rng: np.random.Generator) -> Iterator[Moment]:
    while True:
        place = int(rng.integers(-16, 17))
        doubling = (0, 12) if rng.uniform() < 0.4 else (0,)
        yield Moment(tuple(ground.degree(place) + step for step in doubling))


def _melody(ground: Ground, rng: np.random.Generator) -> Iterator[Moment]:
    place = 0
    while True:
        steps = float(rng.choice([0.5, 1.0, 1.0, 2.0, 3.0]))
        yield Moment((ground.degree(place),), steps)
        if rng.uniform() < 0.15:
            yield Moment((), float(rng.choice([0.5, 1.0])))  # a rest
        place = int(np.clip(place + rng.choice([-4, -2, -1, -1, 0, 1, 1, 2, 4]), -9, 9))


FIGURES: tuple[tuple[Figure, float, float], ...] = (
    (_runs, 3.0, 16.0),
    (_arpeggios, 3.0, 16.0),
    (_chords, 0.7, 8.0),
    (_tremolos, 6.0, 16.0),
    (_trills, 8.0, 16.0),
    (_leaps, 1.5, 10.0),
    (_melody, 1.0, 5.0),
)
VOICES = (FIGURES[0], FIGURES[1], *[FIGURES[6]] * 3)
