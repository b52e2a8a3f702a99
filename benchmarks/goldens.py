"""Does a change of the program leave every result as it was? Keep them before it, and compare them after it.

    python benchmarks/goldens.py keep FOLDER [--human ../shared/data/human] [--only NAME ...] [--jobs 2]
    python benchmarks/goldens.py compare FOLDER [--only NAME ...] [--jobs 2]

There are some two dozen small cases: the example as a score, an image and a PDF, other notations, pitches and
options. With --human come the performances of n-ASAP, with their scores and from page images. Their sound and
images are kept, too, in FOLDER/inputs, so that pages drawn otherwise change only the cases with scores.

All tables of a case are compared: the same rows, seconds within 1 ms, places within 0.05 px, probabilities within
0.001, the rest equal. What differs is printed as a table, and the command ends with 1. The last line counts the
cases that are equal byte by byte, those that are close, and those that are different.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path

for library in ("OMP", "OPENBLAS", "MKL"):  # before numpy is imported
    os.environ.setdefault(f"{library}_NUM_THREADS", "1")

# ruff: noqa: E402
from fusili_benchmarks.golden_cases import Case, align_case, human_cases, make_human_inputs, small_cases
from fusili_benchmarks.golden_tables import Tables, checksum, compare_tables, load_tables, save_tables


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("keep", "compare"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--human", type=Path, help="folder of performances to keep, too")
    parser.add_argument("--soundfont", type=Path, default=Path("/usr/share/sounds/sf2/TimGM6mb.sf2"))
    parser.add_argument("--only", nargs="+", default=[""], help="names of cases, or parts of them")
    parser.add_argument("--jobs", type=int, default=1, help="number of processes")
    parser.add_argument("--force", action="store_true", help="replace what is kept")
    arguments = parser.parse_args()
    folder, inputs, only = arguments.folder, arguments.folder / "inputs", arguments.only
    with (
        tempfile.TemporaryDirectory() as made,
        ProcessPoolExecutor(arguments.jobs, get_context("spawn")) as pool,
    ):
        if arguments.what == "keep" and arguments.human is not None:
            stems = [file.with_suffix("") for file in sorted(arguments.human.glob("*.match"))]
            stems = [stem for stem in stems if any(part in f"{stem.name}-score" for part in only)]
            stems = [stem for stem in stems if arguments.force or not (inputs / stem.name).exists()]
            list(pool.map(partial(make_human_inputs, soundfont=arguments.soundfont, folder=inputs), stems))
        cases = [*small_cases(Path(made)), *human_cases(inputs)]
        cases = [case for case in cases if any(part in case.name for part in only)]
        kept = {file.stem for file in folder.glob("*.npz") if any(part in file.stem for part in only)}
        known = kept & {case.name for case in cases}
        if arguments.what == "compare":
            if not kept:
                sys.exit(f"{folder}: no such case is kept; expected files NAME.npz")
            chosen = [case for case in cases if case.name in known]
            is_right = compare(folder, sorted(kept), aligned(chosen, pool))
        else:
            if known and not arguments.force:
                sys.exit(f"{folder}: holds {', '.join(sorted(known))}; add --force to replace what is there")
            is_right = keep(folder, aligned(cases, pool))
    sys.exit(not is_right)


def keep(folder: Path, found: Iterable[tuple[str, Tables | str]]) -> bool:
    """Write the tables of cases, and return whether all could be aligned."""
    folder.mkdir(parents=True, exist_ok=True)
    is_right = True
    for name, tables in found:
        if isinstance(tables, str):
            is_right = False
        else:
            save_tables(tables, golden_file(folder, name))
    return is_right


def compare(folder: Path, kept: Sequence[str], found: Iterable[tuple[str, Tables | str]]) -> bool:
    """Print how the tables of cases differ from those that were kept, and return whether none does."""
    print("| case | table | column | rows that differ | largest difference |")
    print("| --- | --- | --- | --- | --- |")
    counts, left = Counter[str](), set(kept)
    for name, tables in found:
        if isinstance(tables, str):
            outcome, rows = "different", [f"{tables} | | |"]
        else:
            outcome, rows = _compare(golden_file(folder, name), tables)
        left.discard(name)
        counts[outcome] += 1
        for row in rows:
            print(f"| {name} | {row} |", flush=True)
    for name in sorted(left):
        print(f"| {name} | (no such case) | | | |")
    counts["different"] += len(left)
    print(f"\n{', '.join(f'{counts[outcome]} {outcome}' for outcome in ('equal', 'close', 'different'))}")
    return not counts["different"]


def _compare(file: Path, tables: Tables) -> tuple[str, list[str]]:
    kept, known = load_tables(file)
    if checksum(tables) == known:
        return "equal", []
    differences = compare_tables(kept, tables)
    return "different" if differences else "close", [each.row for each in differences]


def golden_file(folder: Path, name: str) -> Path:
    """Return the file in which a case is kept."""
    return folder / f"{name}.npz"


def aligned(cases: Sequence[Case], pool: ProcessPoolExecutor) -> Iterator[tuple[str, Tables | str]]:
    """Yield the name of each case with its tables, or with why there are none; print what its process took."""
    for case, (found, cpu_sec) in zip(cases, pool.map(_align, cases), strict=True):
        print(f"{case.name}: {cpu_sec:.1f} CPU s", file=sys.stderr, flush=True)
        yield case.name, found


def _align(case: Case) -> tuple[Tables | str, float]:
    start_sec = time.process_time()
    found: Tables | str
    try:
        found = align_case(case)
    except Exception as error:  # noqa: BLE001 (the other cases are wanted all the same)
        traceback.print_exc()
        found = f"{type(error).__name__}: {error}"
    return found, time.process_time() - start_sec


if __name__ == "__main__":
    main()
