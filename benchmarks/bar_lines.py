"""Bar lines, repeat signs and endings read from engraved pages, clean and degraded: precision and recall.

    python benchmarks/bar_lines.py [--corpus ../shared/data] [--pages 200] [--strength 1]

Songs are engraved as a whole (voice and piano), as piano alone and as voice alone, quartets as a whole, in five
fonts. Bar lines of all kinds and endings are written into the scores at random places. Pages are degraded, then
deskewed and searched as `load_pages` does it; a bar line is right if it lies within three quarters of a staff
space of the true one, a repeat sign if its kind is right, too, an ending if it begins and ends at the right
measures, and a number if it was read. Systems that are not found are counted apart.
"""

from __future__ import annotations

import argparse
import csv
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from find_systems import FONTS, LAYOUTS, keep_parts, match, move
from fusili_benchmarks.engraved_bar_lines import (
    TrueBarLine,
    TrueEnding,
    true_bar_lines,
    true_endings,
    with_random_repeats,
)
from fusili_mir.arrays import GreyImage, Table
from fusili_mir.errors import FusiliError
from fusili_mir.pages.engraving import Engraving, EngravingOptions, engrave
from fusili_mir.pages.page_signs import find_signs
from fusili_mir.pages.raster import rasterise
from fusili_mir.pages.read_measures import read_measures
from fusili_mir.pages.skew import Skew, deskew_page, estimate_skew
from fusili_mir.pages.systems import find_systems
from fusili_mir.scores.score_file import read_score_file
from fusili_training.rendering.degrade import Degradation

TOLERANCE_SPACES = 0.75
PAGES_PER_PIECE = 2


@dataclass
class Count:
    """How many things are known, found and right."""

    known: int = 0
    found: int = 0
    right: int = 0

    def add(self, known: int, found: int, right: int) -> None:
        self.known += known
        self.found += found
        self.right += right

    def __str__(self) -> str:
        precision, recall = self.right / max(self.found, 1), self.right / max(self.known, 1)
        return f"{self.known} | {precision:.4f} | {recall:.4f}"


@dataclass
class Tally:
    """Counts of one group of pages."""

    n_pages: int = 0
    systems: Count = field(default_factory=Count)
    lines: Count = field(default_factory=Count)
    repeats: Count = field(default_factory=Count)
    endings: Count = field(default_factory=Count)
    numbers: Count = field(default_factory=Count)
    measures: Count = field(default_factory=Count)

    def row(self, name: str) -> str:
        counts = (self.lines, self.repeats, self.endings, self.numbers, self.measures)
        return f"| {name} | {self.n_pages} | {self.systems} | " + " | ".join(map(str, counts)) + " |"


@dataclass(frozen=True)
class Page:
    """An engraved page and what is known about it."""

    layout: str
    font: str
    space_px: float
    image: GreyImage
    systems: Table
    measures: Table
    lines: list[TrueBarLine]
    endings: list[TrueEnding]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--corpus", type=Path, default=Path("../shared/data"))
    parser.add_argument("--pages", type=int, default=200)
    parser.add_argument("--split", default="valid")
    parser.add_argument("--strength", type=float, default=1.0, help="largest strength of degradation, 0 to 1")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--verbose", action="store_true", help="name every page with a mistake")
    arguments = parser.parse_args()
    rng = np.random.default_rng(arguments.seed)
    tallies: dict[str, Tally] = defaultdict(Tally)
    for page in engraved_pages(arguments.corpus, arguments.split, rng):
        degradation = Degradation.draw(rng, arguments.strength * rng.uniform())
        size = "5-8 px" if page.space_px < 8 else "8-20 px"
        single = measured(page, degradation, rng)
        for name in ("all", page.layout, page.font, size, f"{page.layout} {size}"):
            _add(tallies[name], single)
        if arguments.verbose and single.lines.right < max(single.lines.known, single.lines.found):
            print(f"{page.layout} {page.font} {page.space_px:.1f} px: {single.lines}; {degradation}")
        if tallies["all"].n_pages >= arguments.pages:
            break
    groups = ("systems", "bar lines", "repeat signs", "endings", "numbers of endings", "measures")
    print("| pages | n |" + "".join(f" {group} | precision | recall |" for group in groups))
    print("|" + " --- |" * (2 + 3 * len(groups)))
    for name, tally in sorted(tallies.items()):
        print(tally.row(name))


def _add(total: Tally, single: Tally) -> None:
    total.n_pages += 1
    for name in ("systems", "lines", "repeats", "endings", "numbers", "measures"):
        count: Count = getattr(single, name)
        getattr(total, name).add(count.known, count.found, count.right)


def measured(page: Page, degradation: Degradation, rng: np.random.Generator) -> Tally:
    """Read a degraded page and compare with what is known."""
    degraded = degradation.apply(page.image, rng)
    skew = Skew(estimate_skew(degraded), page.image.shape[1], page.image.shape[0])
    deskewed = deskew_page(degraded, skew.angle_deg)
    layout = find_systems(deskewed)
    signs = find_signs(deskewed, layout)
    lines, endings = signs.bar_lines, signs.endings
    tally = Tally()
    known_systems = move(page.systems, degradation, skew)
    pairs = match(known_systems, layout.systems)
    tally.systems.add(len(known_systems), len(layout.systems), len(pairs))
    for known_row, found_row in pairs:
        known_system, found_system = page.systems[known_row], layout.systems[found_row]
        shift = _shift(degradation, skew, known_system)
        own = [line for line in page.lines if line.system == known_system["system"]]
        seen = lines[lines["system"] == found_system["system"]]
        near = _paired([line.x + shift(line.x) for line in own], seen["x"], found_system["space_px"])
        tally.lines.add(len(own), len(seen), len(near))
        true_kinds = [line.kind if "repeat" in line.kind else "" for line in own]
        kinds = [kind if "repeat" in kind else "" for kind in seen["kind"].tolist()]
        right = sum(true_kinds[i] != "" and true_kinds[i] == kinds[j] for i, j in near)
        tally.repeats.add(sum(map(bool, true_kinds)), sum(map(bool, kinds)), right)
        brackets = [each for each in page.endings if each.system == known_system["system"]]
        read = endings[endings["system"] == found_system["system"]]
        n_right, n_numbers = _right_endings(brackets, read, shift, 2 * float(found_system["space_px"]))
        tally.endings.add(len(brackets), len(read), n_right)
        tally.numbers.add(len(brackets), len(read), n_numbers)
        alone = read_measures(layout.systems[[found_row]], seen, read)
        true_measures = page.measures[page.measures["system"] == known_system["system"]]
        middles = [x + shift(x) for x in (true_measures["x0"] + true_measures["x1"]) / 2]
        found = alone.measures
        inside = [int(np.sum((found["x0"] < x) & (x < found["x1"]))) for x in middles]
        n_same = sum(inside) if len(found) == len(true_measures) else 0
        tally.measures.add(len(true_measures), len(found), n_same)
    return tally


def _shift(degradation: Degradation, skew: Skew, system: Table):  # type: ignore[no-untyped-def]
    y = float(system["y0"] + system["y1"]) / 2

    def moved(x: float) -> float:
        x_new, y_new = degradation.to_degraded(x, y, width_px=skew.width_px, height_px=skew.height_px)
        return float(skew.to_deskewed(x_new, y_new)[0]) - x

    return moved


def _paired(known: list[float], found: Table, space_px: float) -> list[tuple[int, int]]:
    """Pair each known place with the nearest found one within the tolerance; each is used once."""
    pairs: list[tuple[int, int]] = []
    free = set(range(len(found)))
    for i, x in enumerate(known):
        near = min(free, key=lambda j: abs(found[j] - x), default=None)
        if near is not None and abs(found[near] - x) <= TOLERANCE_SPACES * space_px:
            free.discard(near)
            pairs.append((i, near))
    return pairs


def _right_endings(known: list[TrueEnding], found: Table, shift, near_px: float) -> tuple[int, int]:  # type: ignore[no-untyped-def]
    n_right = n_numbers = 0
    for ending in known:
        x0, x1 = ending.x0 + shift(ending.x0), ending.x1 + shift(ending.x1)
        for row in found:
            if abs(row["x0"] - x0) < near_px and abs(row["x1"] - x1) < near_px:
                n_right += 1
                n_numbers += row["numbers"] == ",".join(map(str, ending.numbers))
                break
    return n_right, n_numbers


def engraved_pages(corpus: Path, split: str, rng: np.random.Generator) -> Iterator[Page]:
    """Yield pages endlessly."""
    with (corpus / "manifest.csv").open() as manifest:
        pieces = [row for row in csv.DictReader(manifest) if row["format"] == "mxl" and row["split"] == split]
    songs = [corpus / row["file"] for row in pieces if "lieder" in row["file"]]
    quartets = [corpus / row["file"] for row in pieces if "quartets" in row["file"]]
    quartets.sort(key=lambda filename: filename.stat().st_size)  # long ones take half a minute each
    number = 0
    while True:
        layout, font = LAYOUTS[number % len(LAYOUTS)], FONTS[(number // 2) % len(FONTS)]
        files = quartets[:4] if layout == "quartet" and quartets else songs
        filename = files[int(rng.integers(len(files)))]
        space_px = float(np.exp(rng.uniform(np.log(5), np.log(20))))
        number += 1
        options = EngravingOptions(
            font=font, staff_space_px=space_px, staff_height_mm=float(rng.uniform(5, 9))
        )
        try:
            score_file = keep_parts(read_score_file(filename), layout)
            engraving = engrave(with_random_repeats(score_file, rng), options)
        except FusiliError as error:
            print(f"{filename.name} as {layout}: {error}")
            continue
        yield from _pages(engraving, layout, font, space_px)


def _pages(engraving: Engraving, layout: str, font: str, space_px: float) -> Iterator[Page]:
    lines, endings = true_bar_lines(engraving), true_endings(engraving)
    for page, svg in enumerate(engraving.svgs[:PAGES_PER_PIECE]):
        image = rasterise(svg)
        systems = engraving.systems[engraving.systems["page"] == page]
        systems = systems[systems["y1"] < image.shape[0]]  # without systems that did not fit on the page
        own = set(systems["system"].tolist())
        yield Page(
            layout,
            font,
            space_px,
            image,
            systems,
            engraving.measures,
            [line for line in lines if line.system in own],
            [ending for ending in endings if ending.system in own],
        )


if __name__ == "__main__":
    main()
