"""Pieces that tempt a search for the key: atonal, whole-tone, a melody over a drone or alone, a single tone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeAlias

import numpy as np

from fusili_training.rendering.corpus import CorpusPiece

__all__ = ["ODD_KINDS", "write_odd_piece"]

_Pitches: TypeAlias = Sequence[int]  # MIDI numbers
_MEASURES = 48
_STEPS = "CCDDEFFGGAAB"
_ALTERED = (1, 3, 6, 8, 10)
_DORIAN = (62, 64, 65, 67, 69, 71, 72, 74)
_WHOLE_TONES = (60, 62, 64, 66, 68, 70, 72, 74)
_TONE = 69


def _atonal(rng: np.random.Generator) -> list[tuple[_Pitches, _Pitches]]:
    """Draw all twelve pitches again and again, two at a time above and one below."""
    upper = np.concatenate([60 + rng.permutation(24) for _ in range(_MEASURES // 3 + 1)])
    lower = np.concatenate([41 + rng.permutation(18) for _ in range(_MEASURES // 4 + 1)])
    return [
        (upper[4 * n : 4 * n + 4].tolist(), np.resize(lower[2 * n :], 4).tolist()) for n in range(_MEASURES)
    ]


def _drone(rng: np.random.Generator) -> list[tuple[_Pitches, _Pitches]]:
    melody = _walk(rng, _DORIAN)
    return [(melody[4 * n : 4 * n + 4], (50, 57, 50, 57)) for n in range(_MEASURES)]


def _melody(rng: np.random.Generator) -> list[tuple[_Pitches, _Pitches]]:
    melody = _walk(rng, _DORIAN)
    return [(melody[4 * n : 4 * n + 4], ()) for n in range(_MEASURES)]


def _whole_tones(rng: np.random.Generator) -> list[tuple[_Pitches, _Pitches]]:
    upper, lower = _walk(rng, _WHOLE_TONES), _walk(rng, _WHOLE_TONES)
    return [
        (upper[4 * n : 4 * n + 4], [pitch - 12 for pitch in lower[4 * n : 4 * n + 4]])
        for n in range(_MEASURES)
    ]


def _single_tone(rng: np.random.Generator) -> list[tuple[_Pitches, _Pitches]]:
    """Strike the same tone again and again, alone or with its octave, as a drum would."""
    return [((_TONE,) * 4, rng.choice((_TONE, _TONE - 12), 4).tolist()) for _ in range(_MEASURES)]


def _walk(rng: np.random.Generator, scale: _Pitches) -> list[int]:
    place, pitches = 0, []
    for step in rng.choice([-2, -1, -1, 1, 1, 2, 3], 4 * _MEASURES):
        place = int(np.clip(place + step, 0, len(scale) - 1))
        pitches.append(scale[place])
    return pitches


ODD_KINDS: dict[str, Callable[[np.random.Generator], list[tuple[_Pitches, _Pitches]]]] = {
    "atonal": _atonal,
    "drone": _drone,
    "unaccompanied": _melody,
    "whole-tone": _whole_tones,
    "single tone": _single_tone,
}


def write_odd_piece(kind: str, seed: int, folder: Path) -> CorpusPiece:
    """Write a piece of 48 measures as MusicXML.

    Parameters
    ----------
    kind : str
        One of `ODD_KINDS`.
    seed : int
    folder : Path

    Returns
    -------
    CorpusPiece
    """
    measures = ODD_KINDS[kind](np.random.default_rng(seed))
    staves = 1 + any(lower for _, lower in measures)
    written = "".join(_measure(number, *both, staves) for number, both in enumerate(measures, start=1))
    file = folder / f"{kind.replace(' ', '-')}{seed}.musicxml"
    file.write_text(
        '<score-partwise version="4.0"><part-list><score-part id="P1"><part-name>P</part-name></score-part>'
        f'</part-list><part id="P1">{written}</part></score-partwise>',
        encoding="utf-8",
    )
    return CorpusPiece(file.stem, file, "CC0-1.0", "valid")


def _measure(number: int, upper: _Pitches, lower: _Pitches, staves: int) -> str:
    clefs = '<clef number="1"><sign>G</sign><line>2</line></clef>'
    clefs += '<clef number="2"><sign>F</sign><line>4</line></clef>' if staves == 2 else ""
    attributes = (
        "<attributes><divisions>1</divisions><key><fifths>0</fifths></key><time><beats>4</beats>"
        f"<beat-type>4</beat-type></time><staves>{staves}</staves>{clefs}</attributes>"
    )
    notes = "".join(_note(pitch, staff=1) for pitch in upper)
    if lower:
        notes += "<backup><duration>4</duration></backup>" + "".join(_note(pitch, staff=2) for pitch in lower)
    return f'<measure number="{number}">{attributes if number == 1 else ""}{notes}</measure>'


def _note(pitch: int, staff: int) -> str:
    alter = "<alter>1</alter>" if pitch % 12 in _ALTERED else ""
    return (
        f"<note><pitch><step>{_STEPS[pitch % 12]}</step>{alter}<octave>{pitch // 12 - 1}</octave></pitch>"
        f"<duration>1</duration><voice>{staff}</voice><type>quarter</type><staff>{staff}</staff></note>"
    )
