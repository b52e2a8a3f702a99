"""Music made by rule, for ears rather than eyes: runs, arpeggios, tremolos, trills, repeated chords, wide leaps.

Such passages are rare in songs and common in piano music, up to sixteen notes a second. A texture has some
layers in different registers, each with a figure, a level and an articulation of its own; a pedal may hold what
is struck.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from fusili_training.figures import CHORDS, FIGURES, SCALES, VOICES, Ground, Moment
from fusili_training.pitches import HIGHEST_PITCH, LOWEST_PITCH
from fusili_training.sound.notes import PERFORMED_DTYPE, PerformedArray, end_at_next_stroke

__all__ = ["draw_texture"]

_JITTER_SEC = 0.008
_SHORTEST_SEC = 0.04


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
    tonic, scale = int(rng.integers(12)), SCALES[int(rng.integers(len(SCALES)))]
    figures = VOICES if monophonic else FIGURES
    layers = []
    for part, centre in enumerate(centres):
        ground = Ground(tonic, scale, CHORDS[int(rng.integers(len(CHORDS)))], int(centre))
        figure, slowest_hz, quickest_hz = figures[int(rng.integers(len(figures)))]
        strokes_hz = float(np.exp(rng.uniform(np.log(slowest_hz), np.log(min(quickest_hz, fastest_hz)))))
        layers.append(_layer(figure(ground, rng), strokes_hz, duration_sec, part, rng))
    played = np.concatenate(layers)
    if not monophonic:
        _press_pedal(played, duration_sec, rng)
    end_at_next_stroke(played)
    return np.asarray(played)


def _layer(
    figure: Iterator[Moment], strokes_hz: float, duration_sec: float, part: int, rng: np.random.Generator
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
