"""Recordings of which it is known when each measure is played, repeats included, and page images to go with them.

Human performances come with the time of every note. Songs are played by a piano with a tempo that wanders, once
with all repeats and once with none.
"""

from __future__ import annotations

import pickle
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import mido
import numpy as np
import partitura as pt
from PIL import Image

from fusili_mir.alignment.played import PlayedScore, play_pages
from fusili_mir.alignment.results import Alignment
from fusili_mir.arrays import Bool, Table
from fusili_mir.model.encoded import EncodedAudio, EncodedScore
from fusili_mir.model.encoder import Encoder
from fusili_mir.pages.pages import Pages, load_pages, render_pages

__all__ = [
    "PlayedPiece",
    "da_capo_pieces",
    "human_piece",
    "kept",
    "play_midi",
    "right_measures",
    "song_pieces",
    "true_onsets",
]

_BOX = ("page", "x0", "y0", "x1", "y1")
PLAYED_DTYPE = np.dtype([*((name, "f4") for name in _BOX), ("second", "f8")])
"""One measure, each time it is played: its box on the page, and the second of its middle."""
BESIDE_SPACES = 0.5  # how far outside its measure the music may be shown
BEATS_A_SECOND, WANDER, JITTER_SEC = (1.2, 2.2), 0.12, 0.012
TICKS_A_SECOND = 960


@dataclass(frozen=True)
class PlayedPiece:
    """A recording and page images, encoded.

    Attributes
    ----------
    name : str
    how : "human", "repeats", "da capo" or "none"
        Who plays: a human, or a machine with all repeats, with a da capo, or with none.
    scan, score, audio
        The pages as images, their measures read, and both sides encoded.
    measures : np.ndarray of `PLAYED_DTYPE`
        The truth, in playing order.
    has_repeats : bool
        Whether any measure is played more than once.
    """

    name: str
    how: str
    scan: Pages
    score: EncodedScore
    audio: EncodedAudio
    measures: Table
    has_repeats: bool


def right_measures(piece: PlayedPiece, alignment: Alignment) -> Bool:
    """Say of each measure, each time it is played, whether the music is shown in it in the middle of its time."""
    frames, true = alignment.frames, piece.measures
    at = np.clip(np.searchsorted(frames["onset_sec"], true["second"], side="right") - 1, 0, len(frames) - 1)
    shown = frames[at]
    beside_px = BESIDE_SPACES * float(np.median(piece.scan.systems["space_px"]))
    inside = (shown["x"] >= true["x0"] - beside_px) & (shown["x"] <= true["x1"] + beside_px)
    same_line = (shown["y"] >= true["y0"] - 4 * beside_px) & (shown["y"] <= true["y1"] + 4 * beside_px)
    return np.asarray(inside & same_line & (shown["page"] == true["page"]))


def human_piece(stem: Path, encoder: Encoder, soundfont: Path, folder: Path) -> list[PlayedPiece]:
    """Encode a performance of n-ASAP; see `benchmarks/human_piano.py`."""
    pages = render_pages(stem.with_suffix(".mxl"))
    scan = _scan(pages, folder)
    onsets = true_onsets(stem.with_suffix(".match"))
    heads = {str(note["notated_id"]): note for note in pages.notes}
    seconds: dict[tuple[int, int], list[float]] = {}
    for note_id, second in onsets.items():
        head, _, number = note_id.rpartition("-")
        if head in heads and number.isdigit():
            seconds.setdefault((int(heads[head]["measure"]), int(number)), []).append(second)
    box_of = {int(row["measure"]): row for row in pages.measures}
    rows = [
        (*(box_of[measure][name] for name in _BOX), (min(times) + max(times)) / 2)
        for (measure, _), times in sorted(seconds.items(), key=lambda item: min(item[1]))
        if measure in box_of
    ]
    audio = _encode(stem.with_suffix(".mid"), encoder, soundfont, folder)
    has_repeats = any(number > 1 for _, number in seconds)
    score = encoder.encode_pages(scan)
    true = np.array(rows, PLAYED_DTYPE)
    return [PlayedPiece(stem.name, "human", scan, score, audio, true, has_repeats)]


def song_pieces(file: Path, encoder: Encoder, soundfont: Path, folder: Path) -> list[PlayedPiece]:
    """Play a song with all repeats and with none, and encode both."""
    pages = render_pages(file)
    scan = _scan(pages, folder)
    score = encoder.encode_pages(scan)
    made = []
    for how, unfold in (("repeats", "maximal"), ("none", "minimal")):
        rng = np.random.default_rng([int.from_bytes(file.stem.encode()[-7:], "big"), len(how)])
        played = play_pages(pages, unfold)  # type: ignore[arg-type]
        made.append(_played_piece(file.stem, how, played, scan, score, encoder, soundfont, folder, rng))
    return made


def da_capo_pieces(
    file: Path, encoder: Encoder, soundfont: Path, folder: Path, from_start: bool
) -> list[PlayedPiece]:
    """Play a song without repeats, and then some of its measures again, as after a da capo or dal segno; and not.

    Songs with repeats are left out.
    """
    pages = render_pages(file)
    assert pages.repeats is not None
    n_measures = pages.repeats.n_measures
    if pages.repeats.has_repeats:
        return []
    scan = _scan(pages, folder)
    score = encoder.encode_pages(scan)
    rng = np.random.default_rng([int.from_bytes(file.stem.encode()[-7:], "big"), 3])
    first = 0 if from_start else int(rng.integers(0, n_measures // 3))
    again = (first, min(n_measures, first + max(4, int(rng.uniform(0.15, 0.5) * n_measures))))
    whole = (0, n_measures)
    return [
        _played_piece(file.stem, how, play_pages(pages, order), scan, score, encoder, soundfont, folder, rng)
        for how, order in (("da capo", (whole, again)), ("none", (whole,)))
    ]


def _played_piece(
    name: str,
    how: str,
    played: PlayedScore,
    scan: Pages,
    score: EncodedScore,
    encoder: Encoder,
    soundfont: Path,
    folder: Path,
    rng: np.random.Generator,
) -> PlayedPiece:
    """Let a machine play a song, and encode what it plays."""
    second_of = _wandering(played, rng)
    midi = folder / "played.mid"
    _save_midi(played, second_of, rng, midi)
    rows = [
        (*(row[name] for name in _BOX), second_of((row["start_beat"] + row["end_beat"]) / 2))
        for row in played.measures
    ]
    audio = _encode(midi, encoder, soundfont, folder)
    numbers = played.measures["measure"]
    has_repeats = len(np.unique(numbers)) < len(numbers)
    return PlayedPiece(name, how, scan, score, audio, np.array(rows, PLAYED_DTYPE), has_repeats)


def kept(folder: Path, name: str, make) -> Iterator[PlayedPiece]:  # type: ignore[no-untyped-def]
    """Yield what was made the last time, or make it."""
    own = folder / name
    file = own / "pieces.pkl"
    if not file.exists():
        own.mkdir(parents=True, exist_ok=True)
        file.write_bytes(pickle.dumps(make(own)))
    yield from pickle.loads(file.read_bytes())


def true_onsets(match: Path) -> dict[str, float]:
    """Return when each note of the (unfolded) score is struck, by its id."""
    performance, alignment = pt.load_match(match)[:2]
    struck = {str(note["id"]): float(note["note_on"]) for part in performance for note in part.notes}
    return {row["score_id"]: struck[row["performance_id"]] for row in alignment if row["label"] == "match"}


def play_midi(midi: Path, soundfont: Path, out: Path) -> None:
    """Let fluidsynth play a MIDI file into a sound file."""
    command = ["fluidsynth", "-ni", "-g", "0.6", "-r", "44100", "-F", str(out), str(soundfont), str(midi)]
    subprocess.run(command, check=True, capture_output=True)


def _scan(pages: Pages, folder: Path) -> Pages:
    files = [folder / f"{number:03d}.png" for number in range(len(pages.images))]
    for file, image in zip(files, pages.images, strict=True):
        Image.fromarray(image).save(file)
    return load_pages(files)


def _encode(midi: Path, encoder: Encoder, soundfont: Path, folder: Path) -> EncodedAudio:
    sound = folder / "sound.wav"
    play_midi(midi, soundfont, sound)
    audio = encoder.encode_recording(sound)
    sound.unlink()
    return audio


def _wandering(played: PlayedScore, rng: np.random.Generator):  # type: ignore[no-untyped-def]
    """Return the second of each beat, at a tempo that wanders and slows down at the end."""
    notes = played.notes
    beats = np.arange(
        np.floor(notes["onset_beat"].min()), (notes["onset_beat"] + notes["duration_beat"]).max() + 2
    )
    drift = np.convolve(rng.normal(0, 1, len(beats) + 7), np.ones(8) / np.sqrt(8), mode="valid")
    pace = rng.uniform(*BEATS_A_SECOND) * np.exp(WANDER * drift)
    pace[-6:] *= np.linspace(1, 0.6, 6)
    seconds = 0.5 + np.append(0, np.cumsum(1 / pace[:-1]))
    return lambda beat: float(np.interp(beat, beats, seconds))


def _save_midi(played: PlayedScore, second_of, rng: np.random.Generator, out: Path) -> None:  # type: ignore[no-untyped-def]
    events: list[tuple[float, int, int]] = []
    for note in played.notes:
        onset = second_of(note["onset_beat"]) + float(rng.normal(0, JITTER_SEC)) - 0.06 * note["is_grace"]
        end = second_of(note["onset_beat"] + max(note["duration_beat"], 0.15))
        events += [(max(0.0, onset), int(note["pitch"]), 70 + int(rng.integers(-12, 12)))]
        events += [(max(onset + 0.05, end - 0.01), int(note["pitch"]), 0)]
    track = mido.MidiTrack([mido.MetaMessage("set_tempo", tempo=500_000)])
    now = 0
    for second, pitch, velocity in sorted(events):
        tick = round(second * TICKS_A_SECOND)
        track.append(mido.Message("note_on", note=pitch, velocity=velocity, time=tick - now))
        now = tick
    mido.MidiFile(ticks_per_beat=TICKS_A_SECOND // 2, tracks=[track]).save(out)
