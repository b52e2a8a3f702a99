"""What the names of note recordings say: the pitch, and the layer of velocity.

Libraries of free samples name their files in many ways: ``A0.wav``, ``D#2v8.ogg``, ``F#1vH.flac``,
``MF C3.flac``, ``PIANO LEVEL1 CLOSE 66.flac``, ``susvib_G1_v1_RR2.wav``. A name is split into words; one of them
is a note, or a MIDI number, and one may be a layer.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from fusili_training.pitches import HIGHEST_PITCH, LOWEST_PITCH, STEP_SEMITONES
from fusili_training.sound.notes import DEFAULT_VELOCITY, DYNAMIC_LEVELS

__all__ = ["SampleName", "parse_sample_name", "sample_layers"]

_SUFFIXES = {".wav", ".flac", ".ogg", ".mp3", ".aif", ".aiff"}
_WORDS = re.compile(r"[ _.]+")
_NOTE = re.compile(r"([A-Ga-g])([#sb]?)(-?\d)(?:[vV](\d+|[LMH]))?")
_LAYER = re.compile(r"(?:v|vl|vel|level|dyn|layer)(\d+)", re.IGNORECASE)
_LETTERS = {"L": 40, "M": 72, "H": 104}
_HIGHEST_VELOCITY, _FINEST = 127, 16  # libraries with more than a few layers have 16


@dataclass(frozen=True)
class SampleName:
    """A MIDI pitch, and a velocity or the number of a layer, softest first; None if the name does not say."""

    pitch: int
    velocity: int | None = None
    layer: int | None = None


def parse_sample_name(stem: str) -> SampleName | None:
    """Read the name of a file without its suffix; None if it names no note.

    >>> parse_sample_name("D#2v8")
    SampleName(pitch=39, velocity=None, layer=8)
    >>> parse_sample_name("MF C3")
    SampleName(pitch=48, velocity=70, layer=None)
    >>> parse_sample_name("PIANO LEVEL1 CLOSE 66")
    SampleName(pitch=66, velocity=None, layer=1)
    """
    words = [word for word in _WORDS.split(stem) if word]
    notes = [named for named in map(_NOTE.fullmatch, words) if named]
    numbers = [int(word) for word in words if word.isdecimal() and LOWEST_PITCH <= int(word) <= HIGHEST_PITCH]
    mark = None
    if notes:
        step, sign, octave, mark = notes[-1].groups()
        raised = {"": 0, "#": 1, "s": 1, "b": -1}[sign]
        pitch = 12 * (int(octave) + 1) + STEP_SEMITONES[step.upper()] + raised
    elif numbers:
        pitch = numbers[-1]
    else:
        return None
    layers = [int(named[1]) for named in map(_LAYER.fullmatch, words) if named]
    dynamics = [DYNAMIC_LEVELS[word.lower()] for word in words if word.lower() in DYNAMIC_LEVELS]
    if mark is not None and mark.isdecimal():
        layers.append(int(mark))
    elif mark is not None:
        dynamics.append(_LETTERS[mark])
    return SampleName(pitch, dynamics[0] if dynamics else None, layers[0] if layers else None)


def sample_layers(files: Iterable[Path]) -> dict[int, dict[int, Path]]:
    """Sort note recordings by velocity and pitch; of several takes of a note, the first one counts."""
    named = [
        (path, name)
        for path in sorted(files)
        if path.suffix.lower() in _SUFFIXES and (name := parse_sample_name(path.stem)) is not None
    ]
    numbers = {name.layer for _, name in named if name.layer is not None}
    lift = 1 if 0 in numbers else 0  # some count from 0
    most = max(numbers, default=0) + lift
    layers: dict[int, dict[int, Path]] = {}
    for path, name in named:
        velocity = name.velocity if name.velocity is not None else DEFAULT_VELOCITY
        if name.layer is not None:
            velocity = _velocity(name.layer + lift, most)
        layers.setdefault(velocity, {}).setdefault(name.pitch, path)
    return _without_sparse(layers)


def _without_sparse(layers: dict[int, dict[int, Path]]) -> dict[int, dict[int, Path]]:
    """Give the recordings of layers that have few of them to the nearest layer that has more."""
    fullest = max(map(len, layers.values()), default=0)
    full = {velocity: dict(files) for velocity, files in layers.items() if 2 * len(files) >= fullest}
    for velocity in layers.keys() - full.keys():
        nearest = min(full, key=lambda other: abs(other - velocity))
        full[nearest] = layers[velocity] | full[nearest]
    return full


def _velocity(layer: int, n_layers: int) -> int:
    """Return the velocity of a layer out of a few, or out of 16."""
    share = layer / max(_FINEST, n_layers) if n_layers > _FINEST // 2 else (layer - 0.5) / n_layers
    return min(round((_HIGHEST_VELOCITY + 1) * share), _HIGHEST_VELOCITY)
