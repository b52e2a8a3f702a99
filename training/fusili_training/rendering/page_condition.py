"""Engraved pages as the runtime sees them: printed, degraded, slightly turned, their staves slightly misplaced.

The boxes follow the changes: they say where things lie on the changed pages.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from fusili_mir.arrays import GreyImage, Table
from fusili_mir.pages.engraving import Engraving
from fusili_mir.pages.page_sources import EngravedPage, PageSource
from fusili_mir.pages.pages import PageImages
from fusili_mir.pages.raster import page_size_px
from fusili_training.rendering.degrade import Degradation
from fusili_training.rendering.ossias import OssiaStyle, add_ossias
from fusili_training.rendering.print_defects import PrintDefects
from fusili_training.rendering.render_recipe import PageOptions

__all__ = ["PageCondition", "condition_pages"]


@dataclass(frozen=True, eq=False)
class PageCondition:
    """Pages and their contents; `systems` and `staves` are as if detected, `measures` and `notes` are exact."""

    images: Sequence[GreyImage]
    systems: Table
    staves: Table
    measures: Table
    notes: Table


@dataclass(frozen=True)
class _PrintedPage:
    source: PageSource
    back: PageSource
    defects: PrintDefects
    space_px: float
    seed: int

    def read(self) -> GreyImage:
        back = self.back.read() if self.defects.bleed_through else None
        return self.defects.apply(self.source.read(), self.space_px, np.random.default_rng(self.seed), back)


@dataclass(frozen=True)
class _DegradedPage:
    source: PageSource
    degradation: Degradation
    seed: int

    def read(self) -> GreyImage:
        return self.degradation.apply(self.source.read(), np.random.default_rng(self.seed))


def condition_pages(
    engraving: Engraving, options: PageOptions, rng: np.random.Generator, ossias: OssiaStyle | None = None
) -> PageCondition:
    """Draw the condition of the pages of one score.

    Parameters
    ----------
    engraving : Engraving
    options : PageOptions
    rng : np.random.Generator
    ossias : OssiaStyle, optional
        By default, the pages have none.

    Returns
    -------
    PageCondition
    """
    degraded = rng.uniform() < options.degraded
    drawn = Degradation.draw(rng, options.strength)
    degradation = replace(drawn, rotation_deg=options.rotation_deg * rng.uniform(-1.0, 1.0))
    page_seed = int(rng.integers(2**32))
    sources: list[PageSource] = [EngravedPage(svg) for svg in engraving.svgs]
    if ossias is not None:
        sources = add_ossias(sources, engraving, ossias)
    boxes = [engraving.systems, engraving.staves, engraving.measures, engraving.notes]
    sizes = [page_size_px(svg) for svg in engraving.svgs] if degraded or options.printed else []
    if options.printed:
        of_print = rng.spawn(1)[0]  # without a change of the numbers below
        if of_print.uniform() < options.printed:
            prints = _draw_prints(len(sources), options, of_print)
            sources = _printed(sources, prints, engraving.staves, int(of_print.integers(2**32)))
            boxes = [_curled(rows, prints, sizes) for rows in boxes]
    if degraded:
        sources = [
            _DegradedPage(source, degradation, page_seed + page) for page, source in enumerate(sources)
        ]
        boxes = [_moved(rows, degradation, sizes) for rows in boxes]
    systems, staves, measures, notes = boxes
    return PageCondition(
        images=PageImages(sources),
        systems=_resized(systems, options, rng),
        staves=_resized(_shifted(staves, options, rng), options, rng),
        measures=measures,
        notes=notes,
    )


def _draw_prints(n_pages: int, options: PageOptions, rng: np.random.Generator) -> list[PrintDefects]:
    """Draw the defects of one print, for each of its pages."""
    first = PrintDefects.draw(options.defects, rng)
    return [first if page % 2 == 0 else first.next_page() for page in range(n_pages)]


def _printed(
    sources: list[PageSource], prints: list[PrintDefects], staves: Table, seed: int
) -> list[PageSource]:
    space_px = float(np.median(staves["space_px"])) if len(staves) else 8.0
    printed: list[PageSource] = []
    for page, source in enumerate(sources):
        back = sources[page ^ 1] if page ^ 1 < len(sources) else source
        printed.append(_PrintedPage(source, back, prints[page], space_px, seed + page))
    return printed


def _curled(rows: Table, prints: list[PrintDefects], sizes: list[tuple[int, int]]) -> Table:
    """Move each box as the curl of its page moves what is in it, on average."""
    moved = rows.copy()
    for page, (width_px, _) in enumerate(sizes):
        here = rows["page"] == page
        x0, x1 = rows["x0"][here].astype(np.float64), rows["x1"][here].astype(np.float64)
        shift_px = prints[page].shift_px(x0, x1, width_px)
        moved["y0"][here] += shift_px.astype(np.float32)
        moved["y1"][here] += shift_px.astype(np.float32)
    return moved


def _moved(rows: Table, degradation: Degradation, sizes: list[tuple[int, int]]) -> Table:
    """Move the centre of each box; the rotation is too small to change its size."""
    moved = rows.copy()
    for page, (width_px, height_px) in enumerate(sizes):
        here = rows["page"] == page
        x, y = (rows["x0"][here] + rows["x1"][here]) / 2, (rows["y0"][here] + rows["y1"][here]) / 2
        new_x, new_y = degradation.to_degraded(x, y, width_px=width_px, height_px=height_px)
        for name, shift in (("x0", new_x - x), ("x1", new_x - x), ("y0", new_y - y), ("y1", new_y - y)):
            moved[name][here] += shift.astype(np.float32)
    return moved


def _shifted(staves: Table, options: PageOptions, rng: np.random.Generator) -> Table:
    shifted = staves.copy()
    shift_px = options.staff_shift_spaces * rng.uniform(-1.0, 1.0, size=len(staves)) * staves["space_px"]
    shifted["y0"] += shift_px
    shifted["y1"] += shift_px
    return shifted


def _resized(rows: Table, options: PageOptions, rng: np.random.Generator) -> Table:
    """Change the detected distance of the staff lines, by which segments are scaled."""
    resized = rows.copy()
    resized["space_px"] *= 1 + options.staff_scale * rng.uniform(-1.0, 1.0, size=len(rows))
    return resized
