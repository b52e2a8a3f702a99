"""Performing the notes of a score with random timing, dynamics, articulation and pedal.

The performed notes are the truth about what is synthesised. With all amounts at 0 they match the score exactly.

Rules
-----
- Jitter, chord spread and hands move a note by less than half the distance to the neighbouring onsets of its own
  voice, so the order of the notes within a voice never changes.
- Grace notes are played before the beat. Each lasts `grace_sec`, or less if together they would fill more than
  half of the time since the previous onset of the voice. The main note does not move.
- Random numbers are drawn whether or not an amount uses them, so changing one amount does not affect the others.
- A part on several staves is played by hands: those of the lower staves come early or late together, a little
  alike from one onset to the next. The highest note of an onset may be louder than the others of its part, and
  come before the others of the upper hand. Grace notes are none of these.
- A half pedal damps the strings in part: a note is heard for some of the time until the pedal comes up.

How large all this is when people play: ``python benchmarks/human_laws.py``.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from fusili_mir.arrays import Bool, Float64, Int32
from fusili_mir.errors import InputError
from fusili_training.sound.notes import (
    DEFAULT_VELOCITY,
    PERFORMED_DTYPE,
    PerformedArray,
    ScoreNoteArray,
    end_at_next_stroke,
)
from fusili_training.sound.tempo import WrittenTempo

__all__ = ["Expression", "draw_expression", "perform"]


_GRID_QUARTER = 0.25  # the tempo curve is constant within one step
_ROOM = 0.45  # share of the distance to the neighbouring onset by which a note may move
_JITTER_LIMIT = 2.0  # jitter is clipped at this many standard deviations
_SHORTEST_SEC = 0.03
_PEDAL_DELAY_SEC = 0.08  # the pedal goes down after the keys
_VELOCITY_RANGE = (16, 127)  # softer notes would be inaudible
_HAND_MEMORY = 0.2  # correlation of how far hands are apart, from one onset to the next
_HALF_PEDAL_SHARE = (0.1, 0.6)  # of the time until the pedal comes up, for which a note is heard
_AMOUNTS = ("rubato", "jitter_sec", "chord_spread_sec", "marks", "dynamics", "articulation", "pedal")
_AMOUNTS_OF_HANDS = ("lead_sec", "hands_sec", "voicing", "half_pedal")


@dataclass(frozen=True)
class Expression:
    """How far a performance departs from the score; with all amounts at 0 it is mechanical."""

    tempo_factor: float = 1.0  # divides all times: 2 plays twice as fast
    rubato: float = 0.0  # standard deviation of the log tempo
    rubato_quarter: float = 4.0  # distance between the turning points of the tempo curve
    jitter_sec: float = 0.0  # standard deviation of each onset, clipped at two standard deviations
    chord_spread_sec: float = 0.0  # largest spread of the onsets of a chord within one part
    marks: float = 0.0  # 0: ignore dynamic and articulation marks, 1: follow them
    dynamics: float = 0.0  # standard deviation of the velocity, in equal parts slow and note by note
    articulation: float = 0.0  # standard deviation of the log duration
    pedal: float = 0.0  # probability that a pedal span is pedalled
    pedal_quarter: float = 2.0  # length of a pedal span
    grace_sec: float = 0.08  # length of a grace note at tempo factor 1
    lead_sec: float = 0.0  # how far the highest note of the upper hand comes before its others, on average
    hands_sec: float = 0.0  # standard deviation of how far the hands are apart
    voicing: float = 0.0  # velocity by which the highest note of an onset is louder
    half_pedal: float = 0.0  # probability that a pedalled span has a half pedal

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if not (np.isfinite(value) and value >= 0):
                raise InputError(f"{field.name} is {value}; expected a finite number of at least 0")
        for name in ("tempo_factor", "rubato_quarter", "pedal_quarter", "grace_sec"):
            if getattr(self, name) == 0:
                raise InputError(f"{name} is 0; expected a number above 0")
        for name in ("pedal", "half_pedal", "marks"):
            if getattr(self, name) > 1:
                raise InputError(f"{name} is {getattr(self, name)}; expected a number from 0 to 1")


def draw_expression(limits: Expression, rng: np.random.Generator) -> Expression:
    """Draw an expression within limits.

    Parameters
    ----------
    limits : Expression
        The tempo factor is drawn log-uniformly between 1 / limit and limit, each amount uniformly between 0 and
        its limit. `rubato_quarter`, `pedal_quarter` and `grace_sec` are kept.
    rng : np.random.Generator

    Returns
    -------
    Expression
    """
    reach = np.log(limits.tempo_factor)
    hands = rng.spawn(1)[0]
    drawn = {
        name: float(stream.uniform(0.0, 1.0)) * getattr(limits, name)
        for stream, names in ((rng, _AMOUNTS), (hands, _AMOUNTS_OF_HANDS))
        for name in names
    }
    return Expression(
        tempo_factor=float(np.exp(reach * rng.uniform(-1.0, 1.0))),
        rubato_quarter=limits.rubato_quarter,
        pedal_quarter=limits.pedal_quarter,
        grace_sec=limits.grace_sec,
        **drawn,
    )


def perform(
    notes: ScoreNoteArray, tempo: WrittenTempo, style: Expression, rng: np.random.Generator
) -> PerformedArray:
    """Perform the notes of a score.

    Parameters
    ----------
    notes : np.ndarray [shape=(n,), dtype=SCORE_NOTE_DTYPE]
    tempo : WrittenTempo
    style : Expression
    rng : np.random.Generator

    Returns
    -------
    np.ndarray [shape=(n,), dtype=PERFORMED_DTYPE]
        One row per score note, in the same order; second 0 is where the written tempo starts.
    """
    played = np.zeros(len(notes), dtype=PERFORMED_DTYPE)
    if not len(notes):
        return played
    for name in ("id", "pitch", "part"):
        played[name] = notes[name]
    hands = rng.spawn(1)[0]
    clock = _Clock(notes, tempo, style, rng)
    begin = clock.seconds(notes["onset_quarter"])
    end = clock.seconds(notes["onset_quarter"] + notes["duration_quarter"])
    _place_grace_notes(notes, begin, end, style)

    sway = rng.normal(size=len(notes)).clip(-_JITTER_LIMIT, _JITTER_LIMIT) * style.jitter_sec
    spread = rng.uniform(size=len(notes)) * style.chord_spread_sec
    is_upper = _of_upper_staff(notes)
    leading = is_upper & _highest(notes, "part", "staff")
    moved = (
        sway + spread + _hand_delays(notes, is_upper, style, hands) - leading * _leads(notes, style, hands)
    )
    before, after = _voice_gaps(notes, begin)
    onset = begin + np.clip(moved, -_ROOM * before, _ROOM * after)

    score_sec = end - onset
    held = notes["held"].astype(np.float64) ** style.marks
    stretch = np.exp(rng.normal(size=len(notes)) * style.articulation)
    floor = np.minimum(_SHORTEST_SEC, end - begin)
    played["onset_sec"] = onset
    played["duration_sec"] = np.maximum(score_sec * held * stretch, floor)
    played["velocity"] = _velocities(notes, clock, style, rng)
    played["sounding_sec"] = _pedalled(played, clock, style, rng, hands)
    end_at_next_stroke(played)
    return played


class _Clock:
    """Quarters to seconds: the written tempo, bent by the tempo curve and divided by the global factor."""

    def __init__(
        self, notes: ScoreNoteArray, tempo: WrittenTempo, style: Expression, rng: np.random.Generator
    ):
        first = float(notes["onset_quarter"].min())
        last = float((notes["onset_quarter"] + notes["duration_quarter"]).max())
        self.first, self.last = first, last
        self._tempo, self._factor = tempo, style.tempo_factor
        turns = np.arange(first, last + 2 * style.rubato_quarter, style.rubato_quarter)
        height = rng.normal(size=len(turns)) * style.rubato
        self._bent = style.rubato > 0
        if self._bent:
            # The last pedal span ends after the last note.
            beyond = last + 2 * style.pedal_quarter + _GRID_QUARTER
            inner = [quarter for quarter in tempo.quarters if first < quarter < beyond]
            self._grid = np.union1d(np.arange(first, beyond, _GRID_QUARTER), inner)
            middle = (self._grid[:-1] + self._grid[1:]) / 2
            pace = np.exp(-np.interp(middle, turns, height))
            straight = tempo.seconds(self._grid)
            bent = np.concatenate([[0.0], np.cumsum(np.diff(straight) * pace)])
            self._seconds = straight[0] + bent

    def seconds(self, quarter: Float64) -> Float64:
        if self._bent:
            return np.asarray(np.interp(quarter, self._grid, self._seconds)) / self._factor
        return self._tempo.seconds(quarter) / self._factor


def _place_grace_notes(notes: ScoreNoteArray, begin: Float64, end: Float64, style: Expression) -> None:
    """Move grace notes before their beat, in place, in `begin` and `end` (n,)."""
    beat_sec = begin.copy()
    for row in np.flatnonzero(notes["grace"] > 0):
        quarter = notes["onset_quarter"]
        voice = (notes["part"] == notes["part"][row]) & (notes["voice"] == notes["voice"][row])
        earlier = voice & (quarter < quarter[row])
        together = voice & (notes["grace"] > 0) & (quarter == quarter[row])
        room = beat_sec[row] - beat_sec[earlier].max() if earlier.any() else np.inf
        each = min(style.grace_sec / style.tempo_factor, 0.5 * room / notes["grace"][together].max())
        begin[row] = beat_sec[row] - notes["grace"][row] * each
        end[row] = begin[row] + each


def _voice_gaps(notes: ScoreNoteArray, begin: Float64) -> tuple[Float64, Float64]:
    """Return the seconds from each note to the previous and to the next onset of its voice, (n,) each."""
    before = np.full(len(notes), np.inf)
    after = np.full(len(notes), np.inf)
    voices = np.unique(notes[["part", "voice"]], return_inverse=True)[1].reshape(-1)
    for voice in range(voices.max() + 1):
        rows = np.flatnonzero(voices == voice)
        onsets, place = np.unique(begin[rows], return_inverse=True)
        gaps = np.concatenate([[np.inf], np.diff(onsets), [np.inf]])
        before[rows] = gaps[place.reshape(-1)]
        after[rows] = gaps[place.reshape(-1) + 1]
    return before, after


def _highest(notes: ScoreNoteArray, *names: str) -> Bool:
    """Return which notes are the highest of several that begin together and have equal fields, (n,)."""
    names = ("grace", *names, "onset_quarter")
    order = np.lexsort((-notes["pitch"], *(notes[name] for name in reversed(names))))
    together = [notes[name][order] for name in names]
    same = np.logical_and.reduce([row[1:] == row[:-1] for row in together])
    is_first = np.concatenate([[True], ~same])
    has_next = np.concatenate([same, [False]])
    highest = np.zeros(len(notes), dtype=bool)
    highest[order] = is_first & has_next
    return np.asarray(highest & (notes["grace"] == 0))


def _of_upper_staff(notes: ScoreNoteArray) -> Bool:
    """Return which notes are on the upper staff of their part, (n,)."""
    upper = {part: notes["staff"][notes["part"] == part].min() for part in np.unique(notes["part"])}
    return np.asarray(notes["staff"] == np.array([upper[part] for part in notes["part"]]))


def _leads(notes: ScoreNoteArray, style: Expression, rng: np.random.Generator) -> Float64:
    """Return how far each note would come before the others of its hand, in seconds, (n,)."""
    return np.asarray(rng.uniform(0.0, 2.0, size=len(notes)) * style.lead_sec)


def _hand_delays(
    notes: ScoreNoteArray, is_upper: Bool, style: Expression, rng: np.random.Generator
) -> Float64:
    """Return how far the hand of each note is behind that of the upper staff of its part, in seconds, (n,)."""
    onsets, place = np.unique(notes["onset_quarter"], return_inverse=True)
    apart = rng.normal(size=len(onsets))
    for number in range(1, len(onsets)):
        apart[number] = _HAND_MEMORY * apart[number - 1] + np.sqrt(1 - _HAND_MEMORY**2) * apart[number]
    apart = apart.clip(-_JITTER_LIMIT, _JITTER_LIMIT) * style.hands_sec
    return np.where(is_upper, 0.0, apart[place.reshape(-1)])


def _velocities(notes: ScoreNoteArray, clock: _Clock, style: Expression, rng: np.random.Generator) -> Int32:
    turns = np.arange(clock.first, clock.last + 2 * style.rubato_quarter, style.rubato_quarter)
    slow = np.interp(notes["onset_quarter"], turns, rng.normal(size=len(turns)))
    quick = rng.normal(size=len(notes))
    marked = DEFAULT_VELOCITY + style.marks * (notes["velocity"] - DEFAULT_VELOCITY)
    voiced = marked + style.voicing * _highest(notes, "part")
    velocity = np.rint(voiced + style.dynamics * (slow + quick) * np.sqrt(0.5))
    return np.asarray(np.clip(velocity, *_VELOCITY_RANGE), dtype=np.int32)


def _pedalled(
    played: PerformedArray,
    clock: _Clock,
    style: Expression,
    rng: np.random.Generator,
    hands: np.random.Generator,
) -> Float64:
    """Return how long the keys and the pedal let each note sound, in seconds, (n,)."""
    release = played["onset_sec"] + played["duration_sec"]
    # One span after the end of the score, in which the pedal stays up.
    spans = np.arange(clock.first, clock.last + 2 * style.pedal_quarter, style.pedal_quarter)
    down = rng.uniform(size=len(spans) - 1) < style.pedal
    borders_sec = clock.seconds(spans)
    span = np.clip(np.searchsorted(borders_sec, release, side="right") - 1, 0, len(down) - 1)
    caught = down[span] & (release > borders_sec[span] + _PEDAL_DELAY_SEC)
    is_half = hands.uniform(size=len(down)) < style.half_pedal
    damped = np.where(is_half, 1.0 - hands.uniform(*_HALF_PEDAL_SHARE, size=len(down)), 0.0)[span]
    pedal_up = np.maximum(release, borders_sec[span + 1])
    heard_until = np.where(caught, pedal_up - damped * (pedal_up - release), release)
    return np.asarray(heard_until - played["onset_sec"])
