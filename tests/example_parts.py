"""Scores put together at random from partitura's objects, for hypothesis."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from hypothesis import strategies as st
from partitura import score as ps

__all__ = ["DIVISIONS", "random_scores"]

DIVISIONS = 12
"""Divisions of a quarter: eighths, 16ths and triplets are whole numbers."""

METERS = ((2, 4), (3, 4), (3, 8), (4, 4), (6, 8))
VALUES: dict[int, dict[str, Any]] = {
    48: {"type": "whole"},
    36: {"type": "half", "dots": 1},
    24: {"type": "half"},
    18: {"type": "quarter", "dots": 1},
    12: {"type": "quarter"},
    6: {"type": "eighth"},
    3: {"type": "16th"},
}
TRIPLET: dict[str, Any] = {"type": "eighth", "actual_notes": 3, "normal_notes": 2}
RANGES = {1: (4, 5), 2: (2, 3)}  # octaves of the upper and the lower staff


@st.composite
def random_scores(draw: st.DrawFn, with_ids: bool | None = None) -> ps.Score:
    """Draw a score of one to three parts with the same measures: chords, rests, gaps, voices, ties, grace notes,
    triplets, changes of meter, a pick-up, a repeat."""
    n_measures = draw(st.integers(1, 3))
    meters = [draw(st.sampled_from(METERS)) for _ in range(n_measures)]
    if not draw(st.booleans()):
        meters = meters[:1] * n_measures
    pick_up = draw(st.sampled_from((0, 0, 6, 12)))
    edges = [0, pick_up] if pick_up else [0]
    for beats, unit in meters:
        edges.append(edges[-1] + DIVISIONS * 4 * beats // unit)
    repeat = draw(st.booleans()) and (1 if pick_up else 0)
    named = draw(st.booleans()) if with_ids is None else with_ids
    parts = []
    for number in range(draw(st.integers(1, 3))):
        part = ps.Part(f"P{number + 1}", f"part {number + 1}", quarter_duration=DIVISIONS)
        for index, meter in enumerate(meters):
            if index == 0 or meter != meters[index - 1]:
                part.add(ps.TimeSignature(*meter), 0 if index == 0 else edges[index + bool(pick_up)])
        for index, (start, end) in enumerate(pairwise(edges)):
            name = index + (0 if pick_up else 1)
            part.add(ps.Measure(index + 1, str(name)), start, end)
        n_staves = draw(st.integers(1, 2))
        if draw(st.booleans()):
            for staff in range(1, n_staves + 1):
                part.add(ps.Clef(staff, "GF"[staff - 1], (2, 4)[staff - 1], 0), 0)
        for staff in range(1, n_staves + 1):
            for voice in range(draw(st.integers(1, 2))):
                _fill(draw, part, edges, staff, 2 * (staff - 1) + voice + 1)
        if repeat is not False:
            part.add(ps.Repeat(), edges[repeat], edges[-1])
        parts.append(part)
    if not any(part.notes for part in parts):
        parts[0].add(ps.Note("C", 4, voice=1, staff=1, symbolic_duration=VALUES[6]), 0, 6)
    if named:
        ps.assign_note_ids(parts)
    return ps.Score(parts)


def _fill(draw: st.DrawFn, part: ps.Part, edges: list[int], staff: int, voice: int) -> None:
    last: list[ps.Note] = []
    for start, end in pairwise(edges):
        time = start
        while time < end:
            left = end - time
            kind = draw(st.sampled_from(("note", "note", "note", "chord", "rest", "gap", "triplet", "grace")))
            if (
                kind == "gap" and voice == 1
            ):  # partitura takes the content of a part for the length of a measure
                kind = "rest"
            if kind == "triplet" and left >= DIVISIONS and (time - start) % DIVISIONS == 0:
                inside = [_note(draw, part, staff, voice, time + 4 * i, 4, TRIPLET) for i in range(3)]
                part.add(ps.Tuplet(inside[0], inside[-1]), time, time + 12)
                time, last = time + DIVISIONS, []
                continue
            length = draw(st.sampled_from([value for value in VALUES if value <= left] or [left]))
            if length not in VALUES:
                break
            if kind == "rest":
                rest = ps.Rest(voice=voice, staff=staff, symbolic_duration=dict(VALUES[length]))
                part.add(rest, time, time + length)
                last = []
            elif kind == "gap":
                last = []
            else:
                if kind == "grace":
                    grace = ps.GraceNote("acciaccatura", *_pitch(draw, staff), voice=voice, staff=staff)
                    grace.symbolic_duration = {"type": "eighth"}
                    part.add(grace, time, time)
                chord = [_note(draw, part, staff, voice, time, length, VALUES[length])]
                if kind == "grace":
                    grace.grace_next = chord[0]
                if kind == "chord":
                    other = _note(draw, part, staff, voice, time, length, VALUES[length])
                    if other.midi_pitch == chord[0].midi_pitch:
                        part.remove(other)
                    else:
                        chord.append(other)
                if bool(last) and draw(st.booleans()):
                    first, second = last[0], chord[0]
                    taken = {note.midi_pitch for note in chord[1:]}
                    if first.midi_pitch not in taken:
                        second.step, second.octave, second.alter = first.step, first.octave, first.alter
                        first.tie_next, second.tie_prev = second, first
                last = chord
            time += length


def _pitch(draw: st.DrawFn, staff: int) -> tuple[str, int, int | None]:
    octave = draw(st.integers(*RANGES[staff]))
    return draw(st.sampled_from("CDEFGAB")), octave, draw(st.sampled_from((None, 1, -1)))


def _note(
    draw: st.DrawFn, part: ps.Part, staff: int, voice: int, time: int, length: int, value: dict[str, Any]
) -> ps.Note:
    step, octave, alter = _pitch(draw, staff)
    note = ps.Note(step, octave, alter, voice=voice, staff=staff, symbolic_duration=dict(value))
    part.add(note, time, time + length)
    return note
