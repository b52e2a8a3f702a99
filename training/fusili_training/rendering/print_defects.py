"""Defects of old prints: uneven ink, broken lines, bleed-through, pencil, stamps, stains, curl, black and white.

`Degradation` is what a scanner or a camera does to a page; this is what has happened to the page before. Nothing
moves but by the curl of the paper, which bends lines near the spine and says by how much.

Augraphy (8.2.6) has many more effects. It draws from global random numbers, and two of 17 effects gave another
page with the same seed (`Folding`, `BadPhotoCopy`); effects took from milliseconds to 39 s a page; its line
degradation follows any gradient, where we must spare ledger lines and beams; its book binding returns a page of
another size, without a map for labels; it has no stamps; and it needs OpenCV, Numba and scikit-image. So these
are our own.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np
from scipy import ndimage

from fusili_mir.arrays import Float32, Float64, GreyImage
from fusili_mir.errors import InputError
from fusili_training.rendering.page_marks import PAGE_SPACES, draw_handwriting, draw_stamp

__all__ = ["DefectLimits", "PrintDefects"]

_NONE_SHARE = 1 / 3  # of prints are without a given defect
_CURL_SHIFT = 0.006  # of the width of a page: how far lines bend at the spine of the most curled page
_CURL_REACH = 0.15  # of the width: where that has fallen to a third
_SHADE_REACH = 0.09
_SPOTS, _SPECKS = 50.0, 250.0  # on a page of 100 x 150 staff spaces


@dataclass(frozen=True)
class DefectLimits:
    """The largest defects that `PrintDefects.draw` makes, 0 to 1 each; a third of all prints lack each."""

    ink: float = 0.8  # strokes that gain or lose, with rough edges, differently over the page
    broken_lines: float = 0.8  # staff lines with gaps
    bleed_through: float = 0.7  # the other side of the paper
    handwriting: float = 0.6  # fingerings, circles, words
    stamps: float = 0.3  # share of pages with a library stamp
    stains: float = 0.7  # foxing, dirt, water
    curl: float = 0.7  # shade and bent lines at the spine
    bitonal: float = 0.3  # share of prints that are scanned in black and white

    def __post_init__(self) -> None:
        for item in fields(self):
            value = getattr(self, item.name)
            if not 0.0 <= value <= 1.0:
                raise InputError(f"defects.{item.name} is {value}; expected 0 to 1")


@dataclass(frozen=True)
class PrintDefects:
    """The defects of one print; the defaults leave its pages as they are."""

    ink: float = 0.0
    broken_lines: float = 0.0
    bleed_through: float = 0.0
    handwriting: float = 0.0
    stamps: float = 0.0
    stains: float = 0.0
    curl: float = 0.0  # negative: lines bend upwards
    bitonal: bool = False
    spine_right: bool = False

    def __post_init__(self) -> None:
        for item in fields(self):
            value = getattr(self, item.name)
            low = -1.0 if item.name == "curl" else 0.0
            if not low <= value <= 1.0:
                raise InputError(f"a print with {item.name} = {value}; expected {low:g} to 1")

    @classmethod
    def draw(cls, limits: DefectLimits, rng: np.random.Generator) -> PrintDefects:
        """Draw the defects of a print at random, each evenly within its limits or not at all."""
        names = ("ink", "broken_lines", "bleed_through", "handwriting", "stains", "curl")
        low = -_NONE_SHARE / (1 - _NONE_SHARE)
        drawn = {name: getattr(limits, name) * max(float(rng.uniform(low, 1.0)), 0.0) for name in names}
        drawn["curl"] *= float(rng.choice([-1.0, 1.0]))
        return cls(
            **drawn,
            stamps=limits.stamps,
            bitonal=bool(rng.uniform() < limits.bitonal),
            spine_right=bool(rng.uniform() < 0.5),
        )

    def flat(self) -> PrintDefects:
        """Return the same print without the curl of its pages, so that nothing moves."""
        return replace(self, curl=0.0)

    def next_page(self) -> PrintDefects:
        """Return the defects of the other side of a leaf, whose spine is on the other side."""
        return replace(self, spine_right=not self.spine_right)

    def apply(
        self, image: GreyImage, space_px: float, rng: np.random.Generator, back: GreyImage | None = None
    ) -> GreyImage:
        """Print one page.

        Parameters
        ----------
        image : np.ndarray [shape=(height, width)]
            The clean page, or a part of it.
        space_px : float
            Distance of its staff lines.
        rng : np.random.Generator
            Source of where things lie.
        back : np.ndarray [shape=(any height, any width)], optional
            What is printed on the back, as it looks from there; by default this page.

        Returns
        -------
        np.ndarray [shape=(height, width)]
        """
        if not image.size or self == PrintDefects(spine_right=self.spine_right):
            return image
        inking, gaps, other_side, marks, dirt, grain = rng.spawn(6)
        ink = np.asarray(1 - image.astype(np.float32) / 255, np.float32)  # 1 is black
        strokes = ink
        if self.broken_lines:
            ink = _break_lines(ink, self.broken_lines, space_px, gaps)
        if self.ink:
            ink = _uneven_ink(ink, self.ink, space_px, inking)
        if self.bleed_through:
            behind = strokes if back is None else np.asarray(1 - back.astype(np.float32) / 255, np.float32)
            ink = _over(ink, _bleed_through(behind, ink.shape, self.bleed_through, space_px, other_side))
        if self.handwriting:
            draw_handwriting(ink, strokes, self.handwriting, space_px, marks)
        if self.stamps and marks.uniform() < self.stamps:
            draw_stamp(ink, space_px, marks)
        if self.stains:
            ink = _over(ink, _stains(ink.shape, self.stains, space_px, dirt))
        if self.curl:
            ink = self._curled(ink)
        if self.bitonal:
            ink = _black_and_white(ink, grain)
        return np.asarray(np.clip(np.rint(255 * (1 - ink)), 0, 255), np.uint8)

    def shift_px(self, x0: Float64, x1: Float64, width_px: int) -> Float64:
        """Return how far down the curl moves what lies between two places of a row, on average; (n,) each."""
        reach_px = _CURL_REACH * width_px
        near, far = (width_px - x1, width_px - x0) if self.spine_right else (x0, x1)
        wide = np.maximum(far - near, 1e-3)
        share = reach_px / wide * (np.exp(-near / reach_px) - np.exp(-(near + wide) / reach_px))
        return np.asarray(self.curl * _CURL_SHIFT * width_px * share)

    def _curled(self, ink: Float32) -> Float32:
        """Bend the lines near the spine, and darken the paper there."""
        height, width = ink.shape
        x = np.arange(width, dtype=np.float64)
        shift = self.shift_px(x, x + 1, width)
        whole = np.floor(shift).astype(np.int64)
        part = (shift - whole).astype(np.float32)
        rows = np.arange(height)[:, None] - whole
        upper = np.take_along_axis(ink, np.clip(rows - 1, 0, height - 1), axis=0)
        bent = np.take_along_axis(ink, np.clip(rows, 0, height - 1), axis=0)
        bent += part * (upper - bent)
        away = width - 1 - x if self.spine_right else x
        shade = 0.6 * abs(self.curl) * np.exp(-np.square(away / (_SHADE_REACH * width)))
        return _over(bent, np.broadcast_to(shade.astype(np.float32), bent.shape))


def _over(ink: Float32, more: Float32) -> Float32:
    """Lay a second darkness over a first, as two filters of light."""
    return np.asarray(1 - (1 - ink) * (1 - more), np.float32)


def _smooth_field(shape: tuple[int, ...], scale_px: float, rng: np.random.Generator) -> Float32:
    """Return a random field of standard deviation about 1 that changes over some pixels, (height, width)."""
    height, width = shape
    coarse = rng.standard_normal((int(height / scale_px) + 3, int(width / scale_px) + 3), dtype=np.float32)
    rows = np.arange(height, dtype=np.float32) / np.float32(scale_px) + np.float32(rng.uniform())
    columns = np.arange(width, dtype=np.float32) / np.float32(scale_px) + np.float32(rng.uniform())
    return 1.3 * _between(_between(coarse, rows).T, columns).T


def _between(values: Float32, place: Float32) -> Float32:
    """Interpolate smoothly between the rows of an array."""
    below = place.astype(np.int64)
    share = (place - below)[:, None]
    share = share * share * (3 - 2 * share)
    return np.asarray(values[below] * (1 - share) + values[below + 1] * share, np.float32)


def _uneven_ink(ink: Float32, amount: float, space_px: float, rng: np.random.Generator) -> Float32:
    """Let strokes gain or lose at their edges, here more, there less; with rough edges and pale spots."""
    field = np.float32(amount) * np.clip(_smooth_field(ink.shape, 25 * space_px, rng), -1, 1)
    spread, worn = ndimage.maximum_filter(ink, size=3), ndimage.minimum_filter(ink, size=3)
    changed = ink + 0.6 * np.maximum(field, 0) * (spread - ink) + 0.35 * np.maximum(-field, 0) * (worn - ink)
    soft = ndimage.gaussian_filter(changed, 0.7)
    rough = ndimage.gaussian_filter(rng.standard_normal(ink.shape, dtype=np.float32), 0.7)
    changed = changed + np.float32(1.6 * amount) * soft * (1 - soft) * rough
    pale = np.maximum(_smooth_field(ink.shape, 0.5 * space_px, rng) - 0.8, 0)
    changed *= 1 - np.minimum(0.4 * np.float32(amount) * pale, 0.6)
    return np.asarray(np.clip(changed, 0, 1), np.float32)


def _break_lines(ink: Float32, amount: float, space_px: float, rng: np.random.Generator) -> Float32:
    """Take ink away from long, thin, level strokes: staff lines, but not heads, beams, stems or ledger lines."""
    long_px = max(int(4 * space_px), 3)
    thick_px = max(round(0.3 * space_px), 2) + 1
    lines = ndimage.grey_opening(ink, size=(1, long_px))
    thick = ndimage.grey_opening(ink, size=(thick_px, 1))
    lines = np.maximum(lines - thick, 0)
    height, width = ink.shape
    line_px, gap_px = 0.5 * space_px, space_px * float(rng.uniform(0.4, 1.5))
    coarse = rng.standard_normal((int(height / line_px) + 3, int(width / gap_px) + 3), dtype=np.float32)
    along = _between(coarse.T, np.arange(width, dtype=np.float32) / np.float32(gap_px))  # (width, rows)
    wear = along.T[(np.arange(height) / line_px).astype(np.int64)]
    wear = wear + 0.6 * _smooth_field(ink.shape, 20 * space_px, rng)  # some places are worn, others are not
    missing = np.clip(3 * (wear - (2.0 - 1.6 * amount)), 0, 1)
    return np.asarray(ink - lines * missing, np.float32)


def _bleed_through(
    back: Float32, shape: tuple[int, ...], amount: float, space_px: float, rng: np.random.Generator
) -> Float32:
    """Return the mirror image of the back, pale and blurred."""
    mirrored = ndimage.gaussian_filter(back[:, ::-1], 0.12 * space_px)
    layer = np.zeros(shape, np.float32)
    height, width = (min(a, b) for a, b in zip(shape, back.shape, strict=True))
    layer[:height, :width] = mirrored[:height, :width]
    layer = np.roll(layer, rng.integers(-2 * int(space_px), 2 * int(space_px) + 1, size=2), axis=(0, 1))
    uneven = 0.7 + 0.3 * np.clip(_smooth_field(shape, 30 * space_px, rng), -1, 1)
    return np.asarray(np.float32(0.35 * amount) * layer * uneven, np.float32)


def _stains(shape: tuple[int, ...], amount: float, space_px: float, rng: np.random.Generator) -> Float32:
    """Return foxing, dirt, darker margins and, sometimes, the rim of dried water."""
    height, width = shape
    paper = np.zeros(shape, np.float32)
    pages = height * width / space_px**2 / PAGE_SPACES
    for _ in range(rng.poisson(_SPOTS * amount * pages)):
        radius_px = space_px * float(np.exp(rng.normal(-1.1, 0.6)))
        _add_blob(paper, radius_px, float(rng.uniform(0.05, 0.35)) * (0.3 + 0.7 * amount), rng)
    for _ in range(rng.poisson(_SPECKS * amount * pages)):
        _add_blob(paper, float(rng.uniform(0.03, 0.1)) * space_px, float(rng.uniform(0.3, 1.0)), rng)
    paper += np.float32(0.03 * amount) * np.clip(1 + _smooth_field(shape, 40 * space_px, rng), 0, None)
    if rng.uniform() < 0.4 * amount:
        y = np.linspace(-1, 1, height, dtype=np.float32)[:, None] - np.float32(rng.uniform(-1, 1))
        x = np.linspace(-1, 1, width, dtype=np.float32)[None, :] - np.float32(rng.choice([-1, 1]))
        away = (
            np.hypot(x, y)
            + 0.05 * _smooth_field(shape, 10 * space_px, rng)
            - np.float32(rng.uniform(0.3, 0.9))
        )
        rim = np.exp(-np.square(away / 0.02)) * (away < 0) + np.exp(-np.square(away / 0.006)) * (away >= 0)
        paper += np.float32(0.25 * amount) * rim + np.float32(0.08 * amount) * (away < 0)
    return np.asarray(np.clip(paper, 0, 0.95), np.float32)


def _add_blob(paper: Float32, radius_px: float, darkness: float, rng: np.random.Generator) -> None:
    """Add a soft spot at a random place, in place."""
    height, width = paper.shape
    y, x = float(rng.uniform(0, height)), float(rng.uniform(0, width))
    reach = int(3 * radius_px) + 1
    rows = np.arange(max(int(y) - reach, 0), min(int(y) + reach + 1, height))
    columns = np.arange(max(int(x) - reach, 0), min(int(x) + reach + 1, width))
    wide = float(rng.uniform(0.6, 1.6))
    away = np.square((rows - y) / (radius_px * wide))[:, None] + np.square((columns - x) * wide / radius_px)
    spot = darkness * np.exp(-0.5 * away)
    paper[rows[:, None], columns] = np.maximum(paper[rows[:, None], columns], spot.astype(np.float32))


def _black_and_white(ink: Float32, rng: np.random.Generator) -> Float32:
    """Decide for each pixel whether it is black, as old scanners and copiers do."""
    grain = ndimage.gaussian_filter(rng.standard_normal(ink.shape, dtype=np.float32), 0.6)
    return np.asarray(ink + 0.1 * grain > rng.uniform(0.25, 0.5), np.float32)
