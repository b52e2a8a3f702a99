"""Strips of engraved systems whose bar lines and endings are known, to fit the networks that read them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from fusili_benchmarks.engraved_bar_lines import true_bar_lines, true_endings
from fusili_mir.arrays import Float32, GreyImage, Table
from fusili_mir.pages.bar_lines import ink_strips
from fusili_mir.pages.engraving import Engraving
from fusili_mir.pages.ink import ink_map
from fusili_mir.pages.raster import rasterise
from fusili_mir.pages.segments import Segment
from fusili_mir.pages.sign_network import BAR_LINE_MARGIN_SPACES
from fusili_training.rendering.degrade import Degradation

__all__ = ["SignExample", "sign_examples"]

_DEGRADED, _BITONAL = 0.75, 0.25  # shares of pages
_SHIFT_SPACES, _SCALE = 0.15, 0.02  # errors of the staves that are found
_LEFT_OVER_DEG = 0.04  # of the skew
_ABOVE_SPACES, _ABOVE_PX = 10.0, 100  # of the strips for endings
_PAGES_PER_PIECE = 3


@dataclass(frozen=True)
class SignExample:
    """One system.

    Attributes
    ----------
    strips : np.ndarray [shape=(n_staves, height, width)]
        Its staves, as the network for bar lines sees them: 255 is paper.
    above : np.ndarray [shape=(height, width)]
        What is above its first staff, as the network for endings sees it.
    bar_lines : tuple of (float, str)
        x in the strips, and kind.
    endings : tuple of (float, float, tuple of int)
        Ends in the strip, and numbers.
    """

    strips: GreyImage
    above: GreyImage
    bar_lines: tuple[tuple[float, str], ...]
    endings: tuple[tuple[float, float, tuple[int, ...]], ...]


def sign_examples(engraving: Engraving, rng: np.random.Generator) -> Iterator[SignExample]:
    """Yield the systems of the first pages of a score, degraded, with staves that are slightly misplaced."""
    bar_lines, endings = true_bar_lines(engraving), true_endings(engraving)
    for page, svg in enumerate(engraving.svgs[:_PAGES_PER_PIECE]):
        clean = rasterise(svg)
        systems = engraving.systems[engraving.systems["page"] == page].copy()
        systems["space_px"] *= 1 + _SCALE * rng.uniform(-1, 1)
        staves = _misplaced(engraving.staves, rng)
        ink = _condition(clean, engraving.staves[engraving.staves["page"] == page], rng)
        for system in systems[systems["y1"] < clean.shape[0]]:
            number = system["system"]
            strips, segment = ink_strips(ink, system, staves, BAR_LINE_MARGIN_SPACES)
            above, _ = ink_strips(ink, system, staves[staves["staff"] == 0], _ABOVE_SPACES)
            x_of = _in_strip(segment)
            yield SignExample(
                _grey(strips),
                _grey(above[0, :_ABOVE_PX]),
                tuple((x_of(line.x), line.kind) for line in bar_lines if line.system == number),
                tuple((x_of(e.x0), x_of(e.x1), e.numbers) for e in endings if e.system == number),
            )


def _condition(image: GreyImage, staves: Table, rng: np.random.Generator) -> GreyImage:
    """Degrade a page, and make some pages bitonal, with a threshold that keeps thin lines."""
    if rng.uniform() < _DEGRADED:
        drawn = Degradation.draw(rng, float(rng.uniform()))
        image = replace(drawn, rotation_deg=float(rng.normal(0, _LEFT_OVER_DEG))).apply(image, rng)
    ink = np.clip(ink_map(image), 0, 1)
    if rng.uniform() < _BITONAL:
        lines = [ink[int(row) - 1 : int(row) + 2, ::7].max(axis=0) for row in staves["y0"] if row > 1]
        faint = float(np.median(np.concatenate(lines)))
        ink = (ink > rng.uniform(0.3, 0.8) * faint).astype(np.float32)
    return _grey(ink)


def _grey(ink: Float32) -> GreyImage:
    return np.asarray(255 * (1 - ink), dtype=np.uint8)


def _misplaced(staves: Table, rng: np.random.Generator) -> Table:
    moved = staves.copy()
    shift_px = _SHIFT_SPACES * rng.uniform(-1, 1, len(staves)) * staves["space_px"]
    moved["y0"] += shift_px
    moved["y1"] += shift_px
    moved["space_px"] *= 1 + _SCALE * rng.uniform(-1, 1, len(staves))
    return moved


def _in_strip(segment: Segment):  # type: ignore[no-untyped-def]
    piece = segment.pieces[0]

    def x_of(x: float) -> float:
        return float(piece.on_page.map_to(piece.in_segment, np.array(x), np.array(0.0))[0])

    return x_of
