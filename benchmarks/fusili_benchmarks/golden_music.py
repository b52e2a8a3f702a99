"""A small piece in several notations, and recordings of it, made of numbers alone: no soundfont, no chance.

Each part has as many quarters as the others, four a measure, all naturals.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import mido
import numpy as np
import soundfile

from fusili_mir.arrays import Float32, Float64

__all__ = [
    "BASS",
    "MELODY",
    "SAMPLE_RATE_HZ",
    "even",
    "midi_pitch",
    "play",
    "save_kern",
    "save_mei",
    "save_midi",
    "save_musicxml",
    "save_sound",
    "tones",
    "wandering",
]

MELODY = (
    *("E5 G5 C6 B5", "A5 F5 D5 E5", "F5 A5 G5 E5", "D5 C5 B4 D5"),
    *("G5 E5 F5 D5", "E5 C5 A4 B4", "C5 F5 E5 A5", "G5 B5 D5 C5"),
)
BASS = (
    *("C3 E3 A3 G3", "F3 D3 B2 C3", "D3 F3 E3 C3", "G2 A2 D3 B2"),
    *("E3 C3 A2 B2", "C3 A3 F3 E3", "A2 D3 C3 F3", "B2 G2 F2 C3"),
)
"""Measures, from 1: their four quarters."""

SAMPLE_RATE_HZ = 16_000
_STEPS = {"C": 0, "D": 2, "E": 4, "F": 5, "G": 7, "A": 9, "B": 11}
_CLEFS = (("G", "2"), ("F", "4"))
_OVERTONES, _FAINTER = 8, 0.6  # each as loud as the one below it, times this
_ATTACK_SEC, _DECAY_A_SEC, _LOUDNESS = 0.004, 3.0, 0.12
_RING_SEC = 1.0  # after the last note

Part = Sequence[str]


def midi_pitch(name: str) -> int:
    """Return the MIDI number of a natural.

    >>> midi_pitch("A4")
    69
    """
    return 12 * (int(name[-1]) + 1) + _STEPS[name[0]]


def wandering(quarters: Float64) -> Float64:
    """Return the seconds of quarters at a tempo that wanders around 133 a minute."""
    return np.asarray(0.6 + 0.45 * quarters + 0.1 * np.sin(quarters / 3))


def even(quarters: Float64) -> Float64:
    """Return the seconds of quarters at 120 a minute."""
    return quarters / 2


def play(
    parts: Sequence[Part],
    measures: Sequence[int] = (),
    second_of: Callable[[Float64], Float64] = wandering,
    held: float = 0.9,
    late_sec: float = 0.02,
) -> Float64:
    """Return the notes of a performance: onset and length in seconds, and MIDI pitch [shape=(n, 3)].

    Parameters
    ----------
    parts : sequence of sequences of measures
    measures : sequence of int
        Measures as they are played, from 1; by default each once.
    second_of : function
        From quarters to seconds.
    held : float
        Share of its written length for which a note sounds.
    late_sec : float
        How much later each part plays than the one above it.
    """
    order = measures or range(1, len(parts[0]) + 1)
    notes = []
    for number, part in enumerate(parts):
        names = " ".join(part[measure - 1] for measure in order).split()
        borders = second_of(np.arange(len(names) + 1.0)) + number * late_sec
        pitches = (midi_pitch(name) for name in names)
        notes += list(zip(borders[:-1], held * np.diff(borders), pitches, strict=True))
    return np.array(sorted(notes))


def tones(notes: Float64) -> Float32:
    """Let strings with eight partials sound the notes of `play`, mono, at `SAMPLE_RATE_HZ`."""
    sound = np.zeros(round((float((notes[:, 0] + notes[:, 1]).max()) + _RING_SEC) * SAMPLE_RATE_HZ))
    for onset_sec, length_sec, pitch in notes:
        start, n_samples = round(onset_sec * SAMPLE_RATE_HZ), round(length_sec * SAMPLE_RATE_HZ)
        since_sec = np.arange(n_samples) / SAMPLE_RATE_HZ
        faded = np.clip(np.minimum(since_sec, since_sec[::-1]) / _ATTACK_SEC, 0, 1)
        phase = 2 * np.pi * 440 * 2 ** ((pitch - 69) / 12) * since_sec
        partials = sum(_FAINTER**k * np.sin((k + 1) * phase) for k in range(_OVERTONES))
        sound[start : start + n_samples] += _LOUDNESS * faded * np.exp(-_DECAY_A_SEC * since_sec) * partials
    return sound.astype(np.float32)


def save_musicxml(
    filename: Path, parts: Sequence[Part], repeated: tuple[int, int] | None = None, written: int = 0
) -> Path:
    """Write parts as MusicXML, a staff each.

    Parameters
    ----------
    filename : Path
    parts : sequence of sequences of measures
        As they are written.
    repeated : (int, int), optional
        The first and last measure of a repeat; the last one is its first ending, the next its second.
    written : int
        Diatonic steps by which all parts are written above what sounds: 1 for B flat.
    """
    transposed = (
        f"<transpose><diatonic>-{written}</diatonic><chromatic>-{2 * written}</chromatic></transpose>"
    )
    names, content = "", ""
    for number, part in enumerate(parts, start=1):
        sign, line = _CLEFS[min(number, len(_CLEFS)) - 1]
        attributes = (
            "<attributes><divisions>1</divisions><key><fifths>0</fifths></key><time><beats>4</beats><beat-type>4"
            f"</beat-type></time><clef><sign>{sign}</sign><line>{line}</line></clef>"
            f"{transposed if written else ''}</attributes>"
        )
        measures = "".join(
            f"<measure number='{place}'>{attributes if place == 1 else ''}"
            + _with_signs("".join(_xml_note(name) for name in measure.split()), place, repeated)
            + "</measure>"
            for place, measure in enumerate(part, start=1)
        )
        names += f"<score-part id='P{number}'><part-name>{number}</part-name></score-part>"
        content += f"<part id='P{number}'>{measures}</part>"
    filename.write_text(
        "<?xml version='1.0' encoding='UTF-8'?><score-partwise version='4.0'>"
        f"<part-list>{names}</part-list>{content}</score-partwise>",
        encoding="utf-8",
    )
    return filename


def _xml_note(name: str) -> str:
    pitch = f"<pitch><step>{name[0]}</step><octave>{name[1]}</octave></pitch>"
    return f"<note>{pitch}<duration>1</duration><voice>1</voice><type>quarter</type></note>"


def _with_signs(notes: str, measure: int, repeated: tuple[int, int] | None) -> str:
    first, last = repeated or (0, -1)
    if measure == first:
        return f"<barline location='left'><repeat direction='forward'/></barline>{notes}"
    if measure not in (last, last + 1):
        return notes
    number = 1 + measure - last
    back = "<repeat direction='backward'/>" if number == 1 else ""
    return (
        f"<barline location='left'><ending number='{number}' type='start'/></barline>{notes}"
        f"<barline location='right'><ending number='{number}' type='stop'/>{back}</barline>"
    )


def save_kern(filename: Path, parts: Sequence[Part]) -> Path:
    """Write parts as Humdrum kern, the lowest first."""
    spines = parts[::-1]
    clefs = [f"*clef{sign}{line}" for sign, line in _CLEFS[: len(parts)]][::-1]
    lines = [["**kern"] * len(parts), clefs, ["*M4/4"] * len(parts)]
    for number, measures in enumerate(zip(*spines, strict=True), start=1):
        lines.append([f"={number}"] * len(parts))
        quarters = zip(*(measure.split() for measure in measures), strict=True)
        lines += [[_kern_note(name) for name in names] for names in quarters]
    lines += [["=="] * len(parts), ["*-"] * len(parts)]
    filename.write_text("".join("\t".join(line) + "\n" for line in lines), encoding="utf-8")
    return filename


def _kern_note(name: str) -> str:
    octave = int(name[1])
    return "4" + (name[0].lower() * (octave - 3) if octave > 3 else name[0] * (4 - octave))


def save_mei(filename: Path, parts: Sequence[Part]) -> Path:
    """Write parts as MEI, a staff each, with ids on the notes."""
    staves = "".join(
        f"<staffDef n='{n}' lines='5' clef.shape='{sign}' clef.line='{line}'/>"
        for n, (sign, line) in enumerate(_CLEFS[: len(parts)], start=1)
    )
    measures = "".join(
        f"<measure n='{number}'>"
        + "".join(
            f"<staff n='{staff}'><layer n='1'>"
            + "".join(_mei_note(name, f"s{staff}m{number}q{q}") for q, name in enumerate(measure.split()))
            + "</layer></staff>"
            for staff, measure in enumerate(together, start=1)
        )
        + "</measure>"
        for number, together in enumerate(zip(*parts, strict=True), start=1)
    )
    filename.write_text(
        "<mei xmlns='http://www.music-encoding.org/ns/mei' meiversion='5.0'><music><body><mdiv><score>"
        f"<scoreDef meter.count='4' meter.unit='4'><staffGrp>{staves}</staffGrp></scoreDef>"
        f"<section>{measures}</section></score></mdiv></body></music></mei>",
        encoding="utf-8",
    )
    return filename


def _mei_note(name: str, note_id: str) -> str:
    return f"<note xml:id='{note_id}' pname='{name[0].lower()}' oct='{name[1]}' dur='4'/>"


def save_midi(filename: Path, notes: Float64) -> Path:
    """Write notes of `play` as MIDI, one track at 120 quarters a minute: if they are played evenly, a score."""
    events = [
        (round(second * 960), pitch, velocity)
        for onset_sec, length_sec, pitch in notes
        for second, velocity in ((onset_sec, 80), (onset_sec + length_sec, 0))
    ]
    track, now = mido.MidiTrack([mido.MetaMessage("time_signature", numerator=4, denominator=4)]), 0
    for tick, pitch, velocity in sorted(events, key=lambda event: (event[0], event[2] > 0, event[1])):
        track.append(mido.Message("note_on", note=int(pitch), velocity=velocity, time=tick - now))
        now = tick
    mido.MidiFile(ticks_per_beat=480, tracks=[track]).save(filename)
    return filename


def save_sound(filename: Path, samples: Float32, sample_rate_hz: int = SAMPLE_RATE_HZ) -> Path:
    """Write samples as a sound file of 16 bits."""
    soundfile.write(filename, samples, sample_rate_hz, subtype="PCM_16")
    return filename
