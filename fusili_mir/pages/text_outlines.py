"""Text of an engraved page as outlines of its characters, so that nothing that draws the page needs a font.

Characters stand side by side at their own widths, as Verovio assumes when it lays text out: no kerning, no
ligatures.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from lxml import etree

from fusili_mir.pages.glyphs import Glyph, find_glyph

__all__ = ["outline_text"]

_SVG = "{http://www.w3.org/2000/svg}"
_HREF = "{http://www.w3.org/1999/xlink}href"
_SPACE = "{http://www.w3.org/XML/1998/namespace}space"
_BOLD = {"ending", "fing", "reh", "tempo"}  # classes that are bold in Verovio's style sheet
_NORMAL_WEIGHT = {"label"}  # classes that are of normal weight in it
_ITALIC = {"dir", "dynam", "mNum"}  # classes that are italic in it
_RIGHT_TO_LEFT = {"R", "AL"}  # directions of letters, in Unicode's names
_LEFT_TO_RIGHT = {"L", "EN", "AN"}
_SHARE_BEFORE = {"start": 0.0, "middle": 0.5, "end": 1.0}  # of the width of a line, before its place
_OF_TEXT = {"x", "y", "dx", "dy", "text-anchor", "letter-spacing", "textLength", "lengthAdjust"}


def outline_text(page: etree._Element) -> None:
    """Replace the text of a page, in place, and remove fonts that the page carries for it.

    Parameters
    ----------
    page : etree._Element
        The root of a page of an `Engraving`.
    """
    texts = list(page.iter(f"{_SVG}text"))
    if not texts:
        return
    used: dict[str, Glyph] = {}
    for text in texts:
        outlines = etree.Element(f"{_SVG}g", _other_attributes(text))
        for line in _lines(text):
            outlines.extend(_drawn(line, used))
        outlines.tail = text.tail
        parent = text.getparent()
        if parent is not None:
            parent.replace(text, outlines)
    for style in list(page.iter(f"{_SVG}style")):
        if (style.text or "").lstrip().startswith("@font-face"):
            _remove(style)
    definitions = etree.Element(f"{_SVG}defs")
    # The style sheet strokes all paths.
    definitions.extend(
        etree.Element(f"{_SVG}path", id=_reference(glyph), d=glyph.path, style="stroke:none")
        for glyph in used.values()
    )
    page.insert(0, definitions)


def _remove(element: etree._Element) -> None:
    parent = element.getparent()
    if parent is not None:
        parent.remove(element)


@dataclass(frozen=True)
class _Style:
    """How characters look; lengths are in drawing units."""

    size: float = 0.0
    bold: bool = False
    italic: bool = False
    family: str = ""
    spacing: float = 0.0
    anchor: str = "start"
    fill: str | None = None


@dataclass(frozen=True)
class _Run:
    """Characters of one style; `x` and `y` are None if they go on where the run before them ends."""

    content: str
    style: _Style
    x: float | None = None
    y: float | None = None


@dataclass(frozen=True)
class _Letter:
    character: str
    style: _Style


@dataclass(frozen=True)
class _Line:
    """Letters beside each other, at a place."""

    x: float
    y: float
    letters: list[_Letter]


def _other_attributes(text: etree._Element) -> dict[str, str]:
    return {
        str(name): str(value)
        for name, value in text.attrib.items()
        if name not in _OF_TEXT and not str(name).startswith("font-")
    }


def _lines(text: etree._Element) -> Iterator[_Line]:
    """Yield the lines of a text element, with white space as SVG wants it."""
    keeps_space = any(e.get(_SPACE) == "preserve" for e in (text, *text.iterancestors()))
    line = _Line(0.0, 0.0, [])
    follows_space = True
    for run in _runs(text, _inherited_style(text)):
        if run.x is not None or run.y is not None:
            yield line
            line = _Line(line.x if run.x is None else run.x, line.y if run.y is None else run.y, [])
        for character in unicodedata.normalize("NFC", run.content):
            is_space = character in " \t\r\n"
            if not (is_space and follows_space and not keeps_space):
                line.letters.append(_Letter(" " if is_space else character, run.style))
            follows_space = is_space
    if follows_space and not keeps_space and line.letters:
        line.letters.pop()
    yield line


def _inherited_style(text: etree._Element) -> _Style:
    style = _Style()
    for ancestor in reversed(list(text.iterancestors())):
        style = _own_style(ancestor, style)
        classes = set((ancestor.get("class") or "").split())
        if classes & _BOLD:
            style = replace(style, bold=True)
        if classes & _NORMAL_WEIGHT:
            style = replace(style, bold=False)
        if classes & _ITALIC:
            style = replace(style, italic=True)
    return replace(style, fill=None)  # the outlines inherit it from the same ancestors


def _own_style(element: etree._Element, inherited: _Style) -> _Style:
    weight, slant = element.get("font-weight"), element.get("font-style")
    return _Style(
        size=_length(element.get("font-size"), inherited.size),
        bold=inherited.bold if weight is None else weight == "bold",
        italic=inherited.italic if slant is None else slant in ("italic", "oblique"),
        family=element.get("font-family", inherited.family),
        spacing=_length(element.get("letter-spacing"), inherited.spacing),
        anchor=element.get("text-anchor", inherited.anchor),
        fill=element.get("fill", inherited.fill),
    )


def _length(value: str | None, otherwise: float) -> float:
    return otherwise if value is None else float(value.removesuffix("px"))


def _runs(element: etree._Element, inherited: _Style) -> Iterator[_Run]:
    style = _own_style(element, inherited)
    x, y = element.get("x"), element.get("y")
    yield _Run(element.text or "", style, None if x is None else float(x), None if y is None else float(y))
    for child in element:
        if child.tag == f"{_SVG}tspan":
            yield from _runs(child, style)
        yield _Run(child.tail or "", style)


def _drawn(line: _Line, used: dict[str, Glyph]) -> Iterator[etree._Element]:
    """Yield a reference to the outline of each letter of a line, and collect the outlines."""
    if not line.letters:
        return
    placed = []
    width = 0.0
    for letter in _left_to_right(line.letters):
        style = letter.style
        glyph = find_glyph(letter.character, style.family, style.bold, style.italic)
        if glyph is not None and style.size > 0:
            placed.append((glyph, width, style))
            width += glyph.advance * style.size / glyph.units_per_em + style.spacing
    left = line.x - _SHARE_BEFORE.get(line.letters[0].style.anchor, 0.0) * width
    for glyph, x, style in placed:
        if not glyph.path:
            continue
        used[glyph.name] = glyph
        scale = style.size / glyph.units_per_em
        place = f"translate({left + x:.2f}, {line.y:.2f}) scale({scale:.6f}, {-scale:.6f})"
        use = etree.Element(f"{_SVG}use", {_HREF: f"#{_reference(glyph)}", "transform": place})
        if style.fill is not None:
            use.set("fill", style.fill)
        yield use


def _reference(glyph: Glyph) -> str:
    return f"outline-{glyph.name}"


def _left_to_right(letters: Iterable[_Letter]) -> Iterator[_Letter]:
    """Yield letters in the order in which they stand on paper: Hebrew runs from the right to the left.

    A mark such as a vowel point follows its letter.
    """
    backward: list[list[_Letter]] = []  # letters with their marks, from the first one that runs to the left
    for letter in letters:
        direction = unicodedata.bidirectional(letter.character)
        if direction in _LEFT_TO_RIGHT or not (backward or direction in _RIGHT_TO_LEFT):
            yield from _turned(backward)
            backward = []
            yield letter
        elif direction == "NSM":
            backward[-1].append(letter)
        else:
            backward.append([letter])
    yield from _turned(backward)


def _turned(backward: list[list[_Letter]]) -> Iterator[_Letter]:
    """Yield letters that run to the left in reverse; spaces and points after the last of them stay after them."""
    end = len(backward)
    while end and unicodedata.bidirectional(backward[end - 1][0].character) not in _RIGHT_TO_LEFT:
        end -= 1
    for cluster in (*reversed(backward[:end]), *backward[end:]):
        yield from cluster
