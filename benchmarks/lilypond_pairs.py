"""Training pairs of piano music engraved by LilyPond: public-domain sources of Mutopia, performed and played.

    python benchmarks/lilypond_pairs.py OUT --lilypond BIN [--pieces 120] [--jobs 1]
    python benchmarks/lilypond_pairs.py OUT --so-far

OUT is a folder like those of `fusili-mir render`. Sound, timing and the state of the pages follow its recipe
`world.toml`; a keyboard plays, and pages have 6 to 14 pixels to the staff space. The shortest sources of the
training split are used, and all of the validation split, but no works of which people's recordings judge models.
A run that was killed goes on where it stopped. `--so-far` makes what it has finished readable while it goes on.
BIN is a folder with `lilypond` and `convert-ly`, such as `lilypond-binaries/bin` of the PyPI package `lilypond`.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from fusili_benchmarks.lilypond_rendering import LilypondRenderer
from fusili_mir.errors import FusiliError, InputError
from fusili_training.rendering.corpus import CorpusPiece, list_corpus, select_pieces
from fusili_training.rendering.render import render_corpus, save_manifest_so_far
from fusili_training.rendering.render_recipe import RenderRecipe, load_render_recipe

RECIPE = Path(__file__).parents[1] / "training" / "recipes" / "render" / "world.toml"
LICENCE = "Public Domain"
SPACE_PX = (6.0, 14.0)
JUDGED_WORKS = (
    *("*/BachJS/BWV856/*", "*/BachJS/BWV864/*", "*/BachJS/BWV868/*", "*/BachJS/BWV892/*"),
    *("*/BeethovenLv/O14/*", "*/BeethovenLv/O28/*", "*/BeethovenLv/O31/*", "*/BeethovenLv/O78/*"),
    *("*/ChopinFF/O10/*", "*/ChopinFF/O25/*", "*/HaydnFJ/HOB-XVI-39/*", "*/MozartWA/KV310/*"),
    *("*/RachmaninoffS/O23/*", "*/SchubertF/D780/*", "*/SchumannR/O16/*", "*/SchumannR/O18/*"),
)
"""Files of the works of which there are recordings by people, with which models are judged."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--lilypond", type=Path, metavar="BIN")
    parser.add_argument("--corpus", type=Path, default=Path("../shared/data/manifest.csv"))
    parser.add_argument("--pieces", type=int, default=120, help="sources of the training split")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--time-limit", type=float, default=40.0, help="CPU seconds per piece")
    parser.add_argument(
        "--so-far", action="store_true", help="write the manifest of the finished shards only"
    )
    arguments = parser.parse_args()
    try:
        print_manifest(save_manifest_so_far(arguments.out) if arguments.so_far else render(arguments))
    except FusiliError as error:
        sys.exit(str(error))


def render(arguments: argparse.Namespace) -> dict[str, Any]:
    if arguments.lilypond is None:
        raise InputError("no --lilypond; expected the folder of LilyPond's programs")
    pieces = choose_pieces(list_corpus(arguments.corpus), arguments.pieces)
    renderer = LilypondRenderer(arguments.lilypond.absolute(), arguments.time_limit)
    return render_corpus(
        pieces, arguments.out, piano_recipe(), arguments.jobs, progress=True, render=renderer
    )


def choose_pieces(corpus: list[CorpusPiece], n_train: int) -> list[CorpusPiece]:
    """Return the shortest sources for training and all for validation, without the works of `JUDGED_WORKS`."""
    known = select_pieces(corpus, [LICENCE], ["train", "valid"], "*/mutopia_msmd/*.ly")
    free = [
        piece for piece in known if not any(fnmatch(piece.file.as_posix(), works) for works in JUDGED_WORKS)
    ]
    by_size = sorted(free, key=lambda piece: piece.file.stat().st_size)
    train = [piece for piece in by_size if piece.split == "train"]
    return train[:n_train] + [piece for piece in by_size if piece.split == "valid"]


def piano_recipe() -> RenderRecipe:
    """Return the recipe with keyboards only, and with a piece to the shard: a killed run repeats one at most."""
    recipe = load_render_recipe(RECIPE)
    audio = replace(
        recipe.audio,
        other_programs=recipe.audio.keyboard_programs,
        sampled_solo=0.0,
        solo_samples=(),
        singing=0.0,
    )
    page = replace(recipe.page, ossias=0.0, fingerings=0.0)  # those are for what Verovio engraves
    engraving = replace(recipe.engraving, staff_space_px=SPACE_PX)
    return replace(recipe, pieces_per_shard=1, audio=audio, page=page, engraving=engraving)


def print_manifest(manifest: dict[str, Any]) -> None:
    for broken in manifest["broken"]:
        print(f"{broken['piece']} left out: {broken['error']}")
    print("| split | pieces | pairs |")
    print("| --- | --- | --- |")
    for split, made in manifest["splits"].items():
        print(f"| {split} | {made['pieces']} | {made['segments']} |")
    print(f"segments left out: {manifest['dropped']}")


if __name__ == "__main__":
    main()
