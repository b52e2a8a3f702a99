"""Pieces of Mutopia, engraved by LilyPond and played by a piano that was not in training, in MSMD's layout.

    python benchmarks/lilypond_pieces.py OUT --lilypond BIN [--split test] [--pieces 10]
    fusili-mir evaluate BUNDLE OUT --task onsets

BIN is a folder with `lilypond` and `convert-ly`, such as `lilypond-binaries/bin` of the PyPI package `lilypond`.
The shortest public-domain sources of the split are used; those that this version of LilyPond cannot engrave are
listed and skipped. The samples of the piano must be in a folder of FUSILI_SOUNDFONTS.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fusili_benchmarks.held_out_lilypond import read_lilypond_score, read_svg_page
from fusili_benchmarks.held_out_tree import save_msmd_piece
from fusili_benchmarks.lilypond_run import draw_page, run_lilypond
from fusili_mir.errors import FusiliError, InputError
from fusili_training.random_streams import random_stream
from fusili_training.rendering.corpus import CorpusPiece, list_corpus, select_pieces
from fusili_training.rendering.render_recipe import RenderRecipe, load_render_recipe
from fusili_training.rendering.sound_choice import open_bank
from fusili_training.sound.expression import draw_expression, perform
from fusili_training.sound.soundbank import SoundBank
from fusili_training.sound.synthesis import synthesise

RECIPE = Path(__file__).parents[1] / "training" / "recipes" / "render" / "strips-held-out.toml"
LICENCE = "Public Domain"
LEAD_SEC, RING_SEC = 0.5, 1.5


@dataclass(frozen=True)
class Counts:
    pages: int
    systems: int
    heads: int
    drawn: int
    notes: int
    seconds: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--lilypond", type=Path, required=True, metavar="BIN")
    parser.add_argument("--corpus", type=Path, default=Path("../shared/data/manifest.csv"))
    parser.add_argument("--split", choices=["valid", "test"], default="test")
    parser.add_argument("--pieces", type=int, default=10)
    parser.add_argument("--time-limit", type=float, default=60.0, help="CPU seconds per piece")
    arguments = parser.parse_args()
    try:
        recipe = load_render_recipe(RECIPE)
        pieces = select_pieces(
            list_corpus(arguments.corpus), [LICENCE], [arguments.split], "*/mutopia_msmd/*.ly"
        )
        piano = open_bank(recipe.audio.soundfonts[0], 0, recipe.audio)
        print("| piece | pages | systems | heads recorded | drawn | notes | recording s |")
        print("| --- | --- | --- | --- | --- | --- | --- |")
        n_made = 0
        for piece in sorted(pieces, key=lambda piece: piece.file.stat().st_size):
            if n_made == arguments.pieces:
                break
            try:
                made = make_piece(piece, arguments, recipe, piano)
            except InputError as error:
                print(f"| {piece.id} | left out: {error} | | | | | |", flush=True)
                continue
            n_made += 1
            print(
                f"| {piece.id} | {made.pages} | {made.systems} | {made.heads} | {made.drawn} | {made.notes} "
                f"| {made.seconds:.0f} |",
                flush=True,
            )
    except FusiliError as error:
        sys.exit(str(error))


def make_piece(
    piece: CorpusPiece, arguments: argparse.Namespace, recipe: RenderRecipe, piano: SoundBank
) -> Counts:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        svgs = run_lilypond(piece.file, folder, arguments.lilypond, arguments.time_limit)
        score = read_lilypond_score(folder / "heads.tsv")
    pages = [read_svg_page(svg, score.boxes) for svg in svgs]
    rng = random_stream(recipe.seed, "lilypond", piece.id)
    performed = perform(score.notes, score.tempo, draw_expression(recipe.expression, rng), rng)
    performed["onset_sec"] += LEAD_SEC - performed["onset_sec"].min()
    lasting_sec = np.maximum(performed["duration_sec"], performed["sounding_sec"])
    end_sec = float((performed["onset_sec"] + lasting_sec).max()) + RING_SEC
    sound = synthesise(performed, {0: piano}, end_sec)
    drawn = [(page, draw_page(svg, page)) for svg, page in zip(svgs, pages, strict=True)]
    save_msmd_piece(arguments.out / piece.id, score, drawn, performed, sound, recipe.audio.sample_rate_hz)
    return Counts(
        pages=len(pages),
        systems=sum(len(page.systems) for page in pages),
        heads=len(score.boxes),
        drawn=sum(len(page.heads) for page in pages),
        notes=len(performed),
        seconds=end_sec,
    )


if __name__ == "__main__":
    main()
