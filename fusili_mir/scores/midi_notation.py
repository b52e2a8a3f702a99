"""Notes that were never notated, as in a MIDI file, written so that they can be engraved.

Onsets move to the nearest 32nd or triplet 16th, beat by beat. A staff is one voice of chords, each as long as it
sounds, but at most until the next begins. Wide parts get two staves, split at middle C. Only the picture is
rounded: score time stays that of the file.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
from partitura import score as ps

from fusili_mir.arrays import Float64
from fusili_mir.scores.part_times import quarters_of

__all__ = ["grid_error", "is_notated", "notate", "split_staves"]

_BEAT = 24  # divisions of a quarter
_GRIDS = ((6, 0.0), (3, 0.004), (8, 0.002), (4, 0.006))  # step in divisions, and what it costs in quarters
_TRIPLETS = (8, 4)
_MIDDLE_C = 60
_FINEST_BEAT = 96  # parts of a quarter: 128ths, triplets of 64ths, quintuplets of 32nds
_EXACT = 1e-6
_MOST_IN_TUPLET = 15  # partitura finds a ratio for any duration, such as 120:91
_ROUNDING = 0.51  # divisions
_WIDE = (55, 65)  # a part with notes on both sides needs two staves
_VALUES: dict[int, dict[str, Any]] = {
    96: {"type": "whole"},
    72: {"type": "half", "dots": 1},
    48: {"type": "half"},
    36: {"type": "quarter", "dots": 1},
    24: {"type": "quarter"},
    18: {"type": "eighth", "dots": 1},
    12: {"type": "eighth"},
    9: {"type": "16th", "dots": 1},
    6: {"type": "16th"},
    3: {"type": "32nd"},
}
_TRIPLET_VALUES: dict[int, dict[str, Any]] = {
    length: {**value, "actual_notes": 3, "normal_notes": 2}
    for length, value in {16: {"type": "quarter"}, 8: {"type": "eighth"}, 4: {"type": "16th"}}.items()
}


def is_notated(part: ps.Part) -> bool:
    """Return whether the notes of a part can be written as they are: with dots or in tuplets, and on a beat."""
    if next(part.iter_all(ps.Measure), None) is None:
        return False
    notes = list(part.iter_all(ps.Note))
    onsets = quarters_of(part)([note.start.t for note in notes]).tolist() if notes else []
    if any(abs(onset - Fraction(onset).limit_denominator(_FINEST_BEAT)) > _EXACT for onset in onsets):
        return False
    for note in notes:
        value = note.symbolic_duration or {}
        ratio = (value.get("actual_notes") or 1, value.get("normal_notes") or 1)
        simple = value.get("type") is not None and (ratio == (1, 1) or ratio[1] < ratio[0] <= _MOST_IN_TUPLET)
        if not simple or abs(note.duration_from_symbolic - note.duration) > _ROUNDING:
            return False
    return True


def split_staves(part: ps.Part) -> None:
    """Put a wide part that knows no staves on two, in place."""
    notes = part.notes
    if any(note.staff is not None for note in notes) or not _is_wide([note.midi_pitch for note in notes]):
        return
    for note in notes:
        note.staff = 1 if note.midi_pitch >= _MIDDLE_C else 2
    for clef in list(part.iter_all(ps.Clef)):
        part.remove(clef)


def notate(score: ps.Score) -> ps.Score:
    """Write the sounding notes of a score as chords and rests.

    Parameters
    ----------
    score : partitura.score.Score
        Score with measures, the same in all parts.

    Returns
    -------
    partitura.score.Score
        A score to engrave: each sounding note has one head, with its id.
    """
    return ps.Score([_notate(part) for part in score.parts])


def grid_error(score: ps.Score) -> float:
    """Return how far onsets are from the grid, in quarters: the median over all notes. Scores have hardly any."""
    distances = [
        np.abs(onsets - np.array([snapped for snapped, _ in _snap(onsets)]) / _BEAT)
        for part in score.parts
        if len(onsets := quarters_of(part)([note.start.t for note in part.notes_tied]))
    ]
    return float(np.median(np.concatenate(distances))) if distances else 0.0


def _is_wide(pitches: list[int]) -> bool:
    if not pitches:
        return False
    low, high = np.percentile(pitches, [5, 95])
    return bool(low < _WIDE[0] and high > _WIDE[1])


def _snap(onsets: Float64) -> list[tuple[int, bool]]:
    """Move onsets, in quarters, to a grid; return them in divisions, and whether their beat is in triplets."""
    snapped = [(0, False)] * len(onsets)
    beats = np.floor(onsets + 1e-6)
    for beat in np.unique(beats):
        rows = np.flatnonzero(beats == beat)
        within = (onsets[rows] - beat) * _BEAT
        costs = [np.abs(within - _rounded(within, step)).mean() / _BEAT + cost for step, cost in _GRIDS]
        step = _GRIDS[int(np.argmin(costs))][0]
        for row, place in zip(rows, _rounded(within, step), strict=True):
            snapped[row] = (int(beat) * _BEAT + int(place), step in _TRIPLETS and 0 < place < _BEAT)
    return snapped


def _rounded(within: Float64, step: int) -> Float64:
    return np.asarray(np.round(within / step) * step)


def _notate(part: ps.Part) -> ps.Part:
    written = ps.Part(part.id, part.part_name, quarter_duration=_BEAT)
    quarters = quarters_of(part)

    def place(point: ps.TimePoint) -> int:
        return round(float(quarters(point.t)) * _BEAT)

    for measure in part.iter_all(ps.Measure):
        written.add(ps.Measure(measure.number, measure.name), place(measure.start), place(measure.end))
    for meter in part.iter_all(ps.TimeSignature):
        written.add(ps.TimeSignature(meter.beats, meter.beat_type), place(meter.start))
    for key in part.iter_all(ps.KeySignature):
        written.add(ps.KeySignature(key.fifths, key.mode), place(key.start))
    notes = part.notes_tied
    wide = _is_wide([note.midi_pitch for note in notes])
    for staff in (1, 2) if wide else (1,):
        own = [note for note in notes if not wide or (note.midi_pitch < _MIDDLE_C) == (staff == 2)]
        spans = quarters([(note.start.t, note.end_tied.t) for note in own]) if own else np.empty((0, 2))
        _write_staff(written, staff, own, spans)
    return written


def _write_staff(written: ps.Part, staff: int, notes: list[ps.Note], spans: Float64) -> None:
    """Write the notes of one staff; `spans` are their onsets and ends in quarters [shape=(n, 2)]."""
    bass = bool(notes) and float(np.median([note.midi_pitch for note in notes])) < _MIDDLE_C
    clef = ps.Clef(staff, "F" if bass else "G", 4 if bass else 2, 0)
    measures = list(written.iter_all(ps.Measure))
    written.add(clef, measures[0].start.t)
    snapped = _snap(spans[:, 0])
    writer = _Writer(written, staff, {place // _BEAT for place, triplet in snapped if triplet})
    chords: dict[int, list[tuple[ps.Note, float]]] = {}
    for note, (onset, end), (place, _) in zip(notes, spans, snapped, strict=True):
        chords.setdefault(place, []).append((note, float(end - onset) * _BEAT))
    for measure in measures:
        start, end = measure.start.t, measure.end.t
        writer.write({place: chords[place] for place in sorted(chords) if start <= place < end}, start, end)


@dataclass
class _Writer:
    """Writes one staff of one measure."""

    part: ps.Part
    staff: int
    triplet_beats: set[int]

    def write(self, chords: dict[int, list[tuple[ps.Note, float]]], start: int, end: int) -> None:
        """Write the chords of a measure, by their places: notes, and how long they sound."""
        places = list(chords)
        self._rest(start, places[0] if places else end)
        for place, following in pairwise([*places, end]):
            sounding = max(length for _, length in chords[place])
            length = self._chord([note for note, _ in chords[place]], place, following, sounding)
            self._rest(place + length, following)
        self._bracket(start, end)

    def _chord(self, chord: list[ps.Note], place: int, following: int, sounding: float) -> int:
        lengths = list(self._lengths(place, following))
        length = next((each for each in reversed(lengths) if each >= sounding - 1), lengths[0])
        for note in chord:
            head = ps.Note(
                note.step,
                note.octave,
                note.alter,
                id=note.id,
                voice=self.staff,
                staff=self.staff,
                symbolic_duration=dict(self._value(place, length)),
            )
            self.part.add(head, place, place + length)
        return length

    def _rest(self, start: int, end: int) -> None:
        while start < end:
            length = next(self._lengths(start, end))
            rest = ps.Rest(
                voice=self.staff, staff=self.staff, symbolic_duration=dict(self._value(start, length))
            )
            self.part.add(rest, start, start + length)
            start += length

    def _lengths(self, place: int, following: int) -> Iterator[int]:
        """Yield the lengths that can be written at a place, longest first."""
        beat = place // _BEAT
        if beat in self.triplet_beats:
            stop = min(following, (beat + 1) * _BEAT)
            values = [_BEAT, *_TRIPLET_VALUES]
        else:
            stop = min([following, *(b * _BEAT for b in self.triplet_beats if b > beat)])
            values = list(_VALUES)
        found = [length for length in values if length <= stop - place]
        yield from found or [max(1, stop - place)]

    def _value(self, place: int, length: int) -> dict[str, Any]:
        if place // _BEAT in self.triplet_beats and length != _BEAT:
            return _TRIPLET_VALUES.get(length, _TRIPLET_VALUES[4])
        return _VALUES.get(length, _VALUES[3])

    def _bracket(self, start: int, end: int) -> None:
        """Join the notes and rests of each triplet beat."""
        for beat in sorted(self.triplet_beats):
            if not start <= beat * _BEAT < end:
                continue
            inside = [
                each
                for each in self.part.iter_all(
                    ps.GenericNote, beat * _BEAT, (beat + 1) * _BEAT, include_subclasses=True
                )
                if each.staff == self.staff and each.symbolic_duration.get("actual_notes")
            ]
            if inside:
                tuplet = ps.Tuplet(inside[0], inside[-1])
                self.part.add(tuplet, inside[0].start.t, inside[-1].end.t)
