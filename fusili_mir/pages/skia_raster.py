"""Drawing an engraved page with skia, which is fast enough for training.

skia's SVG reader supports neither CSS nor text. So Verovio's CSS is first turned into attributes, and text is
drawn here at the positions given in the SVG.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import skia
from lxml import etree
from PIL import Image

from fusili_mir.arrays import GreyImage
from fusili_mir.errors import InputError
from fusili_mir.pages.raster import TEXT_FAMILIES

__all__ = ["draw"]

_SVG = "{http://www.w3.org/2000/svg}"
_BOLD = {"ending", "fing", "reh", "tempo"}  # classes that are bold in Verovio's style sheet
_ITALIC = {"dir", "dynam", "mNum"}  # classes that are italic in it


def draw(svg: str, width_px: int, height_px: int) -> GreyImage:
    """Draw an SVG of `width_px` x `height_px` pixels, as `fusili_mir.pages.raster.rasterise` does."""
    root = etree.fromstring(svg.encode(), etree.XMLParser(huge_tree=True))
    _write_out_css(root)
    page = skia.SVGDOM.MakeFromStream(skia.MemoryStream(etree.tostring(root), copyData=True))
    if page is None:
        raise InputError("skia cannot read the SVG; expected a page of an Engraving")
    surface = skia.Surface(width_px, height_px)
    with surface as canvas:
        canvas.clear(skia.ColorWHITE)
        page.setContainerSize(skia.Size(width_px, height_px))
        page.render(canvas)
        for line in _lines(root):
            _draw_line(canvas, line)
    rgba = surface.makeImageSnapshot().toarray(colorType=skia.ColorType.kRGBA_8888_ColorType)
    return np.asarray(Image.fromarray(rgba).convert("L"))


def _write_out_css(root: etree._Element) -> None:
    """Stroke elements that have a stroke width, and remove those that the style sheet hides."""
    for element in list(root.iter(f"{_SVG}*")):
        if element.get("stroke-width") is not None:
            element.set("stroke", "black")
        if "placeholder" in (element.get("class") or "").split():
            parent = element.getparent()
            if parent is not None:
                parent.remove(element)


@dataclass(frozen=True)
class _Run:
    """A run of text in one style, in page pixels; runs at the same place follow each other."""

    content: str = ""
    x: float = 0.0
    y: float = 0.0
    size: float = 0.0
    anchor: str = "start"
    bold: bool = False
    italic: bool = False


def _lines(root: etree._Element) -> Iterator[list[_Run]]:
    """Yield the lines of text of a page, each as a list of runs."""
    scale, dx, dy = _drawing_transform(root)
    for text in root.iter(f"{_SVG}text"):
        classes = {
            name for ancestor in text.iterancestors() for name in (ancestor.get("class") or "").split()
        }
        style = _Run(bold=bool(classes & _BOLD), italic=bool(classes & _ITALIC))
        runs = [
            replace(run, x=(run.x + dx) * scale, y=(run.y + dy) * scale, size=run.size * scale)
            for run in _runs(text, style)
        ]
        for _, line in itertools.groupby(runs, key=lambda run: (run.x, run.y)):
            yield list(line)


def _drawing_transform(root: etree._Element) -> tuple[float, float, float]:
    """Return the scale from drawing units to pixels, and the page margin (x, y) in drawing units."""
    transform = {group.get("class"): group.get("transform", "") for group in root.iter(f"{_SVG}g")}
    (scale,) = _numbers(transform["definition-scale"])
    dx, dy = _numbers(transform["page-margin"])
    return scale, dx, dy


def _numbers(transform: str) -> list[float]:
    return [float(number) for number in transform[transform.index("(") + 1 : -1].split(",")]


def _runs(element: etree._Element, inherited: _Run) -> Iterator[_Run]:
    """Yield the non-empty runs of one text element, in drawing units."""
    here = replace(
        inherited,
        x=float(element.get("x", inherited.x)),
        y=float(element.get("y", inherited.y)),
        size=float(element.get("font-size", f"{inherited.size}px").removesuffix("px")),
        anchor=element.get("text-anchor", inherited.anchor),
        bold=element.get("font-weight") == "bold" or inherited.bold,
        italic=element.get("font-style") == "italic" or inherited.italic,
    )
    if element.text and element.text.strip() and here.size > 0:
        yield replace(here, content=element.text)
    for child in element.iterchildren(f"{_SVG}tspan"):
        yield from _runs(child, here)


@functools.cache
def _typeface(bold: bool, italic: bool) -> skia.Typeface:
    weight = skia.FontStyle.kBold_Weight if bold else skia.FontStyle.kNormal_Weight
    slant = skia.FontStyle.kItalic_Slant if italic else skia.FontStyle.kUpright_Slant
    style = skia.FontStyle(weight, skia.FontStyle.kNormal_Width, slant)
    fonts = skia.FontMgr()
    for family in TEXT_FAMILIES:
        if typeface := fonts.matchFamilyStyle(family, style):
            return typeface
    return fonts.legacyMakeTypeface("", style)


def _draw_line(canvas: skia.Canvas, line: list[_Run]) -> None:
    fonts = [skia.Font(_typeface(run.bold, run.italic), run.size) for run in line]
    widths = [font.measureText(run.content) for run, font in zip(line, fonts, strict=True)]
    x = line[0].x - {"start": 0.0, "middle": 0.5, "end": 1.0}[line[0].anchor] * sum(widths)
    paint = skia.Paint(Color=skia.ColorBLACK, AntiAlias=True)
    for run, font, width in zip(line, fonts, widths, strict=True):
        canvas.drawString(run.content, x, run.y, font, paint)
        x += width
