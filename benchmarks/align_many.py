"""How `align-many` grows: pairs an hour with one process and two, and memory at the first and the last pairs.

    python benchmarks/align_many.py --pairs 200

The pairs are stretches of the example's recording with its score and with its page. Both runs follow each other
on the same machine; the ratio of their wall times counts, not the times.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import threading
import time
from pathlib import Path

from fusili_mir import align_many
from fusili_mir.demo.example import load_example


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--pairs", type=int, default=100)
    parser.add_argument("--jobs", type=int, nargs="+", default=[1, 2])
    arguments = parser.parse_args()
    example = load_example()
    pairs = []
    for number in range(arguments.pairs):
        score = example.score if number % 4 else example.page  # three scores of notes for one of images
        start_sec = number * 7 % 25
        pairs.append((score, example.recording, f"--start {start_sec} --end {start_sec + 30}"))
    print("| processes | pairs | wall time, s | pairs an hour | MB at first | MB at last | failed |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    walls = []
    for jobs in arguments.jobs:
        folder = Path(tempfile.mkdtemp())
        memory = MemoryOfWorkers()
        start_sec = time.perf_counter()
        reports = align_many(pairs, folder / "out", jobs=jobs, formats=["json", "notes"])
        walls.append(time.perf_counter() - start_sec)
        memory.stop()
        early, late = memory.thirds()
        failed = sum(report.status == "failed" for report in reports)
        an_hour = 3600 * len(reports) / walls[-1]
        print(f"| {jobs} | {len(reports)} | {walls[-1]:.0f} | {an_hour:.0f} | {early} | {late} | {failed} |")
        shutil.rmtree(folder)
    print(
        f"\n{arguments.jobs[-1]} processes: {walls[0] / walls[-1]:.2f} times as fast as {arguments.jobs[0]}"
    )


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
        """Return the most in the first and in the last third of the run, in MB."""
        third = max(1, len(self._samples) // 3)
        return max(self._samples[:third], default=0), max(self._samples[-third:], default=0)

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
