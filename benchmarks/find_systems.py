"""Finding systems on degraded engraved pages: precision and recall at an IoU of 0.7.

    python benchmarks/find_systems.py [--corpus ../shared/data] [--pages 240] [--split valid] [--seed 0]

Songs are engraved as a whole (voice and piano), as piano alone and as voice alone, quartets as a whole, in five
fonts and with staff spaces of 5 to 30 px. Every page is rotated by up to 3 degrees, blurred, shaded, compressed
and given a grain; then it is deskewed and searched as `load_pages` does it, and compared in pixels of the
deskewed page.
"""

from __future__ import annotations

import argparse
import copy
import csv
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from fusili_mir.arrays import GreyImage, Table
from fusili_mir.errors import FusiliError
from fusili_mir.pages.engraving import EngravingOptions, engrave
from fusili_mir.pages.raster import rasterise
from fusili_mir.pages.skew import Skew, deskew_page, estimate_skew
from fusili_mir.pages.systems import find_systems
from fusili_mir.scores.score_file import ScoreFile, read_score_file
from fusili_training.rendering.degrade import Degradation

FONTS = ("Leipzig", "Bravura", "Leland", "Petaluma", "Gootville")
LAYOUTS = ("song", "piano", "voice", "song", "piano", "voice", "song", "piano", "voice", "quartet")
PAGES_PER_PIECE = 2
MIN_IOU = 0.7


@dataclass
class Tally:
    """Counts of one group of pages."""

    n_pages: int = 0
    n_known: int = 0
    n_found: int = 0
    n_right: int = 0
    n_right_staves: int = 0
    seconds: float = 0.0

    def row(self, name: str) -> str:
        precision, recall = self.n_right / max(self.n_found, 1), self.n_right / max(self.n_known, 1)
        staves = self.n_right_staves / max(self.n_right, 1)
        seconds = self.seconds / max(self.n_pages, 1)
        return (
            f"| {name} | {self.n_pages} | {self.n_known} | {precision:.4f} | {recall:.4f} "
            f"| {staves:.4f} | {seconds:.2f} |"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--corpus", type=Path, default=Path("../shared/data"))
    parser.add_argument("--pages", type=int, default=240)
    parser.add_argument("--split", default="valid")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--strength", type=float, default=1.0, help="strength of the degradation, 0 to 1")
    arguments = parser.parse_args()
    rng = np.random.default_rng(arguments.seed)
    tallies: dict[str, Tally] = defaultdict(Tally)
    for layout, font, space_px, image, known in engraved_pages(arguments.corpus, arguments.split, rng):
        degradation = Degradation.draw(rng, arguments.strength)
        size = "5-8 px" if space_px < 8 else "8-16 px" if space_px < 16 else "16-30 px"
        degraded = degradation.apply(image, rng)
        start = time.process_time()
        skew_deg = estimate_skew(degraded)
        layout_found = find_systems(deskew_page(degraded, skew_deg))
        seconds = time.process_time() - start
        known = move(known, degradation, Skew(skew_deg, image.shape[1], image.shape[0]))
        pairs = match(known, layout_found.systems)
        for name in ("all", layout, font, size):
            tally = tallies[name]
            tally.n_pages += 1
            tally.n_known += len(known)
            tally.n_found += len(layout_found.systems)
            tally.n_right += len(pairs)
            tally.n_right_staves += sum(
                known["n_staves"][i] == layout_found.systems["n_staves"][j] for i, j in pairs
            )
            tally.seconds += seconds
        if len(pairs) < max(len(known), len(layout_found.systems)):
            found = layout_found.systems["n_staves"].tolist()
            print(
                f"{layout} {font} {space_px:.1f} px: {known['n_staves'].tolist()} -> {found}, {degradation}"
            )
        if tallies["all"].n_pages >= arguments.pages:
            break
    print("\n| pages | n | systems | precision | recall | right number of staves | CPU s per page |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for name, tally in tallies.items():
        print(tally.row(name))


def engraved_pages(
    corpus: Path, split: str, rng: np.random.Generator
) -> Iterator[tuple[str, str, float, GreyImage, Table]]:
    """Yield layout, font, staff space in px, clean page and known systems, endlessly."""
    with (corpus / "manifest.csv").open() as manifest:
        pieces = [row for row in csv.DictReader(manifest) if row["format"] == "mxl" and row["split"] == split]
    songs = [corpus / row["file"] for row in pieces if "lieder" in row["file"]]
    quartets = [corpus / row["file"] for row in pieces if "quartets" in row["file"]]
    quartets.sort(key=lambda filename: filename.stat().st_size)  # long ones take half a minute each
    number = 0
    while True:
        layout, font = LAYOUTS[number % len(LAYOUTS)], FONTS[number % len(FONTS)]
        if layout == "quartet" and quartets:
            filename = quartets[int(rng.integers(min(4, len(quartets))))]
        else:
            filename = songs[int(rng.integers(len(songs)))]
        number += 1
        space_px = float(np.exp(rng.uniform(np.log(5), np.log(30))))
        options = EngravingOptions(
            font=font, staff_space_px=space_px, staff_height_mm=float(rng.uniform(5, 9)), breaks="auto"
        )
        try:
            engraving = engrave(keep_parts(read_score_file(filename), layout), options)
        except FusiliError as error:
            print(f"{filename.name} as {layout}: {error}")
            continue
        for page, svg in enumerate(engraving.svgs[:PAGES_PER_PIECE]):
            image = rasterise(svg)
            known = engraving.systems[engraving.systems["page"] == page]
            known = known[known["y1"] < image.shape[0]]  # without systems that did not fit on the page
            yield layout, font, space_px, image, known


def keep_parts(score_file: ScoreFile, layout: str) -> ScoreFile:
    """Return the score with only the parts of a layout."""
    root = copy.deepcopy(score_file.root)
    parts = root.findall("part")
    several_staves = [part for part in parts if any(int(n.text or 1) > 1 for n in part.iter("staves"))]
    kept = parts
    if layout == "piano":
        kept = several_staves[:1]
    elif layout == "voice":
        kept = [part for part in parts if part not in several_staves][:1]
    ids = {part.get("id") for part in kept or parts}
    if kept:  # measures have their ids in the first part
        for first, other in zip(parts[0].findall("measure"), kept[0].findall("measure"), strict=False):
            other.set("id", first.get("id", ""))
    for part in parts:
        if part.get("id") not in ids:
            root.remove(part)
    part_list = root.find("part-list")
    for entry in list(part_list) if len(ids) < len(parts) else []:
        if entry.tag == "part-group" or entry.get("id") not in ids:
            part_list.remove(entry)
    return replace(score_file, root=root)


def move(boxes: Table, degradation: Degradation, skew: Skew) -> Table:
    """Move boxes from the clean page to the deskewed page, clipped to the canvas."""
    moved = boxes.copy()
    for a, b in (("x0", "y0"), ("x1", "y1")):
        x, y = degradation.to_degraded(boxes[a], boxes[b], width_px=skew.width_px, height_px=skew.height_px)
        x, y = skew.to_deskewed(x, y)
        moved[a], moved[b] = np.clip(x, 0, skew.width_px), np.clip(y, 0, skew.height_px)
    return moved


def match(known: Table, found: Table) -> list[tuple[int, int]]:
    """Pair known and found systems that overlap with an IoU of at least `MIN_IOU`.

    Known boxes do not overlap each other, nor do found boxes, so no box is in two pairs.
    """
    pairs = []
    for i, a in enumerate(known):
        for j, b in enumerate(found):
            wide = min(a["x1"], b["x1"]) - max(a["x0"], b["x0"])
            high = min(a["y1"], b["y1"]) - max(a["y0"], b["y0"])
            if wide > 0 and high > 0:
                areas = sum((box["x1"] - box["x0"]) * (box["y1"] - box["y0"]) for box in (a, b))
                if wide * high / (areas - wide * high) >= MIN_IOU:
                    pairs.append((i, j))
    return pairs


if __name__ == "__main__":
    main()
