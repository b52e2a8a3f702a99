"""Damaged files against every reader: how many end with a traceback, a crash, a hang, or too much memory?

    OMP_NUM_THREADS=1 python benchmarks/fuzz.py --cases 10000 --seed 1
    python benchmarks/fuzz.py --cases 10000 --seed 1 --from 5000    # its second half
    python benchmarks/fuzz.py --reader mxl --reader mei --keep failures

Whole files are made on the spot and damaged by rules that suit their format. Each case is read in a process
of its own with limits: 10 CPU seconds and 2 GB. What fails is shrunk and kept, to become a test.
"""

from __future__ import annotations

import argparse
import random
import signal
import sys
import tempfile
from collections import Counter, defaultdict
from pathlib import Path

from fusili_benchmarks.fuzzed_reader import FuzzedReader
from fusili_benchmarks.fuzzed_readers import make_seeds
from fusili_benchmarks.guarded_case import Outcome, run_guarded
from fusili_benchmarks.mutations import mutate, shrink


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--from", dest="first", type=int, default=0, help="leave out the cases before this one"
    )
    parser.add_argument("--reader", action="append", help="only this reader; may be repeated")
    parser.add_argument("--keep", type=Path, help="folder for what fails, shrunk")
    arguments = parser.parse_args()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # which a shell may have disabled
    with tempfile.TemporaryDirectory() as name:
        readers = make_seeds(Path(name) / "seeds", folders=True)
        if arguments.reader:
            readers = [reader for reader in readers if reader.name in arguments.reader]
        chosen = range(arguments.first, arguments.cases)
        failures = fuzz(readers, chosen, arguments.seed, Path(name), arguments.keep)
    sys.exit(1 if failures else 0)


def fuzz(readers: list[FuzzedReader], chosen: range, seed: int, folder: Path, keep: Path | None) -> int:
    rng = random.Random(seed)
    endings: dict[str, Counter[str]] = defaultdict(Counter)
    worst: dict[str, tuple[float, float]] = defaultdict(lambda: (0.0, 0.0))
    seen: set[str] = set()
    for number in range(chosen.stop):
        (reader,) = rng.choices(readers, [each.weight for each in readers])
        data = mutate(reader.seed.read_bytes(), reader.kind, rng)
        if number not in chosen:
            continue
        try:
            outcome = _try(reader, data, folder)
        except KeyboardInterrupt:
            break  # and tell what was found so far
        endings[reader.name][outcome.ending] += 1
        cpu_sec, resident_mb = worst[reader.name]
        worst[reader.name] = max(cpu_sec, outcome.cpu_sec), max(resident_mb, outcome.resident_mb)
        if not outcome.is_good and (label := f"{reader.name}: {outcome.ending}: {outcome.text}") not in seen:
            seen.add(label)
            print(f"case {number}: {label}", file=sys.stderr, flush=True)
            if keep is not None:
                _keep(reader, data, outcome, folder, keep, number)
    print(
        "| reader | cases | read | refused | tracebacks | crashes | memory | hangs | most CPU s | most MB |"
    )
    print("| --- " * 10 + "|")
    for name, counts in sorted(endings.items()):
        numbers = [counts[each] for each in ("read", "refused", "traceback", "crash", "memory", "hang")]
        cells = " | ".join(map(str, numbers))
        cpu_sec, resident_mb = worst[name]
        print(f"| {name} | {counts.total()} | {cells} | {cpu_sec:.1f} | {resident_mb:.0f} |")
    bad = sum(counts.total() - counts["read"] - counts["refused"] for counts in endings.values())
    print(f"\n{sum(counts.total() for counts in endings.values())} cases, {bad} failures")
    return bad


def _try(reader: FuzzedReader, data: bytes, folder: Path) -> Outcome:
    file = folder / f"case{reader.seed.suffix}"
    file.write_bytes(data)
    return run_guarded(reader.read, file)


def _keep(reader: FuzzedReader, data: bytes, outcome: Outcome, folder: Path, keep: Path, number: int) -> None:
    def still_fails(less: bytes) -> bool:
        again = _try(reader, less, folder)
        return (again.ending, again.text.split(":")[0]) == (outcome.ending, outcome.text.split(":")[0])

    keep.mkdir(parents=True, exist_ok=True)
    small = shrink(data, still_fails) if outcome.ending != "hang" else data
    (keep / f"{reader.name}-{outcome.ending}-{number}{reader.seed.suffix}").write_bytes(small)


if __name__ == "__main__":
    main()
