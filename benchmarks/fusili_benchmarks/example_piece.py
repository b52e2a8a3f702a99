"""The recording, the scanned page and the truth of the example that comes with the package.

A clarinet and a piano of the soundfont FluidR3_GM (MIT licence) play the score with rubato, dynamics and pedal,
in a small room, without repeats. The page is engraved, rotated slightly, and printed on greyish paper under
uneven light. Everything random comes from one seed. The truth says of every note when it is struck, and where its
head lies on the page image. `benchmarks/make_example.py` writes the files.
"""

from __future__ import annotations

import csv
from pathlib import Path

import click
import numpy as np
import soundfile
from partitura import score as ps
from PIL import Image

from fusili_mir.arrays import Float32, GreyImage, Table
from fusili_mir.demo.example import EXAMPLE_NOTE_DTYPE
from fusili_mir.errors import FusiliError, InputError
from fusili_mir.pages.engraving import EngravingOptions
from fusili_mir.pages.pages import Pages, render_pages
from fusili_mir.staging import staged_folder
from fusili_training.random_streams import random_stream
from fusili_training.rendering.degrade import Degradation
from fusili_training.rendering.sound_choice import bank_folder
from fusili_training.sound.augment_audio import add_noise, reverberate
from fusili_training.sound.baking import cached_soundbank
from fusili_training.sound.expression import Expression, perform
from fusili_training.sound.notes import PerformedArray, ScoreNoteArray
from fusili_training.sound.score_notes import read_score_notes
from fusili_training.sound.soundfonts import find_soundfont
from fusili_training.sound.synthesis import synthesise
from fusili_training.sound.tempo import read_written_tempo

__all__ = [
    "engrave_example",
    "example_truth",
    "make_example",
    "perform_example",
    "record_example",
    "save_example",
]

_SEED = 7
_STYLE = Expression(
    tempo_factor=1.05,
    rubato=0.13,
    jitter_sec=0.012,
    chord_spread_sec=0.025,
    marks=1.0,
    dynamics=6.0,
    articulation=0.08,
    pedal=0.6,
    pedal_quarter=1.5,
)
_LEAD_SEC, _RING_SEC = 0.8, 2.0  # before the first note, and after the last one ends

_SOUNDFONT, _PIANO, _CLARINET = "FluidR3_GM", 0, 71  # General MIDI programs
_SAMPLE_RATE_HZ = 24_000
_ROOM_SEC, _DIRECT_TO_ROOM_DB = 0.5, 12.0
_SNR_DB, _NOISE_TILT = 55.0, 1.0
_LOUDEST = 0.7

_ENGRAVING = EngravingOptions(font="Leland")
_SCAN = Degradation(rotation_deg=0.6, ink=0.1, light=0.1, paper=0.97, blur_px=0.5, noise=0.008)
_GREYS = 16  # evenly spaced: half a byte per pixel


def engrave_example(filename: str | Path) -> Pages:
    """Engrave the score on one page."""
    pages = render_pages(filename, _ENGRAVING, rasteriser="resvg")
    if len(pages.images) != 1:
        raise InputError(f"{filename}: {len(pages.images)} pages, expected a piece of one page")
    return pages


def perform_example(pages: Pages) -> PerformedArray:
    """Play the notes of the score without its repeats, after a short silence."""
    notes = _without_first_endings(pages.score, read_score_notes(pages.score))
    played = perform(notes, read_written_tempo(pages.score), _STYLE, random_stream(_SEED, "performance"))
    played["onset_sec"] += _LEAD_SEC - played["onset_sec"].min()
    return played


def record_example(pages: Pages, played: PerformedArray) -> Float32:
    """Synthesise a performance, (samples,): a piano plays parts with several staves, a clarinet the others."""
    soundfont = find_soundfont(_SOUNDFONT)
    notes = read_score_notes(pages.score)
    banks = {}
    for part in np.unique(notes["part"]).tolist():
        n_staves = len(np.unique(notes["staff"][notes["part"] == part]))
        program = _PIANO if n_staves > 1 else _CLARINET
        banks[part] = cached_soundbank(soundfont, program, _SAMPLE_RATE_HZ, bank_folder())
    end_sec = float((played["onset_sec"] + played["sounding_sec"]).max()) + _RING_SEC
    rng = random_stream(_SEED, "room")
    dry = synthesise(played, banks, end_sec)
    wet = reverberate(dry, _SAMPLE_RATE_HZ, _ROOM_SEC, _DIRECT_TO_ROOM_DB, rng)
    noisy = add_noise(wet, _SNR_DB, _NOISE_TILT, rng)
    return np.asarray(_LOUDEST * noisy / np.abs(noisy).max(), dtype=np.float32)


def example_truth(pages: Pages, played: PerformedArray) -> Table:
    """Return when each note is struck, and where its head lies on the scan: rows of `EXAMPLE_NOTE_DTYPE`."""
    height_px, width_px = pages.images[0].shape
    # A tied note has several heads, in the order of the page: it is struck at the first one.
    first_head = {str(head["id"]): head for head in pages.notes[::-1]}
    heads = np.array([first_head[str(note_id)] for note_id in played["id"]], dtype=pages.notes.dtype)
    truth = np.zeros(len(played), EXAMPLE_NOTE_DTYPE)
    truth["id"], truth["onset_sec"], truth["page"] = played["id"], played["onset_sec"], heads["page"]
    truth["x"], truth["y"] = _SCAN.to_degraded(
        (heads["x0"] + heads["x1"]) / 2,
        (heads["y0"] + heads["y1"]) / 2,
        width_px=width_px,
        height_px=height_px,
    )
    return np.asarray(truth[np.argsort(truth["onset_sec"], kind="stable")])


def save_example(filename: str | Path, out: str | Path, force: bool = False) -> None:
    """Write NAME.ogg, NAME.png and NAME.csv for the score NAME into a folder."""
    name = Path(filename).stem
    pages = engrave_example(filename)
    played = perform_example(pages)
    with staged_folder(out, force) as folder:
        soundfile.write(folder / f"{name}.ogg", record_example(pages, played), _SAMPLE_RATE_HZ)
        _save_grey(_SCAN.apply(pages.images[0], random_stream(_SEED, "scan")), folder / f"{name}.png")
        _save_truth(example_truth(pages, played), folder / f"{name}.csv")


def _without_first_endings(score: ps.Score, notes: ScoreNoteArray) -> ScoreNoteArray:
    """Drop the endings that are played only before a repeat, and close the gaps."""
    firsts = {
        (float(part.quarter_map(ending.start.t)), float(part.quarter_map(ending.end.t)))
        for part in score.parts
        for ending in part.iter_all(ps.Ending)
        if ending.number == "1"
    }
    for begin, end in sorted(firsts, reverse=True):
        onset = notes["onset_quarter"]
        notes = notes[(onset < begin) | (onset >= end)]
        notes["onset_quarter"] -= np.where(notes["onset_quarter"] >= end, end - begin, 0.0)
    return notes


def _save_grey(image: GreyImage, filename: Path) -> None:
    step = 255 // (_GREYS - 1)
    greys = np.rint(image / step).astype(np.uint8) * np.uint8(step)
    Image.fromarray(greys).quantize(_GREYS).save(filename, optimize=True)


def _save_truth(truth: Table, filename: Path) -> None:
    with filename.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(EXAMPLE_NOTE_DTYPE.names or ())
        for note in truth:
            place = (f"{note['x']:.1f}", f"{note['y']:.1f}")
            writer.writerow([note["id"], f"{note['onset_sec']:.4f}", note["page"], *place])


@click.command()
@click.argument("score", type=click.Path(path_type=Path))
@click.option("-o", "--out", type=click.Path(path_type=Path), default=Path(), help="Folder to write into.")
@click.option("--force", is_flag=True, help="Replace files in a folder that is not empty.")
def make_example(score: Path, out: Path, force: bool) -> None:
    """Make the recording, the scanned page and the truth of SCORE, a piece of one page."""
    try:
        save_example(score, out, force)
    except FusiliError as error:
        raise click.ClickException(str(error)) from error
