"""Pages whose bar lines and endings are known, engraved by Verovio in five fonts and by LilyPond."""

from __future__ import annotations

import csv
import pickle
import re
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from lxml import etree

from find_systems import FONTS, LAYOUTS, keep_parts
from fusili_benchmarks.engraved_bar_lines import (
    TrueBarLine,
    TrueEnding,
    merged_bar_lines,
    true_bar_lines,
    true_endings,
    with_random_repeats,
)
from fusili_benchmarks.held_out_lilypond import LilypondPage, read_lilypond_score, read_svg_page
from fusili_benchmarks.lilypond_run import draw_page, run_lilypond
from fusili_mir.arrays import GreyImage, Table
from fusili_mir.boxes import MEASURE_DTYPE, SYSTEM_DTYPE
from fusili_mir.errors import FusiliError, InputError
from fusili_mir.pages.engraving import Engraving, EngravingOptions, engrave
from fusili_mir.pages.raster import rasterise
from fusili_mir.scores.score_file import read_score_file

__all__ = ["SignPage", "lilypond_pages", "verovio_pages"]

PAGES_PER_PIECE = 2
SMALLEST_PX, LARGEST_PX = 5.0, 20.0  # staff spaces
MOST_BYTES = 20_000  # of a LilyPond source: longer ones take minutes
TIME_LIMIT_SEC = 90.0
_SVG = "{http://www.w3.org/2000/svg}"
_KINDS = {"|": "single", "||": "double", "|.": "final", "!": "dotted", ";": "dotted"}


@dataclass(frozen=True)
class SignPage:
    """A clean page and what is known about it; there are no measures of pages that LilyPond engraved."""

    name: str
    layout: str
    font: str
    space_px: float
    image: GreyImage
    systems: Table
    measures: Table
    lines: list[TrueBarLine]
    endings: list[TrueEnding]


def verovio_pages(corpus: Path, split: str, seed: int, kept: Path | None = None) -> Iterator[SignPage]:
    """Yield pages of songs and quartets with bar lines of all kinds at random places, endlessly."""
    with (corpus / "manifest.csv").open() as manifest:
        pieces = [row for row in csv.DictReader(manifest) if row["format"] == "mxl" and row["split"] == split]
    songs = [corpus / row["file"] for row in pieces if "lieder" in row["file"]]
    quartets = [corpus / row["file"] for row in pieces if "quartets" in row["file"]]
    quartets.sort(key=lambda filename: filename.stat().st_size)  # long ones take half a minute each
    number = 0
    while True:
        rng = np.random.default_rng([seed, number])
        layout = LAYOUTS[number % len(LAYOUTS)]
        files = quartets[:4] if layout == "quartet" and quartets else songs
        filename = files[int(rng.integers(len(files)))]
        number += 1
        space_px = _draw_space(rng)
        options = EngravingOptions(
            font=FONTS[(number - 1) // 2 % len(FONTS)],  # type: ignore[arg-type]
            staff_space_px=space_px,
            staff_height_mm=float(rng.uniform(5, 9)),
        )

        def made(
            filename: Path = filename,
            layout: str = layout,
            options: EngravingOptions = options,
            rng: np.random.Generator = rng,
        ) -> list[SignPage]:
            score_file = keep_parts(read_score_file(filename), layout)
            engraving = engrave(with_random_repeats(score_file, rng), options)
            return list(_pages(engraving, filename.stem, layout, options))

        yield from _kept(kept, f"verovio-{split}-{seed}-{number}", made)


def lilypond_pages(
    corpus: Path, split: str, seed: int, binaries: Path, kept: Path | None = None
) -> Iterator[SignPage]:
    """Yield pages of the shorter pieces of Mutopia that have repeats, with their own signs, each piece once."""
    with (corpus / "manifest.csv").open() as manifest:
        rows = [row for row in csv.DictReader(manifest) if "mutopia" in row["file"] and row["split"] == split]
    sources = [corpus / row["file"] for row in rows]
    sources = [source for source in sources if _has_repeats(source)]
    for number, source in enumerate(sorted(sources, key=lambda source: (not _has_endings(source), source))):
        rng = np.random.default_rng([seed, number])
        space_px = _draw_space(rng)

        def made(source: Path = source, space_px: float = space_px) -> list[SignPage]:
            with tempfile.TemporaryDirectory() as folder:
                svgs = run_lilypond(source, Path(folder), binaries, TIME_LIMIT_SEC)
                boxes = read_lilypond_score(Path(folder) / "heads.tsv").boxes
            drawn = ((svg, read_svg_page(svg, boxes)) for svg in svgs[:PAGES_PER_PIECE])
            return [_lilypond_page(svg, page, source.stem, space_px) for svg, page in drawn]

        yield from _kept(kept, f"lilypond-{split}-{seed}-{source.stem}", made)


def _kept(folder: Path | None, name: str, made) -> list[SignPage]:  # type: ignore[no-untyped-def]
    """Return what was made the last time, or make it; what cannot be engraved is named and left out."""
    file = None if folder is None else folder / f"{name}.pkl"
    if file is not None and file.exists():
        pages: list[SignPage] = pickle.loads(file.read_bytes())
        return pages
    try:
        pages = made()
    except FusiliError as error:
        print(f"{name}: {error}", flush=True)
        pages = []
    if file is not None:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(pickle.dumps(pages))
    return pages


def _draw_space(rng: np.random.Generator) -> float:
    return float(np.exp(rng.uniform(np.log(SMALLEST_PX), np.log(LARGEST_PX))))


def _pages(engraving: Engraving, name: str, layout: str, options: EngravingOptions) -> Iterator[SignPage]:
    lines, endings = true_bar_lines(engraving), true_endings(engraving)
    for page, svg in enumerate(engraving.svgs[:PAGES_PER_PIECE]):
        image = rasterise(svg)
        systems = engraving.systems[engraving.systems["page"] == page]
        systems = systems[systems["y1"] < image.shape[0]]  # without systems that did not fit on the page
        own = set(systems["system"].tolist())
        assert options.staff_space_px is not None
        yield SignPage(
            name,
            layout,
            options.font,
            options.staff_space_px,
            image,
            systems,
            engraving.measures,
            [line for line in lines if line.system in own],
            [ending for ending in endings if ending.system in own],
        )


def _has_repeats(source: Path) -> bool:
    text = source.read_text(encoding="utf-8", errors="replace")
    return "\\repeat" in text and "volta" in text and len(text) < MOST_BYTES


def _has_endings(source: Path) -> bool:
    return "\\alternative" in source.read_text(encoding="utf-8", errors="replace")


def _lilypond_page(svg: str, page: LilypondPage, name: str, space_px: float) -> SignPage:
    """Read the signs of a page that `benchmarks/lilypond_heads.ly` has named."""
    rows = [
        (0, number, 0, *(space_px * value for value in (box.x0, box.y0, box.x1, box.y1)), space_px)
        for number, box in enumerate(page.systems)
    ]
    systems = np.array(rows, SYSTEM_DTYPE)
    lines, endings = [], []
    for group in etree.fromstring(svg.encode(), etree.XMLParser(huge_tree=True)).iter(f"{_SVG}g"):
        what, _, sign = (group.get("id") or "").partition(" ")
        ends = _extent(group) if what in ("bar", "volta") else None
        if ends is None:
            continue
        x0, x1, y = (space_px * value for value in ends)
        below = systems["system"][systems["y1"] >= y - space_px / 4]
        if not len(below):
            raise InputError(f"{name}: a sign below the last system")
        if what == "volta":
            numbers = tuple(int(number) for number in re.findall(r"\d+", sign))
            endings.append(TrueEnding(0, int(below[0]), x0, x1, numbers))
        elif kind := _kind(sign):
            lines.append(TrueBarLine(0, int(below[0]), (x0 + x1) / 2, kind))
    layout = "LilyPond"
    return SignPage(
        name,
        layout,
        layout,
        space_px,
        draw_page(svg, page, space_px),
        systems,
        np.empty(0, MEASURE_DTYPE),
        merged_bar_lines(lines, systems),
        sorted({(e.system, e.x0): e for e in endings}.values(), key=lambda e: (e.system, e.x0)),
    )


def _kind(glyph: str) -> str | None:
    """Return the kind of a bar line that LilyPond writes as its glyph, such as ``:|.``; None for other signs."""
    lines = glyph.split("-")[0]
    ends, begins = lines.startswith(":"), lines.endswith(":")
    if ends or begins:
        return "repeat-both" if ends and begins else "repeat-end" if ends else "repeat-begin"
    return _KINDS.get(lines)


def _extent(group: etree._Element) -> tuple[float, float, float] | None:
    """Return the ends of the lines of a sign, and the y of its middle, in staff spaces."""
    xs, ys = [], []
    for inner in group.iterchildren(f"{_SVG}g"):
        at = re.match(r"translate\(\s*(-?[\d.]+),\s*(-?[\d.]+)\s*\)", inner.get("transform") or "")
        if at is None:
            continue
        x, y = float(at[1]), float(at[2])
        for line in inner.iterchildren(f"{_SVG}line"):
            xs += [x + float(line.get("x1", 0)), x + float(line.get("x2", 0))]
            ys += [y + float(line.get("y1", 0)), y + float(line.get("y2", 0))]
        for box in inner.iterchildren(f"{_SVG}rect"):
            xs += [x + float(box.get("x", 0)), x + float(box.get("x", 0)) + float(box.get("width", 0))]
            ys += [y + float(box.get("y", 0)), y + float(box.get("y", 0)) + float(box.get("height", 0))]
    return (min(xs), max(xs), (min(ys) + max(ys)) / 2) if xs else None
