"""The performance as a MIDI file: the score's own bars and beats, at the seconds of the recording.

Ticks count quarter notes of the score as it was played; tempo changes put them on the seconds of the recording. A
sequencer that opens the file under the recording therefore shows the bars of the score. Bars of rest lead in to
the first note, since a recording hardly ever starts with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path

import mido
import numpy as np

from fusili_mir.alignment.results import Alignment
from fusili_mir.arrays import Float64, Int64
from fusili_mir.errors import InputError
from fusili_mir.output.midi_programs import midi_program
from fusili_mir.output.score_time import ScoreTime, score_time
from fusili_mir.output.sounding_pitch import sounding_pitch

__all__ = ["performance_midi", "save_performance_midi"]

_TICKS = 3840  # per quarter note: a quarter of a millisecond at 60 quarters per minute
_VELOCITY = 64  # loudness is not measured
_MAX_TEMPO_US = 2**24 - 1  # per quarter note, the most that a MIDI file can say
_CHANNELS = [channel for channel in range(16) if channel != 9]  # 9 is percussion
_DENOMINATORS = (4, 8, 16, 32, 64)


def save_performance_midi(alignment: Alignment, filename: str | Path) -> None:
    """Write the notes that were heard as a MIDI file; see `performance_midi`."""
    performance_midi(alignment).save(str(filename))


def performance_midi(alignment: Alignment) -> mido.MidiFile:
    """Make a MIDI file of the notes that were heard.

    Parameters
    ----------
    alignment : Alignment
        An alignment with a symbolic score.

    Returns
    -------
    mido.MidiFile
        First a track with tempo changes, time signatures and a marker for each measure, then a track for each
        part, with a channel of its own and a General MIDI program by its name. Where two notes of a part sound
        on one key at the same time, the second one is in a further track. After 15 channels, tracks go on at the
        next port.
    """
    if not np.isfinite(alignment.notes["onset_sec"]).any():
        raise InputError("no note was heard; there is nothing to write as MIDI")
    time = score_time(alignment)
    clock = _Clock.of(time, _lead_in(time))
    voices = _voices(alignment, time, clock)
    names = [voice.name for voice in voices]
    midi = mido.MidiFile(type=1, ticks_per_beat=_TICKS, charset=_charset(names))
    midi.tracks.append(_conductor(alignment, time, clock))
    for number, voice in enumerate(voices):
        port, channel = divmod(number, len(_CHANNELS))
        midi.tracks.append(_track(voice, port if len(voices) > len(_CHANNELS) else None, _CHANNELS[channel]))
    return midi


@dataclass(frozen=True)
class _LeadIn:
    """What comes before the first note: full bars of rest, then the measure in which it begins."""

    first_measure: int  # row of `Alignment.measures`
    n_bars: int
    bar_quarters: Fraction


@dataclass(frozen=True)
class _Clock:
    """Quarters of the score <-> ticks <-> seconds of the recording.

    Attributes
    ----------
    zero_quarter : float
        Quarter of the score at tick 0.
    ticks : np.ndarray of int [shape=(n,)]
        Ticks of the tempo changes. Strictly increasing, from 0.
    tempo_us : np.ndarray of int [shape=(n,)]
        Microseconds per quarter note from each tempo change on.
    seconds : np.ndarray [shape=(n,)]
        Seconds of the tempo changes, as a MIDI reader computes them.
    """

    zero_quarter: float
    ticks: Int64
    tempo_us: Int64
    seconds: Float64

    @classmethod
    def of(cls, time: ScoreTime, lead_in: _LeadIn) -> _Clock:
        first_quarter = float(time.measure_start_quarter[lead_in.first_measure])
        zero_quarter = first_quarter - lead_in.n_bars * float(lead_in.bar_quarters)
        pairs = np.round((time.tempo.beats - zero_quarter) * _TICKS).astype(np.int64)
        goal_ticks, kept = np.unique(np.maximum(pairs, 0), return_index=True)
        goal_sec = time.tempo.seconds[kept]
        ticks, tempo_us, seconds = [], [], []
        tick, second = 0, 0.0
        for goal_tick, goal in zip(goal_ticks.tolist(), goal_sec.tolist(), strict=True):
            if goal_tick == tick:
                continue
            # From the second that has really been reached, so that rounding does not add up.
            tempo = round((goal - second) * 1e6 * _TICKS / (goal_tick - tick))
            ticks.append(tick)
            tempo_us.append(min(max(tempo, 1), _MAX_TEMPO_US))
            seconds.append(second)
            second += (goal_tick - tick) * tempo_us[-1] / (_TICKS * 1e6)
            tick = goal_tick
        ticks.append(tick)
        tempo_us.append(round(min(max(time.tempo.sec_per_beat * 1e6, 1), _MAX_TEMPO_US)))
        seconds.append(second)
        return cls(zero_quarter, np.array(ticks), np.array(tempo_us), np.array(seconds))

    def ticks_of_seconds(self, second: Float64) -> Int64:
        """Return the ticks nearest to seconds."""
        row = np.maximum(np.searchsorted(self.seconds, second, side="right") - 1, 0)
        passed = (second - self.seconds[row]) * 1e6 / self.tempo_us[row] * _TICKS
        ticks: Int64 = np.maximum(np.round(self.ticks[row] + passed), 0).astype(np.int64)
        return ticks

    def tick_of_quarter(self, quarter: float) -> int:
        return round((quarter - self.zero_quarter) * _TICKS)


@dataclass(frozen=True)
class _Note:
    """A note in ticks, and from where to where it lasts in the score, in quarters."""

    onset: int
    offset: int
    pitch: int
    onset_quarter: float
    offset_quarter: float


@dataclass(frozen=True)
class _Voice:
    """Notes of one part, no two of which sound on one key at the same time."""

    name: str
    program: int
    notes: list[_Note]


def _lead_in(time: ScoreTime) -> _LeadIn:
    """Choose as many bars of rest as fit before the first note at the average tempo."""
    first_sec, first_quarter = float(time.tempo.seconds[0]), float(time.tempo.beats[0])
    row = int(np.searchsorted(time.measure_start_quarter, first_quarter + 1e-6)) - 1
    row = max(row, 0)
    beats, beat_type = time.signatures[row]
    bar = Fraction(4 * beats, beat_type)
    waiting = first_quarter - float(time.measure_start_quarter[row])  # in quarters
    n_bars = max(0, round((first_sec / time.tempo.sec_per_beat - waiting) / float(bar)))
    if n_bars == 0 and waiting < 1e-6 and first_sec > 1e-3:
        n_bars = 1
    return _LeadIn(row, n_bars, bar)


def _conductor(alignment: Alignment, time: ScoreTime, clock: _Clock) -> mido.MidiTrack:
    """Make the track with tempo changes, time signatures, and a marker for each measure."""
    events: list[tuple[int, mido.MetaMessage]] = []
    tempo = zip(clock.ticks.tolist(), clock.tempo_us.tolist(), strict=True)
    events += [(tick, mido.MetaMessage("set_tempo", tempo=us)) for tick, us in tempo]
    lead_in = _lead_in(time)
    previous: tuple[int, int] | None = None
    if lead_in.n_bars:
        previous = time.signatures[lead_in.first_measure]
        events.append((0, _time_signature(previous)))
    for row in range(lead_in.first_measure, len(alignment.measures)):
        tick = clock.tick_of_quarter(time.measure_start_quarter[row])
        length = Fraction(time.measure_end_quarter[row] - time.measure_start_quarter[row]).limit_denominator(
            256
        )
        signature = _fitting_signature(time.signatures[row], length)
        if signature != previous:
            events.append((tick, _time_signature(signature)))
            previous = signature
        if np.isfinite(alignment.measures["start_sec"][row]):
            number = str(alignment.measures["number"][row])
            events.append((tick, mido.MetaMessage("marker", text=f"measure {number}")))
    name = Path(alignment.pages.filename).stem.encode("latin-1", "replace").decode("latin-1")
    return _in_order([(0, mido.MetaMessage("track_name", name=name)), *events])


def _fitting_signature(signature: tuple[int, int], length: Fraction) -> tuple[int, int]:
    """Return the signature of a measure, or one as long as the measure: of a pick-up or before a repeat.

    >>> _fitting_signature((6, 8), Fraction(3)), _fitting_signature((6, 8), Fraction(3, 2))
    ((6, 8), (3, 8))
    """
    if Fraction(4 * signature[0], signature[1]) == length:
        return signature
    for denominator in (signature[1], *_DENOMINATORS):
        numerator = length * denominator / 4
        if numerator.denominator == 1 and 1 <= numerator <= 255:
            return int(numerator), denominator
    return signature


def _time_signature(signature: tuple[int, int]) -> mido.MetaMessage:
    return mido.MetaMessage("time_signature", numerator=signature[0], denominator=signature[1])


def _voices(alignment: Alignment, time: ScoreTime, clock: _Clock) -> list[_Voice]:
    """Sort the notes that were heard into parts, and notes that would end each other into further voices."""
    assert alignment.pages.score is not None  # noqa: S101
    parts = alignment.pages.score.parts
    part_of = {str(note.id): number for number, part in enumerate(parts) for note in part.notes}
    heard = np.isfinite(alignment.notes["onset_sec"])
    notes = alignment.notes[heard]
    onset = clock.ticks_of_seconds(notes["onset_sec"])
    offset = np.maximum(clock.ticks_of_seconds(notes["offset_sec"]), onset + 1)
    columns = (
        onset,
        offset,
        sounding_pitch(alignment, notes),
        time.onset_quarter[heard],
        time.offset_quarter[heard],
    )
    rows: list[list[_Note]] = [[] for _ in parts]
    for head, *values in zip(notes["notated_id"].tolist(), *(each.tolist() for each in columns), strict=True):
        rows[part_of.get(head, 0)].append(_Note(*values))
    main, further = [], []
    for part, played in zip(parts, rows, strict=True):
        name = " ".join((part.part_name or part.id or "part").split())
        program = midi_program(part.part_name)
        separate = _separate(played)
        main += [_Voice(name, program, each) for each in separate[:1]]
        further += [
            _Voice(f"{name}, voice {number}", program, each)
            for number, each in enumerate(separate[1:], start=2)
        ]
    return main + further


def _separate(notes: Iterable[_Note]) -> list[list[_Note]]:
    """Put notes of one key that sound together in the score into different voices.

    Notes that follow each other in the score, but overlap in the recording, stay in one voice: the earlier one
    ends when the later one begins.

    >>> held, struck, next_one = _Note(0, 10, 60, 0, 2), _Note(0, 5, 60, 0, 1), _Note(8, 20, 60, 2, 3)
    >>> [[(note.onset, note.offset) for note in voice] for voice in _separate([held, struck, next_one])]
    [[(0, 5), (8, 20)], [(0, 10)]]
    """
    voices: list[list[_Note]] = []
    last: list[dict[int, int]] = []  # of each voice: pitch -> place of its last note
    for note in sorted(notes, key=lambda note: (note.onset, note.onset_quarter, note.offset_quarter)):
        for voice, places in zip(voices, last, strict=True):
            before = voice[places[note.pitch]] if note.pitch in places else None
            if before is None or before.offset <= note.onset:
                break
            if before.offset_quarter <= note.onset_quarter:
                note = replace(note, onset=max(note.onset, before.onset + 1))
                note = replace(note, offset=max(note.offset, note.onset + 1))
                voice[places[note.pitch]] = replace(before, offset=note.onset)
                break
        else:
            voice, places = [], {}
            voices.append(voice)
            last.append(places)
        places[note.pitch] = len(voice)
        voice.append(note)
    return voices


def _track(voice: _Voice, port: int | None, channel: int) -> mido.MidiTrack:
    start = [mido.MetaMessage("track_name", name=voice.name)]
    if port is not None:
        start.append(mido.MetaMessage("midi_port", port=port))
    start.append(mido.Message("program_change", program=voice.program, channel=channel))
    events: list[tuple[int, mido.Message]] = []
    for note in voice.notes:
        key = {"note": note.pitch, "velocity": _VELOCITY, "channel": channel}
        events.append((note.offset, mido.Message("note_off", **key)))
        events.append((note.onset, mido.Message("note_on", **key)))
    events.sort(key=lambda event: (event[0], event[1].type == "note_on"))  # a key is released, then struck
    return _in_order([*((0, message) for message in start), *events])


def _in_order(events: Sequence[tuple[int, mido.Message]]) -> mido.MidiTrack:
    """Make a track of messages at ticks; those at the same tick keep their order."""
    track, now = mido.MidiTrack(), 0
    for tick, message in sorted(events, key=lambda event: event[0]):
        track.append(message.copy(time=tick - now))
        now = tick
    return track


def _charset(names: Iterable[str]) -> str:
    """Return the charset of MIDI files, or UTF-8 where it cannot spell a name."""
    try:
        "".join(names).encode("latin-1")
    except UnicodeEncodeError:
        return "utf-8"
    return "latin-1"
