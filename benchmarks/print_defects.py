"""How long each defect of old prints takes on a page, and how it looks.

    python benchmarks/print_defects.py [SCORE] [--sheet sheet.png] [--data ../shared/data]

The sheet shows the upper left of the first page: clean, with each defect alone, and three prints as drawn.
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw

from fusili_mir.pages.engraving import EngravingOptions
from fusili_mir.pages.pages import render_pages
from fusili_training.rendering.print_defects import DefectLimits, PrintDefects

ALONE = {
    "ink": PrintDefects(ink=0.8),
    "broken_lines": PrintDefects(broken_lines=0.8),
    "bleed_through": PrintDefects(bleed_through=0.7),
    "handwriting": PrintDefects(handwriting=0.6),
    "stamps": PrintDefects(stamps=1.0),
    "stains": PrintDefects(stains=0.7),
    "curl": PrintDefects(curl=0.7),
    "bitonal": PrintDefects(bitonal=True),
}
TILE_PX, TITLE_PX, COLUMNS = (600, 520), 14, 4


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("score", type=Path, nargs="?")
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--sheet", type=Path)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    score = arguments.score or min((arguments.data / "scores" / "openscore_lieder").glob("*.mxl"))
    pages = render_pages(score, EngravingOptions(staff_space_px=10.0))
    page, back = pages.images[0], pages.images[len(pages.images) - 1]
    space_px = float(pages.staves["space_px"][0])
    shown = {"clean": page}
    print(f"| {page.shape[1]} x {page.shape[0]} px | CPU ms |\n| --- | --- |")
    prints = {
        f"print {seed}": PrintDefects.draw(DefectLimits(), np.random.default_rng(seed)) for seed in range(3)
    }
    for name, defects in {**ALONE, **prints}.items():
        started = time.process_time()
        shown[name] = defects.apply(page, space_px, np.random.default_rng(0), back)
        print(f"| {name} | {1000 * (time.process_time() - started):.0f} |", flush=True)
    if arguments.sheet:
        save_sheet(shown, arguments.sheet)


def save_sheet(pages: dict[str, np.ndarray], path: Path) -> None:
    width, height = TILE_PX[0], TILE_PX[1] + TITLE_PX
    sheet = Image.new("L", (COLUMNS * width, -(-len(pages) // COLUMNS) * height), 255)
    pen = ImageDraw.Draw(sheet)
    for place, (name, page) in enumerate(pages.items()):
        row, column = divmod(place, COLUMNS)
        pen.text((column * width + 2, row * height), name, fill=0)
        tile = Image.fromarray(page[: TILE_PX[1], : width - 4])
        sheet.paste(tile, (column * width, row * height + TITLE_PX))
    sheet.save(path)


if __name__ == "__main__":
    main()
