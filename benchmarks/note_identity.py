"""Do the notes keep their identity? Share of printed notes that have a box, and of boxes that hold ink.

    python benchmarks/note_identity.py [--corpus ../shared/data] [--pieces 320]

A note counts as printed unless the file says otherwise (print-object="no", notehead "none").
"""

from __future__ import annotations

import argparse
import csv
import random
import time
from pathlib import Path

import numpy as np

from fusili_mir.pages.engraving import EngravingOptions
from fusili_mir.pages.pages import render_pages
from fusili_mir.scores.score_file import read_score_file

INK = 128


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--corpus", type=Path, default=Path("../shared/data"))
    parser.add_argument("--pieces", type=int, default=320)
    parser.add_argument("--rasteriser", default="auto")
    arguments = parser.parse_args()
    with (arguments.corpus / "manifest.csv").open() as manifest:
        pieces = [row for row in csv.DictReader(manifest) if row["format"] == "mxl"]
    random.Random(0).shuffle(pieces)
    n_notes = n_boxed = n_inked = n_pages = n_failed = 0
    start = time.process_time()
    fonts = ("Leipzig", "Bravura", "Leland", "Gootville", "Petaluma")
    for number, piece in enumerate(pieces[: arguments.pieces]):
        score_file = read_score_file(arguments.corpus / piece["file"])
        printed = {
            str(note.get("id"))
            for note in score_file.notes()
            if note.get("print-object") != "no" and note.findtext("notehead") != "none"
        }
        try:
            options = EngravingOptions(font=fonts[number % len(fonts)])
            pages = render_pages(score_file, options, rasteriser=arguments.rasteriser)
        except Exception as error:  # noqa: BLE001 - a benchmark reports what fails and goes on
            n_failed += 1
            print("failed:", piece["id"], error)
            continue
        heads = pages.notes[np.isin(pages.notes["notated_id"], list(printed))]
        n_notes += len(printed)
        n_boxed += len(set(heads["notated_id"].tolist()))
        for page, image in enumerate(pages.images):
            n_inked += sum(_holds_ink(image, head) for head in heads[heads["page"] == page])
        n_pages += len(pages.images)
        missing = printed - set(heads["notated_id"].tolist())
        if missing:
            print(piece["id"], "without a box:", sorted(missing)[:8], len(missing), "of", len(printed))
    seconds = time.process_time() - start
    print("\n| pieces | failed | pages | printed notes | with a box | boxes with ink | pages / s of CPU |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    print(
        f"| {arguments.pieces} | {n_failed} | {n_pages} | {n_notes} | {n_boxed / n_notes:.4%} "
        f"| {n_inked / n_boxed:.4%} | {n_pages / seconds:.2f} |"
    )


def _holds_ink(image: np.ndarray, head: np.void) -> bool:
    y0, y1 = int(np.floor(head["y0"])), int(np.ceil(head["y1"]))
    x0, x1 = int(np.floor(head["x0"])), int(np.ceil(head["x1"]))
    return bool((image[y0:y1, x0:x1] < INK).any())


if __name__ == "__main__":
    main()
