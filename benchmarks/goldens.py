"""Does a change of the program leave every result as it was? Keep them before it, and compare them after it.

    python benchmarks/goldens.py keep FOLDER [--human ../shared/data/human] [--only NAME ...] [--jobs 2]
    python benchmarks/goldens.py compare FOLDER [--only NAME ...] [--jobs 2]

There are some two dozen small cases: the example as a score, an image and a PDF, other notations, pitches and
options. With --human come the performances of n-ASAP, with their scores and from page images. Their sound and
images are kept, too, in FOLDER/inputs, so that pages drawn otherwise change only the cases with scores.

All tables of a case are compared: the same rows, seconds within 1 ms, places within 0.05 px, probabilities within
0.001, the rest equal. What differs is printed as a table, and the command ends with 1.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator, Sequence
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
        if arguments.what == "keep":
            is_right = keep(cases, folder, arguments.force, pool)
        else:
            kept = {file.stem for file in folder.glob("*.npz") if any(part in file.stem for part in only)}
            is_right = compare(cases, folder, kept, pool)
    sys.exit(not is_right)


def keep(cases: Sequence[Case], folder: Path, force: bool, pool: ProcessPoolExecutor) -> bool:
    """Align cases, write what comes out, and return whether all could be aligned."""
    there = [case.name for case in cases if golden_file(folder, case.name).exists()]
    if there and not force:
        sys.exit(
            f"{folder}: holds {', '.join(there)}; add --force to replace them, or keep in another folder"
        )
    folder.mkdir(parents=True, exist_ok=True)
    is_right = True
    for case, found in _aligned(cases, pool):
        if isinstance(found, str):
            is_right = False
            print(f"{case.name}: {found}", file=sys.stderr)
        else:
            save_tables(found, golden_file(folder, case.name))
    return is_right


def compare(cases: Sequence[Case], folder: Path, kept: set[str], pool: ProcessPoolExecutor) -> bool:
    """Align cases, print how they differ from what was kept, and return whether none does."""
    print("| case | table | column | rows that differ | largest difference |")
    print("| --- | --- | --- | --- | --- |")
    n_equal, n_close, missing = 0, 0, kept ^ {case.name for case in cases}
    for name in sorted(missing):
        print(f"| {name} | {'there is no such case' if name in kept else 'was not kept'} | | | |")
    for case, found in _aligned([case for case in cases if case.name in kept], pool):
        before, known = load_tables(golden_file(folder, case.name))
        if isinstance(found, str):
            print(f"| {case.name} | {found} | | | |", flush=True)
            continue
        if checksum(found) == known:
            n_equal += 1
            continue
        differences = compare_tables(before, found)
        n_close += not differences
        for each in differences:
            largest = "" if each.largest is None else f"{each.largest:.3g}"
            print(f"| {case.name} | {each.table} | {each.column} | {each.n_rows} | {largest} |", flush=True)
    n_other = len(missing | kept) - n_equal - n_close
    print(f"\n{n_equal} cases are the same byte by byte, {n_close} within the tolerances, {n_other} are not.")
    return n_other == 0


def golden_file(folder: Path, name: str) -> Path:
    """Return the file in which a case is kept."""
    return folder / f"{name}.npz"


def _aligned(cases: Sequence[Case], pool: ProcessPoolExecutor) -> Iterator[tuple[Case, Tables | str]]:
    """Yield each case with its tables, or with why there are none; print what it cost."""
    for case, (found, cpu_sec) in zip(cases, pool.map(_align, cases), strict=True):
        print(f"{case.name}: {cpu_sec:.1f} CPU s", file=sys.stderr, flush=True)
        yield case, found


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
