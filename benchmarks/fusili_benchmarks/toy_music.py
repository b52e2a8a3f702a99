"""Toy data in the form of the paper's: random piano pieces as MusicXML, some of them as MSMD, some as YTSV."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import soundfile
from PIL import Image

from fusili_benchmarks.held_out_lilypond import LilypondPage, LilypondScore
from fusili_benchmarks.held_out_tree import save_msmd_piece
from fusili_mir.arrays import Table
from fusili_mir.pages.engraving import EngravingOptions, engrave
from fusili_mir.pages.raster import rasterise
from fusili_mir.pages.segments import Box
from fusili_mir.scores.score_file import read_score_file
from fusili_training.data.shard_folder import ShardFolder
from fusili_training.random_streams import random_stream
from fusili_training.sound.expression import Expression, perform
from fusili_training.sound.sounding_score import read_sounding_score

__all__ = ["write_toy_corpus", "write_toy_msmd", "write_toy_ytsv"]

_STEPS = "CDEFGAB"
_ATTRIBUTES = (
    "<attributes><divisions>1</divisions><key><fifths>0</fifths></key><time><beats>4</beats>"
    "<beat-type>4</beat-type></time><staves>2</staves><clef number='1'><sign>G</sign><line>2</line></clef>"
    "<clef number='2'><sign>F</sign><line>4</line></clef></attributes>"
)


def write_toy_corpus(folder: Path, n_pieces: dict[str, int], n_measures: int = 12) -> Path:
    """Write random piano pieces and the table that lists them.

    Parameters
    ----------
    folder : Path
    n_pieces : dict of str to int
        Number of pieces of each split.
    n_measures : int
        Measures of each piece.

    Returns
    -------
    Path
        The table.
    """
    folder.mkdir(parents=True)
    rows = ["id,file,licence,split"]
    for split, number in n_pieces.items():
        for piece in range(number):
            name = f"{split}{piece}"
            rng = random_stream(0, "toy", name)
            (folder / f"{name}.musicxml").write_text(_piece(n_measures, rng), encoding="utf-8")
            rows.append(f"{name},{name}.musicxml,CC0-1.0,{split}")
    table = folder / "manifest.csv"
    table.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return table


def _piece(n_measures: int, rng: np.random.Generator) -> str:
    measures = []
    for number in range(1, n_measures + 1):
        upper = "".join(_note(str(rng.choice(list(_STEPS))), int(rng.integers(4, 6)), 1) for _ in range(4))
        lower = "".join(_note(str(rng.choice(list(_STEPS))), 3, 2) for _ in range(4))
        content = f"{upper}<backup><duration>4</duration></backup>{lower}"
        attributes = _ATTRIBUTES if number == 1 else ""
        measures.append(f"<measure number='{number}'>{attributes}{content}</measure>")
    return (
        "<?xml version='1.0' encoding='UTF-8'?><score-partwise version='4.0'><part-list><score-part id='P1'>"
        f"<part-name>Piano</part-name></score-part></part-list><part id='P1'>{''.join(measures)}</part>"
        "</score-partwise>"
    )


def _note(step: str, octave: int, staff: int) -> str:
    pitch = f"<pitch><step>{step}</step><octave>{octave}</octave></pitch>"
    place = f"<voice>{staff}</voice><type>quarter</type><staff>{staff}</staff>"
    return f"<note>{pitch}<duration>1</duration>{place}</note>"


def write_toy_msmd(folder: Path, scores: dict[str, list[Path]], sample_rate_hz: int = 48_000) -> Path:
    """Write pieces as MSMD has them, with sine tones for sound, and return MSMD's split file.

    Parameters
    ----------
    folder : Path
    scores : dict of str to list of Path
        MusicXML files of each split.
    sample_rate_hz : int
    """
    lines = []
    for split, files in scores.items():
        lines += [f"{split}:", *(f"- {file.stem}" for file in files)]
        for file in files:
            _write_msmd_piece(folder / file.stem, file, sample_rate_hz)
    split_file = folder / "all_split.yaml"
    split_file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return split_file


def _write_msmd_piece(folder: Path, score_file: Path, sample_rate_hz: int) -> None:
    source = read_score_file(score_file)
    score = read_sounding_score(source)
    engraving = engrave(source, EngravingOptions(header=False, staff_space_px=8.0))
    performed = perform(score.notes, score.tempo, Expression(), random_stream(0, "msmd"))
    heads = {number: score.row_of_head[str(row["notated_id"])] for number, row in enumerate(engraving.notes)}
    pages = []
    for page, svg in enumerate(engraving.svgs):
        image = rasterise(svg)
        here = {n: _box(row) for n, row in enumerate(engraving.notes) if row["page"] == page}
        systems = tuple(_box(row) for row in engraving.systems if row["page"] == page)
        pages.append((LilypondPage(image.shape[1], image.shape[0], systems, here), image))
    row_of_head = {n: int(score.heads["note"][row]) for n, row in heads.items() if score.heads["first"][row]}
    toy = LilypondScore(score.notes, score.tempo, row_of_head, {})
    end_sec = float((performed["onset_sec"] + performed["duration_sec"]).max())
    seconds = np.arange(round(end_sec * sample_rate_hz)) / sample_rate_hz
    sound = np.zeros(len(seconds), np.float32)
    for note in performed:
        here_sec = seconds - note["onset_sec"]
        sounding = (here_sec >= 0) & (here_sec < note["duration_sec"])
        hertz = 440 * 2 ** ((int(note["pitch"]) - 69) / 12)
        sound[sounding] += 0.1 * np.sin(2 * np.pi * hertz * here_sec[sounding]).astype(np.float32)
    save_msmd_piece(folder, toy, pages, performed, sound, sample_rate_hz)


def _box(row: np.void | Table) -> Box:
    return Box(*(float(row[name]) for name in ("x0", "y0", "x1", "y1")))


def write_toy_ytsv(folder: Path, squares: Path, split: str = "test") -> Path:
    """Write the first segment of each piece of a rendered corpus as picture and recording; return the table."""
    folder.mkdir(parents=True)
    source = ShardFolder(squares, split)
    with (folder / "ytsv.csv").open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file)
        table.writerow(["image_filename", "audio_filename"])
        for entry in source.entries:
            if entry.mutant_of is None and entry.key.endswith(".0"):
                pair = source.read(entry)
                Image.fromarray(pair.image).save(folder / f"{entry.piece}.png")
                soundfile.write(folder / f"{entry.piece}.flac", pair.waveform, pair.sample_rate_hz)
                table.writerow([f"{entry.piece}.png", f"{entry.piece}.flac"])
    return folder / "ytsv.csv"
