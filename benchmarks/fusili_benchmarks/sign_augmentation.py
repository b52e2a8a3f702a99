"""Variations of strips with bar lines: other shapes of repeat signs, bent paper, spots, fainter or fatter ink.

Strips are [shape=(n_staves, height, width)], 8 pixels a space, with the middle line of a staff in the middle.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib
import numpy as np
from PIL import Image, ImageDraw, ImageFilter, ImageFont

import fusili_mir.pages
from fusili_mir.arrays import Float32, GreyImage
from fusili_mir.pages.sign_network import SPACE_PX

__all__ = ["BarLines", "Brackets", "crowd_bar_lines", "draw_brackets", "redraw_bar_lines", "vary"]

BarLines = list[tuple[float, str]]
Brackets = list[tuple[float, float, tuple[int, ...]]]

_CROWDED = 0.3  # share of bar lines without dots
_BLANK = 0.06  # ink of columns on which only staff lines are drawn, beside those
_REDRAWN = 0.25  # share of single bar lines
_KINDS = ("double", "final", "repeat-begin", "repeat-end", "repeat-both", "single")
_SHARES = (0.15, 0.15, 0.25, 0.25, 0.15, 0.05)
_OTHER = ((1,), (2,), (1, 2), (3,))
_NUMBER_FONTS = (
    *sorted((Path(fusili_mir.pages.__file__).parent / "fonts").glob("*.ttf")),
    *(
        Path(matplotlib.get_data_path(), "fonts", "ttf", f"{name}.ttf")
        for name in (
            *("DejaVuSerif", "DejaVuSerif-Bold", "DejaVuSerif-BoldItalic", "DejaVuSans", "DejaVuSans-Bold"),
            *("STIXGeneral", "STIXGeneralBol", "STIXGeneralBolIta", "cmr10", "cmb10", "cmti10", "cmss10"),
        )
    ),
)
_CENTRAL = 0.45  # share of brackets whose number is in their middle, as in old prints
_MOST_BLUR_PX = 1.0  # of what is drawn onto pages that are scanned already
_SIDES = {"repeat-begin": (1,), "repeat-end": (-1,), "repeat-both": (-1, 1)}


def redraw_bar_lines(
    strips: GreyImage, bar_lines: BarLines, rng: np.random.Generator
) -> tuple[GreyImage, BarLines]:
    """Turn some single bar lines into signs as other engravers draw them."""
    drawn, kept = strips.copy(), BarLines()
    for x, kind in bar_lines:
        inside = 4 * SPACE_PX < x < strips.shape[2] - 4 * SPACE_PX
        if kind == "single" and inside and rng.uniform() < _REDRAWN:
            new_kind = str(rng.choice(_KINDS, p=_SHARES))
            drawn = _with_sign(drawn, int(x), new_kind, rng)
            kept.append((int(x) + 0.5, new_kind))
        else:
            kept.append((x, kind))
    return drawn, kept


def _with_sign(strips: GreyImage, column: int, kind: str, rng: np.random.Generator) -> GreyImage:
    # The old line says where the new ones run: through the staves, or between them, too.
    runs = 1 - strips[:, :, column - 1 : column + 2].min(axis=2) / np.float32(255)
    runs = runs * (runs > 0.35)
    left, right = (int(SPACE_PX * rng.uniform(0.6, 1.7)) for _ in range(2))
    bare = strips.copy()
    bare[:, :, column - left : column + right] = np.median(strips, axis=2)[:, :, None]
    widths, gap_px = _line_widths(kind, rng)
    total_px = sum(widths) + gap_px * (len(widths) - 1)
    xs = np.arange(strips.shape[2]) + 0.5
    ink = np.zeros(strips.shape, np.float32)
    at = column + 0.5 - total_px / 2
    for width in widths:
        cover = np.clip(np.minimum(xs + 0.5, at + width) - np.maximum(xs - 0.5, at), 0, 1)
        ink = np.maximum(ink, runs[:, :, None] * cover)
        at += width + gap_px
    radius_px = SPACE_PX * rng.uniform(0.17, 0.3)
    away_px = total_px / 2 + SPACE_PX * rng.uniform(0.25, 0.7) + radius_px
    dark = float(np.percentile(255 - strips, 99.5)) / 255
    rows = (-0.5, 0.5) if rng.uniform() < 0.85 else (-1.5, -0.5, 0.5, 1.5)
    ys = np.arange(strips.shape[1])[:, None] + 0.5 - strips.shape[1] / 2
    for side in _SIDES.get(kind, ()):
        for row in rows:
            distance = np.hypot(xs - (column + 0.5 + side * away_px), ys - row * SPACE_PX)
            ink = np.maximum(ink, dark * np.clip(radius_px + 0.5 - distance, 0, 1))
    return np.minimum(bare, (255 * (1 - ink)).astype(np.uint8))


def _line_widths(kind: str, rng: np.random.Generator) -> tuple[list[float], float]:
    """Return the widths of the lines of a sign from left to right, and the gap between them, in pixels."""
    thin, thick = SPACE_PX * rng.uniform(0.1, 0.22), SPACE_PX * rng.uniform(0.3, 0.65)
    gap = SPACE_PX * rng.uniform(0.18, 0.5)
    if "repeat" in kind and rng.uniform() < 0.3:
        return [thin, thin], gap  # as in old prints
    both = ([thin, thick, thin], [thick, thick], [thin, thick])
    widths = {
        "single": [thin],
        "double": [thin, thin],
        "final": [thin, thick],
        "repeat-begin": [thick, thin],
        "repeat-end": [thin, thick],
        "repeat-both": both[int(rng.integers(3))],
    }
    return widths[kind], gap


def crowd_bar_lines(
    strips: GreyImage, bar_lines: BarLines, rng: np.random.Generator
) -> tuple[GreyImage, BarLines]:
    """Move the music before some bar lines up to them: the balls of rests there are no dots of a repeat sign."""
    moved, places = strips.copy(), list(bar_lines)
    for number, (_, kind) in enumerate(bar_lines):
        stop = int(places[number][0]) - int(SPACE_PX * rng.uniform(0.3, 0.8))
        if "repeat" in kind or rng.uniform() > _CROWDED or not 4 * SPACE_PX < stop < strips.shape[2]:
            continue
        lines = np.median(moved, axis=2)[:, :, None].astype(np.float32)
        drawn = np.maximum(lines - moved[:, :, :stop], 0).mean(axis=(0, 1)) / 255
        blank = stop - 1 - int(np.flatnonzero(np.append(_BLANK, drawn) >= _BLANK)[-1])
        width = min(blank, 3 * SPACE_PX)
        if width > 0:
            moved[:, :, width:stop] = moved[:, :, : stop - width].copy()
            places[:number] = [(place + width, other) for place, other in places[:number]]
    return moved, places


def draw_brackets(
    above: GreyImage, brackets: Brackets, rng: np.random.Generator
) -> tuple[GreyImage, Brackets]:
    """Draw a first and a second ending, or one of them, as other engravers do, above a staff without any.

    `above` is [shape=(height, width)]. A number that stands far from the left end of its bracket is not told.
    """
    if any(x1 > 0 and x0 < above.shape[1] for x0, x1, _ in brackets):
        return above, brackets
    image = Image.new("L", (above.shape[1], above.shape[0]), 255)
    paint = ImageDraw.Draw(image)
    grey = int(np.percentile(above, 0.5))
    y = int(rng.integers(8, 62))
    x = float(rng.uniform(-0.2, 0.8) * above.shape[1])
    width_px, hook_px = int(rng.integers(1, 3)), SPACE_PX * rng.uniform(1.0, 2.6)
    slope_px = rng.uniform(-0.01, 0.01)
    font = ImageFont.truetype(_NUMBER_FONTS[int(rng.integers(len(_NUMBER_FONTS)))], int(rng.integers(9, 18)))
    dot, is_central = str(rng.choice(["", ".", "."])), rng.uniform() < _CENTRAL
    drawn = Brackets()
    names = [(1,), (2,)] if rng.uniform() < 0.7 else [_OTHER[int(rng.integers(len(_OTHER)))]]
    for numbers in names:
        end = x + SPACE_PX * rng.uniform(8, 30)
        end_y = y + slope_px * (end - x)
        paint.line((x, y, end, end_y), fill=grey, width=width_px)
        paint.line((x, y, x, y + hook_px), fill=grey, width=width_px)
        if numbers == (1,) or rng.uniform() < 0.6:
            paint.line((end, end_y, end, end_y + hook_px), fill=grey, width=width_px)
        text = ", ".join(map(str, numbers)) + dot
        at = (x + end) / 2 if is_central else x + SPACE_PX * rng.uniform(0.3, 1.5)
        paint.text((at, y + rng.uniform(0, 4)), text, fill=grey, font=font)
        drawn.append((x, end, () if is_central else numbers))
        x, y = end + SPACE_PX * rng.uniform(0.1, 1.0), round(end_y)
    blurred = image.filter(ImageFilter.GaussianBlur(rng.uniform(0, _MOST_BLUR_PX)))
    return np.minimum(above, np.asarray(blurred)), drawn


def vary(strips: GreyImage, rng: np.random.Generator) -> Float32:
    """Return the ink of strips, evened as the networks have it, bent, with other contrast, and with spots."""
    ink = np.asarray(1 - strips.astype(np.float32) / 255, np.float32)
    if rng.uniform() < 0.7:
        ink = _bent(ink, rng)
    ink = ink / max(float(np.percentile(ink, 99.5)), 0.2)
    if rng.uniform() < 0.3:
        ink = ink ** rng.uniform(0.6, 1.6)
    if rng.uniform() < 0.3:
        for _ in range(int(rng.integers(1, 6))):
            staff, y, x = (int(rng.integers(n)) for n in ink.shape)
            height, width = rng.integers(1, 6, 2)
            ink[staff, y : y + height, x : x + width] = rng.integers(2)
    return np.clip(ink, 0, 1.5).astype(np.float32)


def _bent(ink: Float32, rng: np.random.Generator) -> Float32:
    """Bend the rows of strips along a sine, and lean their columns."""
    _, height, width = ink.shape
    x, amplitude = np.arange(width), rng.uniform(0, 3) * rng.uniform()
    curve = amplitude * np.sin(2 * np.pi * (x / rng.uniform(150, 700) + rng.uniform()))
    rows = np.clip(np.arange(height)[:, None] + np.round(curve).astype(int), 0, height - 1)
    lean = rng.uniform(-2, 2) * rng.uniform() * np.linspace(-1, 1, height)
    columns = np.clip(x + np.round(lean).astype(int)[:, None], 0, width - 1)
    return ink[:, rows, columns]
