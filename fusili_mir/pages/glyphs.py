"""Outlines of the characters of lyrics, titles and other text on engraved pages.

Letters come from Liberation Serif, which comes with the package and is as wide as Times, the font for which
Verovio lays text out; signs of music within text come from Verovio's own fonts. The fonts of the machine are
never looked at, so that a page looks the same everywhere.
"""

from __future__ import annotations

import functools
import importlib.util
import io
import threading
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

from fontTools.pens.svgPathPen import SVGPathPen
from fontTools.ttLib import TTFont
from lxml import etree

from fusili_mir.pages.engraving import MusicFont

__all__ = ["TEXT_FONTS", "Glyph", "find_glyph"]

_FOLDER = Path(__file__).parent / "fonts"
_STYLES = {
    (False, False): "Regular",
    (True, False): "Bold",
    (False, True): "Italic",
    (True, True): "BoldItalic",
}

TEXT_FONTS = tuple(_FOLDER / f"LiberationSerif-{style}.ttf" for style in _STYLES.values())
"""The font files for text, all of one family: Liberation Serif."""

_FALLBACK: MusicFont = "Leipzig"  # Verovio takes signs from it that the chosen music font does not have
_BOX = "\u25a1"  # drawn for what no font has
_UNSEEN = {"Cc", "Cf", "Mn", "Me", "Zl", "Zp", "Zs"}  # categories that need no box: marks, spaces, ...
_SIGN_UNITS_PER_EM = 1000.0
_LOCK = threading.Lock()  # fontTools reads a font piece by piece


@dataclass(frozen=True)
class Glyph:
    """The outline of a character.

    Attributes
    ----------
    name : str
        Names the outline among those of all fonts.
    path : str
        The outline as data of an SVG path, in units of the font, y upwards; empty for a space.
    advance : float
        Distance to the next character, in units of the font.
    units_per_em : float
        Size of the font in its units.
    """

    name: str
    path: str
    advance: float
    units_per_em: float


@functools.lru_cache(maxsize=4096)
def find_glyph(character: str, family: str, bold: bool = False, italic: bool = False) -> Glyph | None:
    """Find the outline of a character.

    Parameters
    ----------
    character : str
    family : str
        Name of a music font; any other name stands for the text font.
    bold, italic : bool
        Style of the text font.

    Returns
    -------
    Glyph or None
        A box if no font has the character; None if that is a space or a mark.
    """
    font = _text_font(_STYLES[bold, italic])
    letter = font.names.get(ord(character))
    sign = None
    if family in get_args(MusicFont):
        sign = _sign(character, family)
    if sign is None and letter is None:
        sign = _sign(character, _FALLBACK)
    if sign is not None:
        return sign
    if letter is None and unicodedata.category(character) in _UNSEEN:
        return None
    return font.glyph(letter or font.names[ord(_BOX)])


def _sign(character: str, family: str) -> Glyph | None:
    code = ord(character)
    advance = _sign_advances(family).get(code)
    if advance is None:
        return None
    drawing = etree.parse(_verovio_data() / family / f"{code:04X}.xml")
    path = " ".join(path.get("d", "") for path in drawing.iter("path"))
    return Glyph(f"{family}-{code:04X}", path, advance, _SIGN_UNITS_PER_EM)


@functools.cache
def _sign_advances(family: str) -> Mapping[int, float]:
    boxes = etree.parse(_verovio_data() / f"{family}.xml").getroot()
    return {int(sign.get("c", "0"), 16): float(sign.get("h-a-x", "0")) for sign in boxes.iter("g")}


@functools.cache
def _verovio_data() -> Path:
    """Return the folder with Verovio's fonts, without importing Verovio."""
    verovio = importlib.util.find_spec("verovio")
    if verovio is None or verovio.origin is None:
        raise ImportError("verovio is not installed; reinstall fusili-mir")
    return Path(verovio.origin).parent / "data"


class _TextFont:
    """One style of the text font."""

    def __init__(self, style: str) -> None:
        content = (_FOLDER / f"LiberationSerif-{style}.ttf").read_bytes()
        font = TTFont(io.BytesIO(content))
        self.names: Mapping[int, str] = font.getBestCmap()
        self._style = style
        self._glyphs = font.getGlyphSet()
        self._units_per_em = float(font["head"].unitsPerEm)

    def glyph(self, name: str) -> Glyph:
        """Return the outline of the glyph under its name in the font."""
        pen = SVGPathPen(self._glyphs)
        with _LOCK:
            glyph = self._glyphs[name]
            glyph.draw(pen)
        return Glyph(f"{self._style}-{name}", pen.getCommands(), float(glyph.width), self._units_per_em)


@functools.cache
def _text_font(style: str) -> _TextFont:
    return _TextFont(style)
