"""Ossias: small staves with another reading of a measure or two, above or below a staff; they do not sound.

The other reading is music of the same page. It is laid where the paper is white, so nothing that is printed
changes, and near enough to its staff that a staff strip shows it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from lxml import etree
from scipy import ndimage

from fusili_mir.arrays import GreyImage, Table
from fusili_mir.pages.engraving import Engraving, EngravingOptions
from fusili_mir.pages.page_sources import PageSource
from fusili_training.rendering.ossia_excerpts import Excerpt, SmallStaff, list_excerpts

__all__ = ["OssiaPage", "OssiaStyle", "add_ossias"]

_WORDS = ("", "", "ossia", "Ossia:", "ossia", "ad lib.", "facilité", "oder:", "più facile")
_GAPS_SPACES = np.arange(1.0, 3.6, 0.25)  # between an ossia and its staff
_CLEAR_SPACES = 0.4  # of white around an ossia
_WHITE = 245  # and above: paper
_TRIES = 16  # of finding a place in a system
_BELOW_SHARE = 0.2
_FULL_SHARE = 0.75  # of its measures from which on an ossia is ruled to their end


@dataclass(frozen=True)
class OssiaStyle:
    """How an edition prints ossias.

    Attributes
    ----------
    scale : float
        Size of their staves, relative to others.
    share : float
        Share of the systems with an ossia, if there is room.
    word : str
        What stands above them.
    extra_spacing_staff, extra_spacing_system : int
        Room that the engraver leaves for them, in half staff spaces.
    seed : int
        Chooses places and music.
    """

    scale: float = 0.65
    share: float = 0.5
    word: str = ""
    extra_spacing_staff: int = 0
    extra_spacing_system: int = 0
    seed: int = 0

    @classmethod
    def draw(cls, rng: np.random.Generator) -> OssiaStyle:
        """Draw a style at random."""
        return cls(
            scale=float(rng.uniform(0.55, 0.75)),
            share=float(rng.uniform(0.3, 0.9)),
            word=str(rng.choice(_WORDS)),
            extra_spacing_staff=int(rng.integers(0, 5)),
            extra_spacing_system=int(rng.integers(4, 13)),
            seed=int(rng.integers(2**32)),
        )

    def make_room(self, options: EngravingOptions) -> EngravingOptions:
        """Return the options of an engraver who leaves room for ossias."""
        return replace(
            options,
            spacing_staff=options.spacing_staff + self.extra_spacing_staff,
            spacing_system=options.spacing_system + self.extra_spacing_system,
        )


@dataclass(frozen=True, eq=False)
class OssiaPage:
    """A page with ossias; `staves` and `measures` are those of this page."""

    source: PageSource
    svg: str
    staves: Table
    measures: Table
    style: OssiaStyle

    def read(self) -> GreyImage:
        """Draw the page and its ossias."""
        image = self.source.read().copy()
        excerpts = list_excerpts(etree.fromstring(self.svg.encode(), etree.XMLParser(huge_tree=True)))
        rng = np.random.default_rng(self.style.seed)
        for system in np.unique(self.staves["system"]):
            if rng.uniform() >= self.style.share:
                continue
            for target in self._targets(int(system), rng):
                excerpt = _fitting(excerpts, target, self.style.scale, rng)
                if excerpt is not None and self._print(image, excerpt, target):
                    break
        return image

    def _print(self, image: GreyImage, excerpt: Excerpt, target: _Target) -> bool:
        """Print an ossia with its word, or without it if the room is too small; return whether there is any."""
        scale = self.style.scale
        music_px, wanted_px = scale * excerpt.width_px, target.x1 - target.x0
        width_px = wanted_px if music_px > _FULL_SHARE * wanted_px else music_px
        for word in dict.fromkeys((self.style.word, "")):
            small = excerpt.draw(scale, width_px, word)
            if small is not None and _lay(image, small, target):
                return True
        return False

    def _targets(self, system: int, rng: np.random.Generator) -> Iterator[_Target]:
        """Yield some places of a system at random: one or two measures, above a staff or below the last."""
        staves = self.staves[self.staves["system"] == system]
        measures = self.measures[self.measures["system"] == system]
        for _ in range(_TRIES if len(measures) else 0):
            is_below = bool(rng.uniform() < _BELOW_SHARE)
            staff = staves[-1 if is_below else int(rng.integers(len(staves)))]
            first = int(rng.integers(len(measures)))
            last = min(first + int(rng.integers(2)), len(measures) - 1)
            yield _Target(
                x0=float(measures["x0"][first]),
                x1=float(measures["x1"][last]),
                y=float(staff["y1"] if is_below else staff["y0"]),
                is_below=is_below,
                space_px=float(staff["space_px"]),
            )


@dataclass(frozen=True)
class _Target:
    """Measures of a staff; `y` is its line that is next to the ossia."""

    x0: float
    x1: float
    y: float
    is_below: bool
    space_px: float


def add_ossias(sources: Sequence[PageSource], engraving: Engraving, style: OssiaStyle) -> list[PageSource]:
    """Return the pages of an engraving with ossias.

    Parameters
    ----------
    sources : sequence of PageSource
        The pages, as they were engraved.
    engraving : Engraving
    style : OssiaStyle

    Returns
    -------
    list of PageSource
    """
    return [
        OssiaPage(
            source,
            engraving.svgs[page],
            engraving.staves[engraving.staves["page"] == page],
            engraving.measures[engraving.measures["page"] == page],
            replace(style, seed=style.seed + page),
        )
        for page, source in enumerate(sources)
    ]


def _fitting(
    excerpts: Sequence[Excerpt], target: _Target, scale: float, rng: np.random.Generator
) -> Excerpt | None:
    """Draw an excerpt that fills at least half of the measures."""
    wanted_px = target.x1 - target.x0
    fitting = [excerpt for excerpt in excerpts if 0.5 < scale * excerpt.width_px / wanted_px < 1.02]
    return fitting[int(rng.integers(len(fitting)))] if fitting else None


def _lay(image: GreyImage, small: SmallStaff, target: _Target) -> bool:
    """Lay an ossia onto a page, in place, as near to its staff as the paper is white; return whether it is."""
    height, width = small.image.shape
    clear = round(_CLEAR_SPACES * target.space_px)
    covered = np.pad(small.image < _WHITE, clear)
    first, last = clear + small.y, clear + small.y + round(small.height_px)
    covered[first:last, clear + small.x : -clear] = True
    covered = ndimage.binary_dilation(covered, np.ones((2 * clear + 1, 2 * clear + 1)))
    left = round(target.x0) - small.x
    for gap in _GAPS_SPACES:
        gap_px = gap * target.space_px
        line = target.y + gap_px if target.is_below else target.y - gap_px - small.height_px
        top = round(line) - small.y
        if (
            min(top, left) < clear
            or top + height + clear > len(image)
            or left + width + clear > image.shape[1]
        ):
            continue
        around = image[top - clear : top + height + clear, left - clear : left + width + clear]
        if not (around[covered] < _WHITE).any():
            under = image[top : top + height, left : left + width]
            np.minimum(under, small.image, out=under)
            return True
    return False
