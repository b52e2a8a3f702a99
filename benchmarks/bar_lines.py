"""Bar lines, repeat signs, endings and measures read from clean and degraded engravings: precision and recall.

    python benchmarks/bar_lines.py [--corpus ../shared/data] [--split test] [--pages 120] [--lilypond BIN]

Songs are engraved as a whole (voice and piano), as piano alone and as voice alone, quartets as a whole, in five
fonts; bar lines of all kinds and endings are written into the scores at random places. With BIN, a folder with
`lilypond` and `convert-ly` such as `lilypond-binaries/bin` of the PyPI package `lilypond`, pieces of Mutopia with
repeats of their own are engraved by LilyPond, too. Every page is read twice: as it is, and degraded; then it is
deskewed and searched as `load_pages` does it.

A bar line is right if it lies within three quarters of a staff space of the true one, a repeat sign if its kind
is right, too, an ending if both its ends lie within two spaces of the true ones, a number if it was read as well,
and a measure if it holds the middle of one true measure and of no other. Systems that are not found are counted
apart.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path

import numpy as np

from find_systems import match, move
from fusili_benchmarks.engraved_bar_lines import TrueEnding
from fusili_benchmarks.sign_pages import SignPage, lilypond_pages, verovio_pages
from fusili_mir.arrays import Table
from fusili_mir.pages.page_signs import find_signs
from fusili_mir.pages.read_measures import read_measures
from fusili_mir.pages.skew import Skew, deskew_page, estimate_skew
from fusili_mir.pages.systems import find_systems
from fusili_training.rendering.degrade import Degradation

TOLERANCE_SPACES = 0.75
ENDING_SPACES = 2.0
KINDS = ("systems", "bar lines", "repeat signs", "endings", "numbers of endings", "measures")


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
        return f"{self.known} | {precision:.4f} | {recall:.4f}" if self.known else "0 | | "


@dataclass
class Tally:
    """Counts of one group of pages."""

    n_pages: int = 0
    of: dict[str, Count] = field(default_factory=lambda: {kind: Count() for kind in KINDS})

    def add(self, other: Tally) -> None:
        self.n_pages += other.n_pages
        for kind, count in other.of.items():
            self.of[kind].add(count.known, count.found, count.right)

    def row(self, name: str) -> str:
        return f"| {name} | {self.n_pages} | " + " | ".join(map(str, self.of.values())) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--corpus", type=Path, default=Path("../shared/data"))
    parser.add_argument("--pages", type=int, default=120, help="pages by Verovio")
    parser.add_argument("--split", default="test")
    parser.add_argument("--lilypond", type=Path, metavar="BIN")
    parser.add_argument("--lilypond-pages", type=int, default=40)
    parser.add_argument("--strength", type=float, default=1.0, help="largest strength of degradation, 0 to 1")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", type=Path, help="folder that keeps the engraved pages for the next time")
    parser.add_argument("--verbose", action="store_true", help="name every page with a mistake")
    arguments = parser.parse_args()
    tallies: dict[str, Tally] = defaultdict(Tally)
    for number, page in enumerate(pages_of(arguments)):
        rng = np.random.default_rng([arguments.seed, number])
        size = "5-8 px" if page.space_px < 8 else "8-20 px"
        for state, strength in (("clean", 0.0), ("degraded", arguments.strength * rng.uniform())):
            single = measured(page, Degradation.draw(rng, strength), rng)
            by = "LilyPond" if page.font == "LilyPond" else "Verovio"
            groups = {"all", page.layout, page.font, size, f"{by} {size}", f"{by} {state} {size}"}
            for name in groups:
                tallies[name].add(single)
            wrong = [f"{kind} {c}" for kind, c in single.of.items() if c.right < max(c.known, c.found)]
            if arguments.verbose and wrong:
                print(
                    f"{number} {page.name} {page.layout} {page.font} {page.space_px:.1f} px {state}: {wrong}"
                )
    print("| pages | n |" + "".join(f" {kind} | precision | recall |" for kind in KINDS))
    print("|" + " --- |" * (2 + 3 * len(KINDS)))
    for name, tally in sorted(tallies.items()):
        print(tally.row(name))


def pages_of(arguments: argparse.Namespace) -> Iterator[SignPage]:
    """Yield the pages of all engravers."""
    corpus, split, seed = arguments.corpus, arguments.split, arguments.seed
    pages = islice(verovio_pages(corpus, split, seed, arguments.keep), arguments.pages)
    if arguments.lilypond is None:
        return pages
    others = lilypond_pages(corpus, split, seed, arguments.lilypond, arguments.keep)
    return chain(pages, islice(others, arguments.lilypond_pages))


def measured(page: SignPage, degradation: Degradation, rng: np.random.Generator) -> Tally:
    """Read a degraded page and compare with what is known."""
    degraded = degradation.apply(page.image, rng)
    skew = Skew(estimate_skew(degraded), page.image.shape[1], page.image.shape[0])
    deskewed = deskew_page(degraded, skew.angle_deg)
    layout = find_systems(deskewed)
    signs = find_signs(deskewed, layout)
    tally = Tally(1)
    known_systems = move(page.systems, degradation, skew)
    pairs = match(known_systems, layout.systems)
    tally.of["systems"].add(len(known_systems), len(layout.systems), len(pairs))
    for known_row, found_row in pairs:
        known_system, found_system = page.systems[known_row], layout.systems[found_row]
        number, space_px = found_system["system"], float(found_system["space_px"])
        place = _places(degradation, skew, known_system)
        own = [line for line in page.lines if line.system == known_system["system"]]
        seen = signs.bar_lines[signs.bar_lines["system"] == number]
        near = _paired([place(line.x) for line in own], seen["x"], space_px)
        tally.of["bar lines"].add(len(own), len(seen), len(near))
        true_kinds = [line.kind if "repeat" in line.kind else "" for line in own]
        kinds = [kind if "repeat" in kind else "" for kind in seen["kind"].tolist()]
        right = sum(true_kinds[i] != "" and true_kinds[i] == kinds[j] for i, j in near)
        tally.of["repeat signs"].add(sum(map(bool, true_kinds)), sum(map(bool, kinds)), right)
        brackets = [each for each in page.endings if each.system == known_system["system"]]
        read = signs.endings[signs.endings["system"] == number]
        n_right, n_numbers = _right_endings(brackets, read, place, ENDING_SPACES * space_px)
        tally.of["endings"].add(len(brackets), len(read), n_right)
        tally.of["numbers of endings"].add(len(brackets), len(read), n_numbers)
        found = read_measures(layout.systems[[found_row]], seen, read).measures
        own_measures = page.measures[page.measures["system"] == known_system["system"]]
        middles = [
            place(float(x0 + x1) / 2) for x0, x1 in zip(own_measures["x0"], own_measures["x1"], strict=True)
        ]
        if len(page.measures):
            held = [sum(bool(box["x0"] <= x < box["x1"]) for x in middles) for box in found]
            tally.of["measures"].add(len(middles), len(found), held.count(1))
    return tally


def _places(degradation: Degradation, skew: Skew, system: np.void) -> Callable[[float], float]:
    """Return where an x in the middle of a system lies on the deskewed page."""
    y = float(system["y0"] + system["y1"]) / 2

    def moved(x: float) -> float:
        x_new, y_new = degradation.to_degraded(x, y, width_px=skew.width_px, height_px=skew.height_px)
        return float(skew.to_deskewed(x_new, y_new)[0])

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


def _right_endings(
    known: list[TrueEnding], found: Table, place: Callable[[float], float], near_px: float
) -> tuple[int, int]:
    n_right = n_numbers = 0
    for ending in known:
        x0, x1 = place(ending.x0), place(ending.x1)
        for row in found:
            if abs(row["x0"] - x0) < near_px and abs(row["x1"] - x1) < near_px:
                n_right += 1
                # The rest of a bracket that goes on from the system before has no number.
                n_numbers += not row["begins"] or row["numbers"] == ",".join(map(str, ending.numbers))
                break
    return n_right, n_numbers


if __name__ == "__main__":
    main()
