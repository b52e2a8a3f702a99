"""A trained model on pieces that training never saw: whole pieces under each shift, and segments.

    python benchmarks/held_out.py BUNDLE [--split test] [--pieces 12] [--quartets 2]
        [--lilypond TREE] [--segments SHARDS]

Whole pieces: songs (whole, piano alone, voice alone) and quartets are engraved and played with expressive
timing by a piano that training never hears; each row changes one thing. Errors are those of the decoded path,
from images of the pages alone and with the symbolic score. CPU seconds do not include Verovio's processes.

TREE is written by `benchmarks/lilypond_pieces.py`: other pieces, the same piano, another engraver.

Segments: SHARDS is rendered with `training/recipes/render/strips-held-out.toml`. Retrieval is measured among 400
of its segments, and among all.

With `--soundfont TimGM6mb --programs 40 41 42 48`, quartets are played by synthesised strings that nothing was
trained on. The piano's samples must be in a folder of FUSILI_SOUNDFONTS (see
`fusili_training.sound.soundfonts`). Look at the split valid as often as you like, and at test once.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TypeAlias

from fusili_benchmarks.held_out_onsets import (
    RememberingEncoder,
    ShiftResult,
    format_results,
    measure_images,
    measure_shifts,
)
from fusili_benchmarks.held_out_pieces import Playing, choose_layouts, choose_pieces
from fusili_benchmarks.held_out_shifts import BASE, SHIFTS
from fusili_mir.errors import FusiliError
from fusili_mir.model.bundle import load_bundle
from fusili_mir.scores.score_file import read_score_file
from fusili_training.evaluation.chosen_pairs import ChosenPairs
from fusili_training.evaluation.compared_pairs import compare_by_bundle
from fusili_training.evaluation.local_task import LocalResult, grids_of, measure_local
from fusili_training.evaluation.matching_rules import EXACT
from fusili_training.evaluation.msmd import MsmdTree
from fusili_training.evaluation.point_task import PointResult, measure_point
from fusili_training.evaluation.retrieval_task import Ranking, RetrievalResult, measure_retrieval
from fusili_training.evaluation.shard_dataset import ShardDataset
from fusili_training.evaluation.whole_pieces import MsmdPieces
from fusili_training.notation.layouts import LAYOUTS
from fusili_training.rendering.corpus import CorpusPiece, list_corpus, select_pieces
from fusili_training.rendering.render_recipe import load_render_recipe

RECIPES = Path(__file__).parents[1] / "training" / "recipes" / "render"
LICENCE = "CC0-1.0"
RANKINGS: tuple[Ranking, ...] = ("pooled", "reranked")
Result: TypeAlias = LocalResult | PointResult | RetrievalResult
KNOWLEDGE = {"images": "From images of the pages alone", "score": "With the symbolic score"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("bundle", type=Path)
    parser.add_argument("--corpus", type=Path, default=Path("../shared/data/manifest.csv"))
    parser.add_argument("--split", choices=["valid", "test"], default="test")
    parser.add_argument("--pieces", type=int, default=12, help="songs per row; 0 for none")
    parser.add_argument(
        "--quartets", type=int, default=2, help="number of quartets, the shortest; 0 for none"
    )
    parser.add_argument(
        "--lilypond", type=Path, metavar="TREE", help="folder of pieces that LilyPond engraved"
    )
    parser.add_argument(
        "--shifts", nargs="*", metavar="NAME", help="only rows whose names contain one of these"
    )
    parser.add_argument("--soundfont", help="plays in place of the piano, such as TimGM6mb")
    parser.add_argument(
        "--programs",
        type=int,
        nargs="+",
        default=[],
        help="its instruments, drawn for each part; 0 is a piano",
    )
    parser.add_argument("--segments", type=Path, help="folder of shards")
    parser.add_argument("--candidates", type=int, default=400, help="segments that retrieval chooses from")
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    try:
        encoder = RememberingEncoder(load_bundle(arguments.bundle), n_threads=arguments.threads)
        print(f"{encoder.bundle.manifest.name}, split {arguments.split}\n")
        if arguments.pieces or arguments.quartets or arguments.lilypond:
            print_whole_pieces(arguments, encoder)
        if arguments.segments:
            print_segments(arguments, encoder)
    except FusiliError as error:
        sys.exit(str(error))


def print_whole_pieces(arguments: argparse.Namespace, encoder: RememberingEncoder) -> None:
    trained, unseen = (load_render_recipe(RECIPES / f"{name}.toml") for name in ("strips", "strips-held-out"))
    sound = unseen.audio
    if arguments.soundfont:
        sound = replace(sound, soundfonts=(arguments.soundfont,))
    if arguments.programs:
        programs = tuple(arguments.programs)
        sound = replace(sound, keyboard_programs=programs, other_programs=programs)
    playing = Playing(unseen.expression, sound, trained.audio, unseen.seed)
    names = arguments.shifts
    shifts = [shift for shift in SHIFTS if not names or any(name in shift.name for name in names)]
    results: list[ShiftResult] = []
    if arguments.pieces:
        songs = choose_pieces(list_pieces(arguments, "*/openscore_lieder/*"), arguments.pieces)
        laid_out = list(zip(songs, choose_layouts(songs), strict=True))
        results += measure_shifts(laid_out, shifts, playing, encoder, progress=True)
        bases = [result for result in results if result.name == BASE.name]
        results += [base.of_layout(layout) for base in bases for layout in LAYOUTS if layout in base.layouts]
    if arguments.quartets:
        quartets = shortest(list_pieces(arguments, "*/openscore_quartets/*"), arguments.quartets)
        for found in measure_shifts([(piece, "whole") for piece in quartets], [BASE], playing, encoder, True):
            found.name += ": quartets"
            results.append(found)
    if arguments.lilypond:
        tree = MsmdPieces(MsmdTree(arguments.lilypond))
        results.append(measure_images(f"{BASE.name}: LilyPond", tree, encoder, progress=True))
        encoder.forget()
    for knowledge, title in KNOWLEDGE.items():
        if rows := [result for result in results if result.knowledge == knowledge]:
            print(f"{title}\n\n{format_results(rows)}\n")
    print_pieces([each for each in results if each.name.startswith(BASE.name) and each.cpu_sec])
    print_cost(results)


def list_pieces(arguments: argparse.Namespace, pattern: str) -> list[CorpusPiece]:
    return select_pieces(list_corpus(arguments.corpus), [LICENCE], [arguments.split], pattern)


def shortest(pieces: Sequence[CorpusPiece], number: int) -> list[CorpusPiece]:
    return sorted(pieces, key=lambda piece: len(read_score_file(piece.file).measure_ids()))[:number]


def print_pieces(bases: Sequence[ShiftResult]) -> None:
    print(f"Piece by piece: {BASE.name}\n\n| piece | knows | notes | median ms | <= 250 ms |")
    print("| --- | --- | --- | --- | --- |")
    for result in bases:
        for piece, errors in zip(result.pieces, result.errors, strict=True):
            alone = ShiftResult(piece, result.knowledge, [piece], ["whole"], [errors])
            cells = format_results([alone]).splitlines()[-1].strip("| ").split(" | ")
            print(f"| {piece} | {result.knowledge} | {cells[2]} | {cells[3]} | {cells[9]} |")
    print()


def print_cost(results: Sequence[ShiftResult]) -> None:
    print("| row | CPU s |\n| --- | --- |")
    for result in results:
        if result.cpu_sec:
            print(f"| {result.name}, {result.knowledge} | {result.cpu_sec:.1f} |")
    print(f"| together | {sum(result.cpu_sec for result in results):.1f} |\n")


def print_segments(arguments: argparse.Namespace, encoder: RememberingEncoder) -> None:
    source = ShardDataset(arguments.segments, [arguments.split], encoder.bundle.image)
    grids = grids_of(encoder.bundle.image)
    chosen = ChosenPairs(source, arguments.candidates)
    tasks: dict[str, Callable[[], Result]] = {
        "local": lambda: measure_local(source, partial(compare_by_bundle, encoder), grids, EXACT, 0, True),
        "point": lambda: measure_point(encoder, source, grids, progress=True),
        f"retrieval, {arguments.candidates}": lambda: measure_retrieval(encoder, chosen, RANKINGS),
        "retrieval, all": lambda: measure_retrieval(encoder, source, RANKINGS),
    }
    print("| task | on | direction | metric | value | 95 % | n | chance | straight line | CPU s |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for name, measure in tasks.items():
        begin = time.process_time()
        measurements = measure().measurements
        cpu_sec = time.process_time() - begin
        for each in measurements:
            baselines = [each.baselines.get(baseline) for baseline in ("chance", "straight line")]
            shown = ["-" if value is None else f"{value:.3f}" for value in baselines]
            print(
                f"| {name} | {each.variant} | {each.direction} | {each.metric} | {each.found.value:.3f} "
                f"| {each.found.low:.3f} - {each.found.high:.3f} | {each.n} | {' | '.join(shown)} "
                f"| {cpu_sec:.0f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
