"""MSMD, the paper's test set, rebuilt from the LilyPond sources of Mutopia: pages, note heads, onsets and sound.

    python benchmarks/rebuild_msmd.py OUT --lilypond BIN [--splits train test] [--pieces 100]
    fusili-mir evaluate BUNDLE OUT --split train --split test --split-file OUT/split.yaml

BIN is a folder with `lilypond` and `convert-ly`, such as `lilypond-binaries/bin` of the PyPI package `lilypond`.
As in MSMD, every piece is played at its written tempo, without repeats. The soundfont, TimGM6mb, is one that
training never heard. The pieces come in a fixed random order, so that a run that is stopped leaves a fair sample;
a run that is started again goes on where it was stopped. OUT/pieces.tsv says what became of each piece and which
soundfont played it; OUT/split.yaml lists the splits, as MSMD does.
"""

from __future__ import annotations

import argparse
import csv
import shutil
import sys
import tempfile
from pathlib import Path

import mido

from fusili_benchmarks.held_out_lilypond import read_lilypond_score, read_svg_page
from fusili_benchmarks.held_out_tree import save_msmd_piece
from fusili_benchmarks.lilypond_run import draw_page, run_lilypond
from fusili_mir.errors import FusiliError, InputError
from fusili_mir.staging import staged_folder
from fusili_training.evaluation.recordings import play_midi
from fusili_training.random_streams import random_stream
from fusili_training.rendering.corpus import CorpusPiece, list_corpus, select_pieces
from fusili_training.sound.expression import Expression, perform
from fusili_training.sound.notes import PerformedArray
from fusili_training.sound.soundfonts import Soundfont, find_soundfont
from fusili_training.splits import SPLITS, stable_fraction

PREFIX = "msmd:"  # of the ids in the corpus
LEAD_SEC = 0.5
TICKS_PER_SEC = 2000  # 1000 a quarter at 120 quarters a minute
MOST_MIN = 30


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--lilypond", type=Path, required=True, metavar="BIN")
    parser.add_argument("--corpus", type=Path, default=Path("../shared/data/manifest.csv"))
    parser.add_argument("--splits", choices=SPLITS, nargs="+", default=["train", "test"])
    parser.add_argument("--pieces", type=int, help="stop after so many pieces; all by default")
    parser.add_argument("--soundfont", default="TimGM6mb", help="it must be installed")
    parser.add_argument("--time-limit", type=float, default=120.0, help="CPU seconds per piece")
    arguments = parser.parse_args()
    try:
        rebuild(arguments)
    except FusiliError as error:
        sys.exit(str(error))


def rebuild(arguments: argparse.Namespace) -> None:
    out: Path = arguments.out
    soundfont = find_soundfont(arguments.soundfont)
    out.mkdir(parents=True, exist_ok=True)
    pieces = select_pieces(list_corpus(arguments.corpus), (), arguments.splits, "*/mutopia_msmd/*.ly")
    pieces = sorted(pieces, key=lambda piece: stable_fraction(piece.id))[: arguments.pieces]
    name_of = msmd_names(arguments.corpus)
    log = out / "pieces.tsv"
    known = dict(line.split("\t", 1) for line in log.read_text().splitlines()) if log.is_file() else {}
    for piece in pieces:
        name = name_of[piece.file]
        if name in known:
            continue
        try:
            result = make_piece(piece, out / name, soundfont, arguments)
        except InputError as error:
            result = f"left out\t{error}"
        known[name] = result
        with log.open("a", encoding="utf-8") as file:
            print(name, result, sep="\t", file=file)
        save_split_lists(out, pieces, name_of)
    save_split_lists(out, pieces, name_of)
    made = [result for name, result in known.items() if not result.startswith("left out")]
    n_systems = sum(int(result.split("\t")[1].split()[0]) for result in made)
    print(f"{len(made)} of {len(pieces)} pieces came back, with {n_systems} systems")


def msmd_names(corpus: Path) -> dict[Path, str]:
    """Return the name of each piece in MSMD (composer, opus, title), by its file."""
    with corpus.open(encoding="utf-8", newline="") as stream:
        rows = [row for row in csv.DictReader(stream) if row["id"].startswith(PREFIX)]
    return {corpus.absolute().parent / row["file"]: row["id"].removeprefix(PREFIX) for row in rows}


def make_piece(piece: CorpusPiece, target: Path, soundfont: Soundfont, arguments: argparse.Namespace) -> str:
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        svgs = run_lilypond(piece.file, folder, arguments.lilypond, arguments.time_limit)
        score = read_lilypond_score(folder / "heads.tsv")
        pages = [read_svg_page(svg, score.boxes) for svg in svgs]
        performed = perform(score.notes, score.tempo, Expression(), random_stream(0, piece.id))
        performed["onset_sec"] += LEAD_SEC - performed["onset_sec"].min()
        if performed["onset_sec"].max() > MOST_MIN * 60:
            raise InputError(f"it lasts more than {MOST_MIN} minutes")
        midi = folder / "played.midi"
        save_midi(midi, performed)
        sound = play_midi(midi, soundfont)
        drawn = [(page, draw_page(svg, page)) for svg, page in zip(svgs, pages, strict=True)]
        made = folder / target.name
        save_msmd_piece(made, score, drawn, performed, sound.samples, sound.sample_rate_hz)
        shutil.copy(midi, made / "performances" / made.name / f"{made.name}.midi")
        with staged_folder(target) as staged:
            shutil.copytree(made, staged, dirs_exist_ok=True)
    n_heads = sum(len(page.heads) for page in pages)
    n_systems = sum(len(page.systems) for page in pages)
    found = f"{len(pages)} pages", f"{n_systems} systems", f"{n_heads} of {len(score.boxes)} heads"
    return "\t".join([*found, f"{sound.duration_sec:.0f} s", soundfont.name])


def save_midi(filename: Path, performed: PerformedArray) -> None:
    """Write the played notes as a MIDI file of one piano."""
    events = [
        (round(float(second) * TICKS_PER_SEC), kind, int(note["pitch"]), int(note["velocity"]))
        for note in performed
        for kind, second in (
            ("note_on", note["onset_sec"]),
            ("note_off", note["onset_sec"] + max(note["duration_sec"], note["sounding_sec"])),
        )
    ]
    midi = mido.MidiFile(ticks_per_beat=TICKS_PER_SEC // 2)
    track = mido.MidiTrack()
    last = 0
    for tick, kind, pitch, velocity in sorted(events):  # at one tick, "note_off" comes before "note_on"
        track.append(mido.Message(kind, note=pitch, velocity=velocity, time=tick - last))
        last = tick
    midi.tracks.append(track)
    midi.save(filename)


def save_split_lists(out: Path, pieces: list[CorpusPiece], name_of: dict[Path, str]) -> None:
    """Write the splits of the pieces that are there, as MSMD's split files do."""
    lines = []
    for split in SPLITS:
        names = sorted(name_of[piece.file] for piece in pieces if piece.split == split)
        lines += [f"{split}:", *(f"- {name}" for name in names if (out / name).is_dir())]
    (out / "split.yaml").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
