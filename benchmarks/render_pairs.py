"""How fast a corpus is rendered into pairs, and how fast pairs are read into batches.

    python benchmarks/render_pairs.py ../shared/data --pieces 60

Each shape is rendered by one process. CPU seconds, including those of Verovio's process, are measured, as the
machine may be busy. Sound banks are baked beforehand.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from fusili_training.data.augmentation import Augmentation
from fusili_training.data.batch_plan import BatchOptions
from fusili_training.data.loader import PairLoader
from fusili_training.data.shard_folder import ShardFolder
from fusili_training.rendering.corpus import list_corpus, select_pieces
from fusili_training.rendering.render import render_corpus
from fusili_training.rendering.render_recipe import (
    MutationOptions,
    RenderRecipe,
    SegmentOptions,
    load_render_recipe,
)
from fusili_training.rendering.sound_choice import bake_banks

# The paper's squares, played by one piano and one choir: fewer sounds to bake.
PAPER = load_render_recipe(Path(__file__).parents[1] / "training" / "recipes" / "render" / "squares.toml")
TWO_SOUNDS = replace(
    PAPER.audio,
    soundfonts=("FluidR3_GM",),
    keyboard_programs=(0,),
    other_programs=(52,),
    velocities=(72,),
)
RECIPES = {
    "strips": RenderRecipe(),
    "strips with mutants": RenderRecipe(mutation=MutationOptions(mutants=True)),
    "squares": RenderRecipe(segment=SegmentOptions(shape="square")),
    "paper-notes": replace(PAPER, audio=TWO_SOUNDS),
    "paper-flac": replace(PAPER, audio=replace(TWO_SOUNDS, codec="flac")),
}


@dataclass(frozen=True)
class Rendering:
    wall_sec: float
    cpu_sec: float
    manifest: dict[str, object]


def render(arguments: argparse.Namespace, name: str, out: Path) -> Rendering:
    """Render in a separate process, whose total CPU time is known when it has ended."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    begin = time.perf_counter()
    command = [sys.executable, __file__, str(arguments.corpus), "--pieces", str(arguments.pieces)]
    subprocess.run(
        [*command, "--files", arguments.files, "--only", name, "--out", str(out)],
        check=True,
        stderr=subprocess.DEVNULL,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_sec = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    manifest = json.loads((out / "manifest.json").read_text())
    return Rendering(time.perf_counter() - begin, cpu_sec, manifest)


def reading_rate(folder: Path, augmentation: Augmentation | None) -> float:
    """Return the number of pairs per second that one process reads and collates into batches of 32."""
    torch.set_num_threads(1)  # as in the workers of a loader
    loader = PairLoader(ShardFolder(folder), BatchOptions(32), augmentation)
    begin, n_pairs = time.process_time(), 0
    for batch in loader.epoch(0):
        n_pairs += len(batch.keys)
        if time.process_time() - begin > 20:
            break
    return n_pairs / (time.process_time() - begin)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("corpus", type=Path, nargs="?", default=Path("../shared/data"))
    parser.add_argument("--pieces", type=int, default=60)
    parser.add_argument("--files", default="*/openscore_lieder/*")
    parser.add_argument("--shapes", nargs="*", choices=list(RECIPES), default=list(RECIPES))
    parser.add_argument("--only", help=argparse.SUPPRESS)
    parser.add_argument("--out", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    pieces = select_pieces(
        list_corpus(arguments.corpus), ["CC0-1.0"], ["train"], arguments.files, arguments.pieces
    )
    if arguments.only:
        render_corpus(pieces, arguments.out, RECIPES[arguments.only], jobs=1)
        return
    for name in arguments.shapes:
        for _ in bake_banks(RECIPES[name].audio):
            pass
    print("| shape | pieces rendered | pairs | left out | CPU s | pairs / CPU s | wall s | kB per pair |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    rates = []
    for name in arguments.shapes:
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder) / "shards"
            run = render(arguments, name, out)
            made = run.manifest
            n_pairs = made["segments"] + made["mutants"]  # type: ignore[operator]
            n_bytes = sum(shard["bytes"] for shard in made["splits"]["train"]["shards"])  # type: ignore[index]
            rendered = f"{made['pieces'] - len(made['broken'])} of {made['pieces']}"  # type: ignore[arg-type, operator]
            left_out = sum(made["dropped"].values())  # type: ignore[attr-defined]
            print(
                f"| {name} | {rendered} | {n_pairs} | {left_out} | {run.cpu_sec:.0f} | "
                f"{n_pairs / run.cpu_sec:.1f} | {run.wall_sec:.0f} | {n_bytes / n_pairs / 1000:.0f} |",
                flush=True,
            )
            rates.append((name, reading_rate(out, None), reading_rate(out, Augmentation())))
    print("\n| shape | pairs read / CPU s | with augmentation |\n| --- | --- | --- |")
    for name, plain, augmented in rates:
        print(f"| {name} | {plain:.0f} | {augmented:.0f} |")


if __name__ == "__main__":
    main()
