"""How early the frames of a model turn to a note that begins: for `fusili-mir export --lead-ms`.

    python benchmarks/onset_lead.py BUNDLE [--pieces 8]

Validation songs are played with expressive timing in the timbres of training and aligned with their scores; the
lead is the median over all pieces of true minus found onsets. BUNDLE should have been exported without one.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np

from fusili_benchmarks.held_out_pieces import Playing, choose_layouts, choose_pieces, open_piece
from fusili_benchmarks.held_out_shifts import Shift, SoundShift
from fusili_mir.alignment.aligning import align_encoded
from fusili_mir.errors import FusiliError
from fusili_mir.model.bundle import load_bundle
from fusili_mir.model.encoder import Encoder
from fusili_training.rendering.corpus import list_corpus, select_pieces
from fusili_training.rendering.render_recipe import load_render_recipe

RECIPE = Path(__file__).parents[1] / "training" / "recipes" / "render" / "strips.toml"
TRAINED = Shift("timbres of training", sound=SoundShift(trained_timbre=True))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("bundle", type=Path)
    parser.add_argument("--corpus", type=Path, default=Path("../shared/data/manifest.csv"))
    parser.add_argument("--pieces", type=int, default=8)
    arguments = parser.parse_args()
    try:
        print_leads(arguments)
    except FusiliError as error:
        sys.exit(str(error))


def print_leads(arguments: argparse.Namespace) -> None:
    encoder = Encoder(load_bundle(arguments.bundle), n_threads=1)
    recipe = load_render_recipe(RECIPE)
    playing = Playing(recipe.expression, recipe.audio, recipe.audio, recipe.seed)
    songs = select_pieces(list_corpus(arguments.corpus), ["CC0-1.0"], ["valid"], "*/openscore_lieder/*")
    songs = choose_pieces(songs, arguments.pieces)
    medians = []
    print("| piece | layout | notes | lead ms |\n| --- | --- | --- | --- |")
    for piece, layout in zip(songs, choose_layouts(songs), strict=True):
        with open_piece(piece, layout, playing) as held_out:
            whole = held_out.under(TRAINED, "score")
            score = encoder.encode_pages(whole.pages)
            # Without the envelope of the sound, times are those of the embeddings.
            audio = replace(encoder.encode_recording(whole.recording), envelope=None)
            notes = align_encoded(whole.pages, score, audio, encoder.bundle.manifest.scale).notes
            found_sec = dict(zip(notes["notated_id"].tolist(), notes["onset_sec"].tolist(), strict=True))
            lead_sec = [
                head["onset_sec"] - found_sec[str(head["id"])]
                for head in whole.heads
                if str(head["id"]) in found_sec
            ]
        medians.append(1000 * float(np.nanmedian(lead_sec)))
        print(f"| {piece.id} | {layout} | {len(lead_sec)} | {medians[-1]:.0f} |")
    print(f"\nmedian of the pieces: {np.median(medians):.0f} ms")


if __name__ == "__main__":
    main()
