"""A dress rehearsal of the paper's tables: every command that four GPUs would run, at toy size on a CPU.

    python benchmarks/dress_rehearsal.py OUT [--rows table1-random-fusili ...] [--full-size]

Renders a toy corpus as squares with mutants, trains each row on two ranks under bfloat16 autocast (two epochs,
with validation on MSMD's layout), kills the first run and resumes it, lets a run that learns nothing stop early,
exports each row, and fills both tables. The sizes of the encoders and of the batch, the number of epochs and the
corpus are the only differences from the real thing. --full-size also counts what the real thing takes.
"""

from __future__ import annotations

import argparse
import csv
import shlex
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from fusili_benchmarks.rehearsal_ranks import run_on_ranks, start_and_kill
from fusili_benchmarks.toy_music import write_toy_corpus, write_toy_msmd, write_toy_ytsv
from fusili_mir.cli.main import main as fusili_mir
from fusili_mir.errors import FusiliError
from fusili_training.data.batch import collate
from fusili_training.data.shard_folder import ShardFolder
from fusili_training.evaluation.published import TABLES
from fusili_training.loop.recipe_files import list_recipes

RENDERING = Path(__file__).parents[1] / "training" / "recipes" / "render" / "squares.toml"
PIECES = {"train": 4, "valid": 2, "test": 2}
TOY_SIZE = (
    "model.backbone_options={embedding_dim=16, image_width=32, image_layers=1, image_heads=2, audio_width=8,"
    " audio_depths=[1, 1, 1, 1], audio_heads=[1, 1, 2, 2]}",
    "weights.clip=random",
    "weights.clap=random",
    "data.batch_size=4",
    "data.workers=0",
    "training.device=cpu",
    "training.precision=bfloat16",
    "training.epochs=2",
    "training.patience=1",
    "training.checkpoint_every_steps=1",
)
# A run that learns nothing: its second validation is no better, so it stops after two of four epochs.
LEARNS_NOTHING = ("optimiser.head_rate=1e-30", "optimiser.encoder_rate=1e-30", "training.epochs=4")
# One piano instead of an orchestra: fewer sounds to bake.
TOY_SOUND = ("keyboard_programs = [0]", "other_programs = [0]", "velocities = [72]")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("out", type=Path, help="a new folder")
    parser.add_argument("--rows", nargs="+", choices=rows(), default=rows(), metavar="RECIPE")
    parser.add_argument("--full-size", action="store_true")
    arguments = parser.parse_args()
    try:
        rehearse(arguments.out, arguments.rows)
        if arguments.full_size:
            print_needs(arguments.out)
    except FusiliError as error:
        sys.exit(str(error))


def rows() -> list[str]:
    """Return the recipes of both tables."""
    return [name for name in list_recipes() if name.startswith("table")]


def rehearse(out: Path, recipes: Sequence[str]) -> None:
    """Run everything, and check that each step leaves what the next one needs."""
    out.mkdir(parents=True)
    corpus = write_toy_corpus(out / "corpus", PIECES)
    recipe = out / "squares.toml"
    text = RENDERING.read_text(encoding="utf-8")
    recipe.write_text(text.replace("[audio]", "\n".join(["[audio]", *TOY_SOUND])), encoding="utf-8")
    squares = out / "squares"
    call("render", corpus, "-o", squares, "--recipe", recipe, "--jobs", "1")
    scores = {split: sorted((out / "corpus").glob(f"{split}*.musicxml"))[:1] for split in PIECES}
    split_file = write_toy_msmd(out / "msmd", scores)
    ytsv = write_toy_ytsv(out / "ytsv", squares)

    local = ["--msmd", str(out / "msmd"), "--split-file", str(split_file)]
    trained = [train_command(name, squares, out / "runs" / name, local) for name in recipes]
    first = out / "runs" / recipes[0]
    say(
        "torchrun --nproc-per-node 2 -m fusili_training",
        trained[0][1:],
        "   (killed after its first checkpoint)",
    )
    start_and_kill(trained[0], first / "last.pt")
    n_before = len(read_steps(first))
    for command in trained:
        say("torchrun --nproc-per-node 2 -m fusili_training", command[1:])
        run_on_ranks(command)
    check_runs(out / "runs", recipes, n_before)
    idle = out / "stopped-early"
    command = [*train_command(recipes[0], squares, idle, local), *overrides(LEARNS_NOTHING)]
    say("torchrun --nproc-per-node 2 -m fusili_training", command[1:])
    run_on_ranks(command)
    check_early_stop(idle)

    for name in recipes:
        call("export", out / "runs" / name / "best.pt", "-o", out / "bundles" / name)
    on = ["--on", f"msmd={out / 'msmd'}", "--on", f"pdmx={squares}", "--on", f"ytsv={ytsv}"]
    splits = ["--split", "train", "--split", "test", "--split-file", split_file]
    for table, published in TABLES.items():
        if any(row.recipe in recipes for row in published):
            call("evaluate", "--reproduce", table, out / "bundles", *on, *splits)


def train_command(name: str, squares: Path, out: Path, local: Sequence[str]) -> list[str]:
    data = ["--data", str(squares), "--out", str(out), *local]
    return ["train", name, *data, *overrides(TOY_SIZE), "--resume"]


def overrides(settings: Sequence[str]) -> list[str]:
    return [part for each in settings for part in ("--override", each)]


def check_runs(runs: Path, recipes: Sequence[str], n_before: int) -> None:
    """Raise an error unless every run validated, kept a best checkpoint, and went on where it was killed."""
    for name in recipes:
        steps = [int(row["step"]) for row in read_steps(runs / name)]
        if steps != list(range(1, len(steps) + 1)):
            raise FusiliError(f"{name}: steps {steps}; expected each once")
        validations = (runs / name / "validations.csv").read_text(encoding="utf-8").splitlines()
        if len(validations) < 2 or not (runs / name / "best.pt").is_file():
            raise FusiliError(f"{name}: no validation or no best checkpoint")
    if len(read_steps(runs / recipes[0])) <= n_before:
        raise FusiliError(f"{recipes[0]}: did not go on after it was killed")


def check_early_stop(run: Path) -> None:
    """Raise an error unless a run of four epochs ended after the second, whose validation was no better."""
    validations = read_table(run / "validations.csv")
    n_steps, last = len(read_steps(run)), int(validations[-1]["step"])
    if len(validations) != 2 or n_steps != last or n_steps != 2 * int(validations[0]["step"]):
        raise FusiliError(
            f"{run}: {n_steps} steps, {len(validations)} validations; expected to stop after two"
        )


def read_steps(run: Path) -> list[dict[str, str]]:
    return read_table(run / "steps.csv")


def read_table(filename: Path) -> list[dict[str, str]]:
    with filename.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def call(*arguments: str | Path) -> None:
    """Run a command as a person would type it."""
    texts = [str(argument) for argument in arguments]
    say("fusili-mir", texts)
    try:
        fusili_mir(texts)
    except SystemExit as end:
        if end.code:
            raise FusiliError(f"fusili-mir {texts[0]} ended with {end.code}") from end


def say(program: str, arguments: Sequence[str], more: str = "") -> None:
    print(f"$ {program} {shlex.join(arguments)}{more}", flush=True)


def print_needs(out: Path) -> None:
    """Print what the real thing takes, from the sizes that were measured here."""
    from fusili_benchmarks.gpu_needs import GpuNeeds, Workload, count_operations
    from fusili_training.model.model import ModelOptions

    folder = ShardFolder(out / "squares", "train")
    n_bytes = sum(entry.size for entry in folder.entries)
    begun = time.process_time()
    collate([folder.read(entry) for entry in folder.entries], 20 * folder.sample_rate_hz)
    seconds = time.process_time() - begun
    n_pairs = len(folder.entries)
    operations = count_operations(ModelOptions("clip-clap"))
    for line in GpuNeeds(operations, n_bytes / n_pairs / 1e3, n_pairs / seconds).lines(Workload()):
        print(line)
    print("memory of each GPU:")
    call("train", rows()[0], "--dry-run")


if __name__ == "__main__":
    main()
