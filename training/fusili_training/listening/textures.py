"""Music made by rule, for ears rather than eyes: runs, arpeggios, tremolos, trills, repeated chords, wide leaps.

Such passages are rare in songs and common in piano music, up to sixteen notes a second. A texture has some
layers in different registers, each with a figure, a level and an articulation of its own; a pedal may hold what
is struck.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from fusili_training.pitches import HIGHEST_PITCH, LOWEST_PITCH
from fusili_training.sound.notes import PERFORMED_DTYPE, PerformedArray, end_at_next_stroke

__all__ = ["draw_texture"]

_SCALES = ((0, 2, 4, 5, 7, 9, 11), (0, 2, 3, 5, 7, 8, 11), tuple(range(12)), (0, 2, 4, 7, 9))
_CHORDS = ((0, 4, 7), (0, 3, 7), (0, 4, 7, 10), (0, 3, 6, 9), (0, 4, 8), (0, 3, 7, 10), (0, 7))
_JITTER_SEC = 0.008
_SHORTEST_SEC = 0.04


@dataclass(frozen=True)
class _Moment:
    """Pitches that are struck together, and for how many steps of the figure they last."""

    pitches: tuple[int, ...]
    steps: float = 1.0


@dataclass(frozen=True)
class _Ground:
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


_Figure = Callable[[_Ground, np.random.Generator], Iterator[_Moment]]


def draw_texture(
    duration_sec: float, rng: np.random.Generator, monophonic: bool = False, fastest_hz: float = 16.0
) -> PerformedArray:
    """Draw a passage of music.

    Parameters
    ----------
    duration_sec : float
    rng : np.random.Generator
    monophonic : bool
        Whether each layer is a single voice, as for strings and winds.
    fastest_hz : float
        Most strokes per second of a layer.

    Returns
    -------
    np.ndarray [shape=(n,), dtype=PERFORMED_DTYPE]
        Its parts are the layers; ids are empty.
    """
    n_layers = int(rng.choice([1, 2, 3, 4], p=[0.2, 0.3, 0.3, 0.2] if monophonic else [0.3, 0.5, 0.2, 0.0]))
    centres = np.sort(rng.uniform(33, 90, size=n_layers))
    tonic, scale = int(rng.integers(12)), _SCALES[int(rng.integers(len(_SCALES)))]
    figures = _VOICES if monophonic else _FIGURES
    layers = []
    for part, centre in enumerate(centres):
        ground = _Ground(tonic, scale, _CHORDS[int(rng.integers(len(_CHORDS)))], int(centre))
        figure, slowest_hz, quickest_hz = figures[int(rng.integers(len(figures)))]
        strokes_hz = float(np.exp(rng.uniform(np.log(slowest_hz), np.log(min(quickest_hz, fastest_hz)))))
        layers.append(_layer(figure(ground, rng), strokes_hz, duration_sec, part, rng))
    played = np.concatenate(layers)
    if not monophonic:
        _press_pedal(played, duration_sec, rng)
    end_at_next_stroke(played)
    return np.asarray(played)


def _layer(
    figure: Iterator[_Moment], strokes_hz: float, duration_sec: float, part: int, rng: np.random.Generator
) -> PerformedArray:
    level, swell = rng.normal(62, 20), rng.uniform(0, 20)
    phase, pace = rng.uniform(0, 2 * np.pi), 0.0
    held, spread_sec = np.exp(rng.normal(-0.2, 0.5)), rng.uniform(0, 0.03) * rng.integers(2)
    rows, second = [], float(rng.uniform(-0.5, 0.5))
    for moment in figure:
        if second > duration_sec:
            break
        pace = 0.9 * pace + rng.normal(0, 0.03)
        lasting_sec = moment.steps / strokes_hz * float(np.exp(pace))
        loudness = level + swell * np.sin(phase + 2 * second) + rng.normal(0, 7)
        for pitch in moment.pitches:
            if not LOWEST_PITCH <= pitch <= HIGHEST_PITCH:
                continue
            onset_sec = second + rng.normal(0, _JITTER_SEC) + rng.uniform(0, spread_sec + 1e-9)
            held_sec = max(held * lasting_sec, _SHORTEST_SEC)
            velocity = int(np.clip(loudness + rng.normal(0, 5), 16, 120))
            rows.append(("", pitch, onset_sec, held_sec, held_sec, velocity, part))
        second += lasting_sec
    return np.array(rows, dtype=PERFORMED_DTYPE)


def _press_pedal(played: PerformedArray, duration_sec: float, rng: np.random.Generator) -> None:
    """Let notes sound until the pedal is changed, in place; half of the passages have no pedal."""
    if rng.uniform() < 0.5 or not len(played):
        return
    changes = np.cumsum(rng.uniform(0.4, 3.0, size=int(duration_sec / 0.4) + 4))
    changed_sec = changes[np.searchsorted(changes, played["onset_sec"] + 0.08)]
    played["sounding_sec"] = np.maximum(played["duration_sec"], changed_sec - played["onset_sec"])


def _runs(ground: _Ground, rng: np.random.Generator) -> Iterator[_Moment]:
    place, direction = int(rng.integers(-7, 8)), 1
    doubling = [(0,), (0, 2), (0, len(ground.scale)), (0, 5)][int(rng.choice(4, p=[0.6, 0.13, 0.2, 0.07]))]
    while True:
        yield _Moment(tuple(ground.degree(place + step) for step in doubling))
        if abs(place) > 14 or rng.uniform() < 0.06:
            direction = -1 if place > 0 else 1
        place += direction


def _arpeggios(ground: _Ground, rng: np.random.Generator) -> Iterator[_Moment]:
    width = int(rng.integers(3, 10))
    order = list(range(width)) + (list(range(width - 2, 0, -1)) if rng.uniform() < 0.6 else [])
    if rng.uniform() < 0.3:
        rng.shuffle(order)
    while True:
        for number in order:
            yield _Moment((ground.chord_tone(number - width // 2),))
        if rng.uniform() < 0.3:
            chord = _CHORDS[int(rng.integers(len(_CHORDS)))]
            ground = _Ground(int(rng.integers(12)), ground.scale, chord, ground.centre)


def _chords(ground: _Ground, rng: np.random.Generator) -> Iterator[_Moment]:
    while True:
        n_notes, place = int(rng.integers(2, 6)), int(rng.integers(-3, 2))
        pitches = {ground.chord_tone(place + number) for number in range(n_notes)}
        for _ in range(int(rng.integers(1, 9))):
            yield _Moment(tuple(sorted(pitches)))
        chord = _CHORDS[int(rng.integers(len(_CHORDS)))]
        ground = _Ground(int(rng.integers(12)), ground.scale, chord, ground.centre)


def _tremolos(ground: _Ground, rng: np.random.Generator) -> Iterator[_Moment]:
    while True:
        place, width = int(rng.integers(-3, 2)), int(rng.integers(1, 4))
        low = tuple(ground.chord_tone(place + number) for number in range(int(rng.integers(1, 3))))
        high = tuple(ground.chord_tone(place + width + number) for number in range(int(rng.integers(1, 3))))
        for _ in range(int(rng.integers(4, 16))):
            yield _Moment(low)
            yield _Moment(high)


def _trills(ground: _Ground, rng: np.random.Generator) -> Iterator[_Moment]:
    while True:
        place = int(rng.integers(-7, 8))
        for _ in range(int(rng.integers(4, 24))):
            yield _Moment((ground.degree(place),))
            yield _Moment((ground.degree(place + 1),))
        yield _Moment((ground.degree(place),), float(rng.integers(1, 8)))


def _leaps(ground: _Ground, rng: np.random.Generator) -> Iterator[_Moment]:
    while True:
        place = int(rng.integers(-16, 17))
        doubling = (0, 12) if rng.uniform() < 0.4 else (0,)
        yield _Moment(tuple(ground.degree(place) + step for step in doubling))


def _melody(ground: _Ground, rng: np.random.Generator) -> Iterator[_Moment]:
    place = 0
    while True:
        steps = float(rng.choice([0.5, 1.0, 1.0, 2.0, 3.0]))
        yield _Moment((ground.degree(place),), steps)
        if rng.uniform() < 0.15:
            yield _Moment((), float(rng.choice([0.5, 1.0])))  # a rest
        place = int(np.clip(place + rng.choice([-4, -2, -1, -1, 0, 1, 1, 2, 4]), -9, 9))


_FIGURES: tuple[tuple[_Figure, float, float], ...] = (
    (_runs, 3.0, 16.0),
    (_arpeggios, 3.0, 16.0),
    (_chords, 0.7, 8.0),
    (_tremolos, 6.0, 16.0),
    (_trills, 8.0, 16.0),
    (_leaps, 1.5, 10.0),
    (_melody, 1.0, 5.0),
)
_VOICES = (_FIGURES[0], _FIGURES[1], *[_FIGURES[6]] * 3)
