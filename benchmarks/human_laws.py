"""How people play: the laws of timing, voicing and pedalling that rendered performances follow.

    python benchmarks/human_laws.py ../shared/data/human

Measures each match file of n-ASAP (CC BY-NC-SA: laws are taken from it, no data), and prints the 10th, 50th and
90th percentile over performances. `training/recipes/render/world.toml` has limits near the 90th.
"""

from __future__ import annotations

import argparse
from dataclasses import astuple, fields
from pathlib import Path

import numpy as np

from fusili_benchmarks.hand_laws import Laws, PedalUse, measure_laws, read_pedal, read_played

PERCENTILES = (10, 50, 90)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder", type=Path)
    arguments = parser.parse_args()
    files = sorted(arguments.folder.glob("*.match"))
    if not files:
        parser.error(f"{arguments.folder}: no match files; expected those of n-ASAP")
    rows = [(*astuple(measure_laws(read_played(file))), *astuple(read_pedal(file))) for file in files]
    names = [field.name for kind in (Laws, PedalUse) for field in fields(kind)]
    print(f"{len(files)} performances\n\n| law |" + "".join(f" {p} % |" for p in PERCENTILES))
    print("|" + " --- |" * (1 + len(PERCENTILES)))
    for name, values in zip(names, np.array(rows).T, strict=True):
        levels = np.nanpercentile(values, PERCENTILES)
        print(f"| {name} |" + "".join(f" {level:.3f} |" for level in levels))


if __name__ == "__main__":
    main()
