"""What readers and libraries leave on a page: pencilled fingerings, circles, words and lines; stamps.

Marks are drawn larger than they are and then reduced, so they are smooth; they only darken what they lie on.
"""

from __future__ import annotations

import numpy as np
from PIL import Image, ImageDraw, ImageFont
from scipy import ndimage

from fusili_mir.arrays import Float32, Float64

__all__ = ["PAGE_SPACES", "draw_handwriting", "draw_stamp"]

_LARGER = 3  # marks are drawn at this many times their size
_MARKS = 30.0  # on a page of 100 x 150 staff spaces, with all its handwriting
PAGE_SPACES = 100.0 * 150.0
"""Area of a usual page, in staff spaces."""

# Strokes of digits, in a box of width 1 and height 2; y points down.
_DIGITS = {
    1: [[(0.2, 0.5), (0.6, 0.0), (0.55, 2.0)]],
    2: [[(0.1, 0.5), (0.4, 0.0), (0.9, 0.3), (0.7, 1.0), (0.1, 1.9), (0.5, 1.8), (1.0, 2.0)]],
    3: [[(0.1, 0.2), (0.6, 0.0), (0.9, 0.4), (0.4, 0.9), (0.95, 1.3), (0.7, 1.9), (0.1, 1.8)]],
    4: [[(0.5, 0.0), (0.1, 1.2), (1.0, 1.1)], [(0.75, 0.7), (0.7, 2.0)]],
    5: [[(0.3, 0.1), (0.2, 0.9), (0.7, 0.8), (0.9, 1.4), (0.5, 2.0), (0.1, 1.8)], [(0.3, 0.1), (0.95, 0.0)]],
}
_OWNERS = (
    "BIBLIOTHEK",
    "BIBLIOTHEQUE",
    "LIBRARY",
    "CONSERVATOIRE",
    "MUSIKSAMMLUNG",
    "UNIVERSITY",
    "BIBLIOTECA",
)
_PLACES = ("DE MUSIQUE", "MUSIC DEPT.", "STADT", "REGIA", "COLLEGE", "MUSIKVEREIN", "ACCADEMIA", "KGL. HOF")


def draw_handwriting(
    ink: Float32, strokes: Float32, amount: float, space_px: float, rng: np.random.Generator
) -> None:
    """Write on a page, in place.

    Parameters
    ----------
    ink : np.ndarray [shape=(height, width)]
        Darkness from 0 to 1.
    strokes : np.ndarray [shape=(height, width)]
        What is printed: people write beside it.
    amount : float
        0 to 1.
    space_px : float
        Distance of the staff lines.
    rng : np.random.Generator
    """
    pages = ink.size / space_px**2 / PAGE_SPACES
    n_marks = rng.poisson(_MARKS * amount * pages)
    printed = np.argwhere(strokes[::4, ::4] > 0.5) * 4
    if not n_marks or not len(printed):
        return
    is_pen = rng.uniform() < 0.25
    darkness, width = (
        (0.9, 0.14) if is_pen else (float(rng.uniform(0.5, 0.85)), float(rng.uniform(0.16, 0.28)))
    )
    kinds = (_digit, _digit, _digit, _ring, _arc, _word, _wedge, _line)
    for _ in range(n_marks):
        lines = kinds[int(rng.integers(len(kinds)))](rng)
        layer = _drawn(lines, space_px, width * float(rng.uniform(0.8, 1.2)), rng)
        if not is_pen:
            grain = rng.uniform(0.4, 1.0, size=layer.shape).astype(np.float32)  # of the paper
            layer = layer * ndimage.uniform_filter(grain, 2)
        y, x = printed[int(rng.integers(len(printed)))] + rng.normal(0, 2.0, size=2) * space_px
        _lay(ink, np.float32(darkness) * layer, int(x - layer.shape[1] / 2), int(y - layer.shape[0] / 2))


def draw_stamp(ink: Float32, space_px: float, rng: np.random.Generator) -> None:
    """Stamp a page at a random place, in place: an oval, a ring or a frame with words, unevenly inked."""
    side = int(_LARGER * space_px * rng.uniform(9, 16))
    flat = float(rng.uniform(0.5, 1.0))
    canvas = Image.new("L", (side, side))
    pen = ImageDraw.Draw(canvas)
    line = max(int(0.12 * _LARGER * space_px), 1)
    box = (line, int(side * (1 - flat) / 2), side - line, int(side * (1 + flat) / 2))
    kind = str(rng.choice(["oval", "frame", "words"]))
    for inset in (0, 3 * line)[: 1 + int(rng.integers(2))] if kind != "words" else ():
        inner = (box[0] + inset, box[1] + inset, box[2] - inset, box[3] - inset)
        (pen.ellipse if kind == "oval" else pen.rectangle)(inner, outline=255, width=line)
    texts = [str(rng.choice(_OWNERS)), str(rng.choice(_PLACES)), str(rng.integers(1840, 1960))]
    rows = texts[: 1 + int(rng.integers(3))]
    for row, text in enumerate(rows):
        size = side * flat / (2.2 + 1.6 * len(rows))
        font = ImageFont.load_default(size=max(size, 6))
        wide = pen.textlength(text, font=font)
        if wide > 0.75 * side:
            font = ImageFont.load_default(size=max(size * 0.75 * side / wide, 6))
        place = (side / 2, side / 2 + flat * side * 0.55 * ((row + 0.5) / len(rows) - 0.5))
        pen.text(place, text, fill=255, font=font, anchor="mm")
    canvas = canvas.rotate(float(rng.normal(0, 12)), Image.Resampling.BICUBIC)
    canvas = canvas.resize((side // _LARGER, side // _LARGER), Image.Resampling.BOX)
    layer = np.asarray(np.asarray(canvas, np.float32) / 255, np.float32)
    uneven = ndimage.gaussian_filter(rng.standard_normal(layer.shape), 0.8 * space_px)
    uneven = np.clip(0.75 + 0.35 * uneven / max(float(uneven.std()), 1e-6), 0, 1)
    speckled = ndimage.gaussian_filter(rng.uniform(size=layer.shape), 0.6) > 0.42
    layer *= (uneven * (0.5 + 0.5 * speckled) * rng.uniform(0.55, 0.95)).astype(np.float32)
    height, width = ink.shape
    x = int(rng.uniform(-0.2, 0.8) * max(width - layer.shape[1], 1) + 0.1 * width)
    _lay(ink, layer, x, int(rng.uniform(0, 1) * max(height - layer.shape[0], 1)))


def _lay(ink: Float32, layer: Float32, left: int, top: int) -> None:
    """Darken a page by a mark, in place; what lies beyond the page is cut off."""
    x0, y0 = max(left, 0), max(top, 0)
    x1, y1 = min(left + layer.shape[1], ink.shape[1]), min(top + layer.shape[0], ink.shape[0])
    if x0 < x1 and y0 < y1:
        here = ink[y0:y1, x0:x1]
        here += (1 - here) * layer[y0 - top : y1 - top, x0 - left : x1 - left]


def _drawn(lines: list[Float64], space_px: float, width_spaces: float, rng: np.random.Generator) -> Float32:
    """Draw lines [shape=(n, 2)], in staff spaces, with an unsteady hand."""
    points = np.concatenate(lines)
    low, margin = points.min(axis=0), 1.0
    size = np.ceil((np.ptp(points, axis=0) + 2 * margin) * space_px).astype(int)
    canvas = Image.new("L", (int(size[0]) * _LARGER, int(size[1]) * _LARGER))
    pen = ImageDraw.Draw(canvas)
    scale = _LARGER * space_px
    for line in lines:
        smooth = _rounded(line)
        wobble = np.cumsum(rng.normal(0, 0.012, size=smooth.shape), axis=0)
        places = (smooth + wobble - low + margin) * scale
        pressed = (
            width_spaces
            * scale
            * np.interp(np.linspace(0, 1, len(places)), [0, 0.2, 0.8, 1], rng.uniform(0.6, 1.15, size=4))
        )
        for (x, y), radius in zip(places, pressed / 2, strict=True):
            pen.ellipse((x - radius, y - radius, x + radius, y + radius), fill=255)
    reduced = canvas.resize((int(size[0]), int(size[1])), Image.Resampling.BOX)
    return np.asarray(np.asarray(reduced, np.float32) / 255, np.float32)


def _rounded(line: Float64) -> Float64:
    """Draw a smooth line through points (n, 2), with a point at least every twentieth of a space."""
    steps = np.concatenate([[0.0], np.cumsum(np.hypot(*np.diff(line, axis=0).T))])
    place = np.arange(0, steps[-1] + 0.05, 0.05)
    dense = np.stack([np.interp(place, steps, line[:, axis]) for axis in (0, 1)], axis=1)
    return np.asarray(ndimage.gaussian_filter1d(dense, 3.0, axis=0, mode="nearest"))


def _digit(rng: np.random.Generator) -> list[Float64]:
    height, slant = rng.uniform(0.7, 1.2), rng.normal(0.1, 0.15)
    strokes = _DIGITS[int(rng.integers(1, 6))]
    upright = [np.array(stroke) + rng.normal(0, 0.06, size=(len(stroke), 2)) for stroke in strokes]
    return [np.stack([0.7 * s[:, 0] - slant * s[:, 1], s[:, 1]], axis=1) * height for s in upright]


def _ring(rng: np.random.Generator) -> list[Float64]:
    wide, high = rng.uniform(1.2, 4.0), rng.uniform(1.2, 3.0)
    turn = np.linspace(0, 2 * np.pi * rng.uniform(0.95, 1.2), 60) + rng.uniform(0, 6)
    out = 1 + 0.06 * np.sin(2 * turn + rng.uniform(0, 6)) + np.linspace(0, rng.normal(0, 0.1), 60)
    return [np.stack([wide * out * np.cos(turn), high * out * np.sin(turn)], axis=1)]


def _arc(rng: np.random.Generator) -> list[Float64]:
    x = np.linspace(0, rng.uniform(3, 14), 40)
    bow = rng.uniform(0.5, 2.0) * rng.choice([-1, 1])
    return [np.stack([x, bow * np.square(2 * x / x[-1] - 1) + x * rng.normal(0, 0.05)], axis=1)]


def _word(rng: np.random.Generator) -> list[Float64]:
    """Loops that look like joined letters."""
    n_letters = int(rng.integers(3, 10))
    t = np.linspace(0, 2 * np.pi * n_letters, 24 * n_letters)
    letter = (t / (2 * np.pi)).astype(int).clip(0, n_letters - 1)
    high = rng.choice([0.35, 0.4, 0.45, 0.9, 1.1], size=n_letters)[letter]
    loop = rng.uniform(0.1, 0.4, size=n_letters)[letter]
    x = 0.11 * t + loop * np.sin(t + rng.uniform(0, 1))
    y = -high * (1 - np.cos(t)) / 2 * 1.4
    return [rng.uniform(1.2, 2.0) * np.stack([x - 0.25 * y, y + 0.03 * x * rng.normal()], axis=1)]


def _wedge(rng: np.random.Generator) -> list[Float64]:
    wide, high = rng.uniform(1, 10), rng.uniform(0.4, 0.9)
    side = rng.choice([-1, 1])
    return [np.array([(0, 0), (side * wide, high)]), np.array([(0, 0), (side * wide, -high)])]


def _line(rng: np.random.Generator) -> list[Float64]:
    turn = rng.choice([0.0, np.pi / 2]) + rng.normal(0, 0.15)
    length = rng.uniform(1.5, 6)
    bend = rng.normal(0, 0.3)
    ends = np.array([(0, 0), (length / 2, bend), (length, 0)])
    return [ends @ np.array([(np.cos(turn), np.sin(turn)), (-np.sin(turn), np.cos(turn))])]
