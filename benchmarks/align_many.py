"""How `align-many` grows: pairs an hour with one process and two, and memory at the first and the last pairs.

    python benchmarks/align_many.py --pairs 48 --rounds 4

The pairs are stretches of the example's recording with its score and with its page, divided into rounds. Each
round is aligned with one process and then with two, on the same machine, so that what else runs there weighs on
both. A run has as many cores as it has processes, where the system can say so (Linux): with more, one process
would use some of them, too. Where the machine is busy, wall times say little: "cores" is how many the run had, on
average, from processor time. What processes themselves cost is in "CPU s a pair": if it does not grow with their
number, two do twice as much where two cores are free. MB are of the largest worker: the medians of the first and
of the last third of a round.
"""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from fusili_mir import align_many
from fusili_mir.demo.example import load_example


@dataclass
class Totals:
    """What the runs with a number of processes took together."""

    wall_sec: float = 0.0
    cpu_sec: float = 0.0
    n_pairs: int = 0
    n_failed: int = 0
    early_mb: list[int] = field(default_factory=list)  # of the largest worker, in each round
    late_mb: list[int] = field(default_factory=list)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--pairs", type=int, default=48)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--jobs", type=int, nargs="+", default=[1, 2])
    arguments = parser.parse_args()
    example = load_example()
    pairs = []
    for number in range(arguments.pairs):
        score = example.score if number % 4 else example.page  # three scores of notes for one of images
        start_sec = number * 7 % 25
        pairs.append((score, example.recording, f"--start {start_sec} --end {start_sec + 30}"))
    totals = {jobs: Totals() for jobs in arguments.jobs}
    for turn in range(arguments.rounds):
        for jobs, total in totals.items():
            run(pairs[turn :: arguments.rounds], jobs, total)
    print(
        "| processes | pairs | failed | wall time, s | CPU s a pair | cores | pairs an hour | MB at first, last |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for jobs, total in totals.items():
        cells = [
            *(str(jobs), str(total.n_pairs), str(total.n_failed), f"{total.wall_sec:.0f}"),
            f"{total.cpu_sec / total.n_pairs:.2f}",
            f"{total.cpu_sec / total.wall_sec:.2f}",
            f"{3600 * total.n_pairs / total.wall_sec:.0f}",
            f"{max(total.early_mb)}, {max(total.late_mb)}",
        ]
        print(f"| {' | '.join(cells)} |")
    first, last = totals[arguments.jobs[0]], totals[arguments.jobs[-1]]
    print(f"\nwall time: {first.wall_sec / last.wall_sec:.2f} times as fast")
    print(f"CPU time: {first.cpu_sec / last.cpu_sec:.2f} times as much work in a second of a core")


def run(pairs: list[tuple[Path, Path, str]], jobs: int, total: Totals) -> None:
    """Align pairs, and add what it took."""
    folder = Path(tempfile.mkdtemp())
    memory = MemoryOfWorkers()
    with on_cores(jobs):
        start_sec, start_cpu_sec = time.perf_counter(), cpu_sec()
        reports = align_many(pairs, folder / "out", jobs=jobs, formats=["json"])
        total.wall_sec += time.perf_counter() - start_sec
        total.cpu_sec += cpu_sec() - start_cpu_sec
    total.n_pairs += len(reports)
    total.n_failed += sum(report.status == "failed" for report in reports)
    memory.stop()
    early_mb, late_mb = memory.thirds()
    total.early_mb.append(early_mb)
    total.late_mb.append(late_mb)
    shutil.rmtree(folder)


@contextmanager
def on_cores(number: int) -> Iterator[None]:
    """Let this process, and those that it starts, use a number of cores, if the system can say so."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    all_cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, sorted(all_cores)[:number])
    try:
        yield
    finally:
        os.sched_setaffinity(0, all_cores)


def cpu_sec() -> float:
    """Return the processor time of this process and of the workers that have ended."""
    return sum(os.times()[:4])


class MemoryOfWorkers:
    """The largest resident memory of a worker, sampled twice a second (Linux)."""

    def __init__(self) -> None:
        self._samples: list[int] = []
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._sample)
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        self._thread.join()

    def thirds(self) -> tuple[int, int]:
        """Return the median in the first and in the last third of the run, in MB; peaks come and go."""
        third = max(1, len(self._samples) // 3)
        parts = (self._samples[:third], self._samples[-third:])
        early_mb, late_mb = (round(median(part)) if part else 0 for part in parts)
        return early_mb, late_mb

    def _sample(self) -> None:
        while not self._stopped.wait(0.5):
            found = [_resident_mb(int(pid)) for pid in _children()]
            if found:
                self._samples.append(max(found))


def _children() -> list[str]:
    return [pid for file in Path("/proc/self/task").glob("*/children") for pid in file.read_text().split()]


def _resident_mb(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) // 1024 for line in lines if line.startswith("VmRSS")), 0)


if __name__ == "__main__":
    main()
