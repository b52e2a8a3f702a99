"""Small staves for ossias: measures of one staff, taken from the drawing of an engraved page."""

from __future__ import annotations

import copy
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from lxml import etree

from fusili_mir.arrays import GreyImage
from fusili_mir.pages.raster import rasterise

__all__ = ["Excerpt", "SmallStaff", "list_excerpts"]

_SVG = "{http://www.w3.org/2000/svg}"
_LINE = re.compile(r"M(-?\d+) (-?\d+) L(-?\d+) (-?\d+)")
_REACH_SPACES = 7  # around a staff: what reaches further belongs to another staff
_WORD_SIZE = 2.4  # of the letters, in spaces of the small staff
_LETTER_WIDTH = 0.5  # of an average letter, as a share of its size
_PAPER = 250  # and above


@dataclass(frozen=True, eq=False)
class SmallStaff:
    """A drawn ossia.

    Attributes
    ----------
    image : np.ndarray [shape=(height, width)], uint8
        0 is ink, 255 is paper; cropped to the ink.
    x, y : int
        Where the left end of the top line lies in the image.
    height_px : float
        Distance from the top to the bottom line.
    """

    image: GreyImage
    x: int
    y: int
    height_px: float


@dataclass(frozen=True, eq=False)
class Excerpt:
    """One or two measures of one staff of a page; lengths are in units of the drawing.

    Attributes
    ----------
    page : etree._Element
        The drawing of the page.
    groups : tuple of etree._Element
        The staff in each measure.
    x0, x1, y0, y1 : float
        Ends of the staff lines, and the middle of the top and of the bottom line.
    line : float
        Thickness of a line.
    px_per_unit : float
        Scale of the page.
    """

    page: etree._Element
    groups: tuple[etree._Element, ...]
    x0: float
    x1: float
    y0: float
    y1: float
    line: float
    px_per_unit: float

    @property
    def width_px(self) -> float:
        """Width of the measures on the page."""
        return (self.x1 - self.x0) * self.px_per_unit

    def joined(self, following: Excerpt) -> Excerpt:
        """Return this excerpt and the one after it as one."""
        return Excerpt(
            self.page,
            (*self.groups, *following.groups),
            self.x0,
            following.x1,
            self.y0,
            self.y1,
            self.line,
            self.px_per_unit,
        )

    def draw(self, scale: float, width_px: float, word: str = "") -> SmallStaff | None:
        """Draw the excerpt smaller, between bar lines.

        Parameters
        ----------
        scale : float
            Size relative to the page.
        width_px : float
            Length of the staff lines; longer than the music, they go on after it.
        word : str
            What stands above its beginning.

        Returns
        -------
        SmallStaff or None
            None if some of the music reaches too far from its staff.
        """
        factor = scale * self.px_per_unit
        reach = (self.y1 - self.y0) / 4 * _REACH_SPACES
        pad_px, above_px = 4, math.ceil(reach * factor)
        size = math.ceil(width_px) + 2 * pad_px, 2 * above_px + math.ceil((self.y1 - self.y0) * factor)
        svg = etree.Element(f"{_SVG}svg", {"id": self.page.get("id", "")}, nsmap=self.page.nsmap)
        svg.attrib.update(
            {"width": f"{size[0]}", "height": f"{size[1]}", "viewBox": f"0 0 {size[0]} {size[1]}"}
        )
        svg.extend(copy.deepcopy(part) for part in self.page if part.tag in (f"{_SVG}defs", f"{_SVG}style"))
        place = f"translate({pad_px}, {above_px}) scale({factor!r}) translate({-self.x0}, {-self.y0})"
        drawing = etree.SubElement(
            svg, f"{_SVG}g", {"color": "black", "font-family": "Times, serif", "transform": place}
        )
        drawing.extend(_ruled(self, max(self.x1, self.x0 + width_px / factor)))
        drawing.extend(_music(group) for group in self.groups)
        image = rasterise(etree.tostring(svg, encoding="unicode"))
        if word:
            word_px = round(_LETTER_WIDTH * len(word) * _WORD_SIZE * (self.y1 - self.y0) / 4 * factor)
            top_px = int(np.flatnonzero((image[:, : pad_px + word_px] < _PAPER).any(axis=1))[0])
            drawing.append(_written(self, word, self.y0 + (top_px - above_px) / factor))
            image = rasterise(etree.tostring(svg, encoding="unicode"))
        is_ink = image < _PAPER
        if is_ink[[0, -1]].any():
            return None
        rows, columns = np.flatnonzero(is_ink.any(axis=1)), np.flatnonzero(is_ink.any(axis=0))
        top, left = int(rows[0]), int(columns[0])
        cropped = image[top : rows[-1] + 1, left : columns[-1] + 1]
        return SmallStaff(cropped, pad_px - left, above_px - top, (self.y1 - self.y0) * factor)


def list_excerpts(page: etree._Element) -> list[Excerpt]:
    """List what an ossia may show: one or two measures of a staff, with at least three note heads.

    Parameters
    ----------
    page : etree._Element
        The drawing of a page of an `Engraving`.
    """
    drawing = next(g for g in page.iter(f"{_SVG}g") if g.get("class") == "definition-scale")
    px_per_unit = float(drawing.get("transform", "")[len("scale(") : -1])
    found: list[Excerpt] = []
    for system in _of_class(page, "system"):
        before: dict[str, Excerpt] = {}
        for measure in _of_class(system, "measure"):
            # A beam between two staves belongs to neither.
            whole = next(_of_class(measure, "beamSpan"), None) is None
            here = {
                staff.get("data-n", ""): excerpt
                for staff in _of_class(measure, "staff")
                if whole and (excerpt := _excerpt(page, staff, px_per_unit)) is not None
            }
            found += here.values()
            found += [before[staff].joined(excerpt) for staff, excerpt in here.items() if staff in before]
            before = here
    return [excerpt for excerpt in found if _n_heads(excerpt) >= 3]


def _of_class(element: etree._Element, name: str) -> Iterator[etree._Element]:
    return (group for group in element.iter(f"{_SVG}g") if group.get("class") == name)


def _n_heads(excerpt: Excerpt) -> int:
    return sum(1 for group in excerpt.groups for _ in _of_class(group, "notehead"))


def _excerpt(page: etree._Element, staff: etree._Element, px_per_unit: float) -> Excerpt | None:
    lines = [_LINE.fullmatch(path.get("d", "")) for path in staff.iterchildren(f"{_SVG}path")]
    ends = [[float(number) for number in line.groups()] for line in lines if line is not None]
    if len(ends) != 5:
        return None
    thickness = float(next(staff.iterchildren(f"{_SVG}path")).get("stroke-width", "13"))
    return Excerpt(page, (staff,), ends[0][0], ends[0][2], ends[0][1], ends[-1][1], thickness, px_per_unit)


def _music(staff: etree._Element) -> etree._Element:
    """Return what stands on a staff, without its lines and words."""
    music = copy.deepcopy(staff)
    for line in list(music.iterchildren(f"{_SVG}path")):
        music.remove(line)
    for verse in list(_of_class(music, "verse")):
        parent = verse.getparent()
        if parent is not None:
            parent.remove(verse)
    return music


def _ruled(excerpt: Excerpt, x1: float) -> Iterator[etree._Element]:
    """Yield staff lines and bar lines."""
    space = (excerpt.y1 - excerpt.y0) / 4
    for row in range(5):
        y = excerpt.y0 + row * space
        yield _path(f"M{excerpt.x0} {y} L{x1} {y}", excerpt.line)
    for x in (excerpt.x0, *(_right_end(group) for group in excerpt.groups[:-1]), x1):
        yield _path(f"M{x} {excerpt.y0} L{x} {excerpt.y1}", 2 * excerpt.line)


def _right_end(staff: etree._Element) -> float:
    line = _LINE.fullmatch(next(staff.iterchildren(f"{_SVG}path")).get("d", ""))
    assert line is not None  # noqa: S101 - as in `_excerpt`
    return float(line[3])


def _path(shape: str, thickness: float) -> etree._Element:
    return etree.Element(f"{_SVG}path", {"d": shape, "stroke-width": f"{thickness}"})


def _written(excerpt: Excerpt, word: str, y: float) -> etree._Element:
    """Write a word above everything that reaches up to `y`."""
    space = (excerpt.y1 - excerpt.y0) / 4
    group = etree.Element(f"{_SVG}g", {"class": "dir"})
    place = {"x": f"{excerpt.x0}", "y": f"{y - 0.6 * space}", "font-size": f"{_WORD_SIZE * space}px"}
    etree.SubElement(group, f"{_SVG}text", place).text = word
    return group
