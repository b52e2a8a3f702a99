"""What importing each room costs, beside numpy: the median of fresh processes, in seconds.

python benchmarks/import_time.py [--runs 7]
"""

from __future__ import annotations

import argparse
import pkgutil
import statistics
import subprocess
import sys
from importlib import import_module

import fusili_mir

BESIDE = ("numpy", "fusili_mir")
SKIPPED = {"fusili_mir.pages.skia_raster"}  # for training only
TIMED = "import time; start = time.perf_counter(); {imports}; print(time.perf_counter() - start)"


def modules_of(room: str) -> list[str]:
    package = import_module(f"fusili_mir.{room}")
    names = [module.name for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")]
    return [package.__name__, *(name for name in names if name not in SKIPPED)]


def median_sec(modules: list[str], n_runs: int) -> float:
    code = TIMED.format(imports="; ".join(f"import {name}" for name in modules))
    times = [
        float(subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True).stdout)
        for _ in range(n_runs)
    ]
    return statistics.median(times)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=7)
    n_runs = parser.parse_args().runs
    rooms = [module.name for module in pkgutil.iter_modules(fusili_mir.__path__) if module.ispkg]
    print("| import | modules | s | beyond numpy |\n| --- | --- | --- | --- |")
    numpy_sec = median_sec(["numpy"], n_runs)
    for name in BESIDE:
        print(f"| {name} | 1 | {median_sec([name], n_runs):.2f} | |")
    for room in rooms:
        modules = modules_of(room)
        seconds = median_sec(modules, n_runs)
        print(f"| fusili_mir.{room} | {len(modules)} | {seconds:.2f} | {seconds - numpy_sec:+.2f} |")


if __name__ == "__main__":
    main()
