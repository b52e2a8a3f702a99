"""How fast do piano pages come out: engraved, drawn and with all boxes? skia against resvg, in one run.

    python benchmarks/engraving_speed.py [--corpus ../shared/data] [--pieces 24]

The voice of each song is left out, so that pages are piano pages; 8 pixels a staff space, as for training.
"""

from __future__ import annotations

import argparse
import csv
import os
import time
from collections import defaultdict
from pathlib import Path

from fusili_mir.pages.engraving import EngravingOptions, engrave
from fusili_mir.pages.raster import rasterise
from fusili_mir.scores.score_file import ScoreFile, read_score_file

RASTERISERS = ("skia", "resvg")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--corpus", type=Path, default=Path("../shared/data"))
    parser.add_argument("--pieces", type=int, default=24)
    arguments = parser.parse_args()
    os.sched_setaffinity(
        0, {next(iter(os.sched_getaffinity(0)))}
    )  # one core; the Verovio process inherits it
    with (arguments.corpus / "manifest.csv").open() as manifest:
        pieces = [row for row in csv.DictReader(manifest) if row["instrumentation"] == "Voice;Piano"]
    options = EngravingOptions(staff_space_px=8)
    seconds: dict[str, float] = defaultdict(float)
    n_pages = n_notes = 0
    for piece in pieces[:: max(1, len(pieces) // arguments.pieces)][: arguments.pieces]:
        score_file = piano_alone(read_score_file(arguments.corpus / piece["file"]))
        start = time.perf_counter()
        engraving = engrave(score_file, options)
        seconds["engrave"] += time.perf_counter() - start
        for svg in engraving.svgs:
            for rasteriser in RASTERISERS:
                start = time.perf_counter()
                rasterise(svg, rasteriser)
                seconds[rasteriser] += time.perf_counter() - start
        n_pages += len(engraving.svgs)
        n_notes += len(engraving.notes)
    print(f"{n_pages} piano pages, {n_notes} notes, one core, wall time\n")
    print("| | engraving and boxes, ms a page | drawing, ms a page | pages a second |")
    print("| --- | --- | --- | --- |")
    for rasteriser in RASTERISERS:
        total = seconds["engrave"] + seconds[rasteriser]
        print(
            f"| {rasteriser} | {1000 * seconds['engrave'] / n_pages:.0f} "
            f"| {1000 * seconds[rasteriser] / n_pages:.0f} | {n_pages / total:.1f} |"
        )
    print(f"\nskia draws {seconds['resvg'] / seconds['skia']:.1f} times as fast as resvg")


def piano_alone(score_file: ScoreFile) -> ScoreFile:
    """Leave out all parts but the last one."""
    for parent, tag in ((score_file.root.find("part-list"), "score-part"), (score_file.root, "part")):
        for part in parent.findall(tag)[:-1]:
            parent.remove(part)
    return score_file


if __name__ == "__main__":
    main()
