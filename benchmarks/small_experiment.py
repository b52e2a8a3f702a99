"""The small experiment: runs that differ only in their loss, on segments of pieces that training never saw.

    python benchmarks/small_experiment.py SHARDS RUNS [--split test] [--details FILE]
    python benchmarks/small_experiment.py SHARDS small-hybrid=CHECKPOINT 'my loss=BUNDLE'

RUNS is a folder of runs of `fusili-mir train` with the recipes of this experiment; other runs in it are skipped.
The last step of each run is judged, not the best one in validation: all have one budget. Each run is first
exported to a bundle; an existing bundle can be given in place of a checkpoint.

SHARDS is rendered with `training/recipes/render/strips-held-out.toml`. Only segments like the training pairs are
used: those in the recipe's layout and within its duration limit. Retrieval is among 400 of them, those with the
smallest hash of their key. The table of docs/reproduction.md goes to stdout, everything else to stderr.

Look at the split valid as often as you like, and at test once.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import torch

from fusili_benchmarks.experiment_table import (
    ExperimentRow,
    format_experiment,
    measure_run,
    training_of,
)
from fusili_benchmarks.kept_pairs import KeptPairs
from fusili_export.checkpoints import load_trained
from fusili_export.exporting import export_bundle
from fusili_mir.errors import FusiliError, InputError
from fusili_mir.model.bundle import Bundle, load_bundle
from fusili_mir.model.encoder import Encoder
from fusili_training.evaluation.tables import format_report
from fusili_training.loop.checkpoint import load_checkpoint

ROWS = {
    "small-global": "global only, alpha 0",
    "small-hybrid": "FuSiLi hybrid, alpha 0.5",
    "small-local": "FuSiLi only, alpha 1",
    "small-cosine": "cosine hybrid, alpha 0.5",
    "small-supervised": "FuSiLi hybrid and note positions, as in the model that ships",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("shards", type=Path)
    parser.add_argument("runs", nargs="+", metavar="RUNS")
    parser.add_argument("--split", choices=["valid", "test"], default="test")
    parser.add_argument("--candidates", type=int, default=400, help="segments that retrieval chooses from")
    parser.add_argument("--details", type=Path, metavar="FILE", help="every number with its interval, as CSV")
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    if arguments.details and not arguments.details.parent.is_dir():
        parser.error(f"{arguments.details}: its folder does not exist")
    torch.set_num_threads(arguments.threads)
    try:
        checkpoints = find_checkpoints(arguments.runs)
        with tempfile.TemporaryDirectory() as scratch:
            bundles = {name: open_bundle(name, path, Path(scratch)) for name, path in checkpoints.items()}
            source = open_segments(arguments.shards, arguments.split, bundles)
            rows = [measure(name, bundle, source, arguments) for name, bundle in bundles.items()]
        print(format_experiment(rows))
        print(
            f"\n{len(source)} segments of {len(source.pieces)} {arguments.split} pieces; "
            f"retrieval among {min(arguments.candidates, len(source))}."
        )
        if arguments.details:
            arguments.details.write_text(details(rows), encoding="utf-8")
    except FusiliError as error:
        sys.exit(str(error))


def find_checkpoints(runs: Sequence[str]) -> dict[str, Path]:
    """Return name -> checkpoint or bundle, in the order of the table."""
    found: dict[str, Path] = {}
    for run in runs:
        name, separator, path = run.partition("=")
        for recipe, checkpoint in [(name, Path(path))] if separator else list_runs(Path(run)):
            if recipe in found:
                raise InputError(f"{checkpoint} and {found[recipe]} are both of {recipe}; expected one")
            found[recipe] = checkpoint
    order = [*ROWS, *(name for name in found if name not in ROWS)]
    return {name: found[name] for name in order if name in found}


def list_runs(folder: Path) -> list[tuple[str, Path]]:
    named = [(load_checkpoint(path).recipe.name, path) for path in sorted(folder.glob("*/last.pt"))]
    runs = [(name, path) for name, path in named if name in ROWS]
    if not runs:
        raise InputError(f"{folder}: no run with a last.pt of the recipes {', '.join(ROWS)}")
    return runs


def open_bundle(name: str, path: Path, scratch: Path) -> Bundle:
    if path.is_dir():
        return load_bundle(path)
    print(f"exporting {path}", file=sys.stderr, flush=True)
    folder = scratch / f"{len(list(scratch.iterdir()))}"
    export_bundle(load_trained(path), folder)
    return load_bundle(folder)


def open_segments(shards: Path, split: str, bundles: dict[str, Bundle]) -> KeptPairs:
    """Read the segments that are like the training pairs of all runs."""
    data = {name: training_of(bundle.manifest)["data"] for name, bundle in bundles.items()}
    kinds = {(each["layout"], each["max_duration_sec"]) for each in data.values()}
    if len(kinds) > 1:
        raise InputError(f"runs that were trained on different pairs: {sorted(kinds)}; expected one kind")
    ((layout, max_duration_sec),) = kinds
    return KeptPairs(shards, split, layout, max_duration_sec)


def measure(name: str, bundle: Bundle, source: KeptPairs, arguments: argparse.Namespace) -> ExperimentRow:
    begin = time.process_time()
    encoder = Encoder(bundle, n_threads=arguments.threads)
    row = measure_run(ROWS.get(name, name), encoder, source, arguments.candidates, progress=True)
    print(f"{name}: {time.process_time() - begin:.0f} CPU s", file=sys.stderr, flush=True)
    return row


def details(rows: Sequence[ExperimentRow]) -> str:
    tables = [format_report(row.report, "csv").splitlines() for row in rows]
    return "\n".join([tables[0][0], *(line for table in tables for line in table[1:])]) + "\n"


if __name__ == "__main__":
    main()
