"""Degrading a page like a scan or a photograph: rotation, ink, light, blur, noise, compression.

A `Degradation` is the recipe for one page. Only the rotation moves anything; the recipe maps every place of the
clean page to the degraded page and back.
"""

from __future__ import annotations

import io
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from PIL import Image
from scipy import ndimage

from fusili_mir.arrays import Float32, Float64, GreyImage
from fusili_mir.errors import InputError
from fusili_mir.pages.skew import Skew, deskew_page

__all__ = ["MAX_ROTATION_DEG", "Degradation", "DegradationLimits"]

MAX_ROTATION_DEG = 3.0
"""Largest rotation that is drawn for a page."""

_BEST_JPEG_QUALITY = 95


@dataclass(frozen=True)
class DegradationLimits:
    """The largest changes that `Degradation.draw_within` makes to a page; the defaults change nothing."""

    rotation_deg: float = 0.0  # in either direction
    ink: float = 0.0  # in either direction
    light: float = 0.0  # share of the light that is missing in the darkest place
    paper: float = 0.0  # loss of brightness of the paper
    blur_px: float = 0.0
    noise: float = 0.0
    jpeg_loss: float = 0.0  # points of JPEG quality below 95; 0: no compression

    def __post_init__(self) -> None:
        for name, high in (
            ("rotation_deg", MAX_ROTATION_DEG),
            ("ink", 1.0),
            ("light", 1.0),
            ("paper", 1.0),
            ("blur_px", 100.0),
            ("noise", 1.0),
            ("jpeg_loss", _BEST_JPEG_QUALITY - 1.0),
        ):
            value = getattr(self, name)
            if not 0.0 <= value <= high:
                raise InputError(f"{name} is {value}; expected 0 to {high:g}")


@dataclass(frozen=True)
class Degradation:
    """One way to degrade a page; the defaults leave it unchanged."""

    rotation_deg: float = 0.0  # counter-clockwise as seen
    ink: float = 0.0  # share of the darkness that strokes lose (negative: gain) to their surroundings
    light: float = 0.0  # share of the light that is missing in the darkest place of the page
    paper: float = 1.0  # brightness of the paper in full light
    blur_px: float = 0.0  # standard deviation of the blur
    noise: float = 0.0  # standard deviation of the grain, as a share of the white level
    jpeg_quality: int | None = None  # 1 .. 95; None for no compression

    def __post_init__(self) -> None:
        for name, low, high in (
            ("rotation_deg", -45.0, 45.0),
            ("ink", -1.0, 1.0),
            ("light", 0.0, 1.0),
            ("paper", 0.0, 1.0),
            ("blur_px", 0.0, 100.0),
            ("noise", 0.0, 1.0),
        ):
            value = getattr(self, name)
            if not low <= value <= high:
                raise InputError(f"degradation with {name} = {value}; expected {low:g} to {high:g}")
        if self.jpeg_quality is not None and not 1 <= self.jpeg_quality <= 95:
            raise InputError(f"degradation with jpeg_quality = {self.jpeg_quality}; expected 1 to 95 or None")

    @classmethod
    def draw(cls, rng: np.random.Generator, strength: float = 1.0) -> Degradation:
        """Draw a degradation at random.

        Parameters
        ----------
        rng : np.random.Generator
            Source of the random numbers.
        strength : float
            0 leaves the page unchanged; 1 reaches a rotation of `MAX_ROTATION_DEG`, a blur of 1.2 px, a grain of
            8 % of the white level, and half of the light missing in the darkest place.

        Returns
        -------
        Degradation
        """
        if not 0.0 <= strength <= 1.0:
            raise InputError(f"degradation of strength {strength}; expected 0 to 1")
        limits = DegradationLimits(
            rotation_deg=strength * MAX_ROTATION_DEG,
            ink=strength * 0.4,
            light=strength * 0.5,
            paper=strength * 0.25,
            blur_px=strength * 1.2,
            noise=strength * 0.08,
            jpeg_loss=strength * 60,
        )
        return cls.draw_within(limits, rng)

    @classmethod
    def draw_within(cls, limits: DegradationLimits, rng: np.random.Generator) -> Degradation:
        """Draw a degradation at random, each change evenly within its limits."""
        rotation, ink, light, paper, blur, noise, jpeg = rng.uniform(0.0, 1.0, size=7)
        return cls(
            rotation_deg=limits.rotation_deg * (2 * rotation - 1),
            ink=limits.ink * (2 * ink - 1),
            light=limits.light * light,
            paper=1.0 - limits.paper * paper,
            blur_px=limits.blur_px * blur,
            noise=limits.noise * noise,
            jpeg_quality=round(_BEST_JPEG_QUALITY - limits.jpeg_loss * jpeg) if limits.jpeg_loss else None,
        )

    def apply(self, image: GreyImage, rng: np.random.Generator) -> GreyImage:
        """Degrade one page.

        Parameters
        ----------
        image : np.ndarray [shape=(height, width)]
            The clean page.
        rng : np.random.Generator
            Source of the shadow's place and of the grain.

        Returns
        -------
        np.ndarray [shape=(height, width)]
            The degraded page on the same canvas.
        """
        turned = deskew_page(image, -self.rotation_deg)
        page = turned.astype(np.float32) / 255
        if self.ink:
            spread = ndimage.maximum_filter if self.ink > 0 else ndimage.minimum_filter
            page += abs(self.ink) * (spread(page, size=3) - page)
        if self.light:
            page *= 1.0 - self.light * _shadow(page.shape, rng)
        page *= self.paper
        if self.blur_px:
            page = ndimage.gaussian_filter(page, self.blur_px)
        if self.noise:
            page += self.noise * rng.standard_normal(page.shape, dtype=np.float32)
        degraded = np.clip(np.rint(255 * page), 0, 255).astype(np.uint8)
        return degraded if self.jpeg_quality is None else _compress(degraded, self.jpeg_quality)

    def to_degraded(
        self, x: npt.ArrayLike, y: npt.ArrayLike, *, width_px: int, height_px: int
    ) -> tuple[Float64, Float64]:
        """Map places on a clean page of the given size to the degraded page."""
        return Skew(self.rotation_deg, width_px, height_px).to_original(x, y)

    def to_clean(
        self, x: npt.ArrayLike, y: npt.ArrayLike, *, width_px: int, height_px: int
    ) -> tuple[Float64, Float64]:
        """Map places on a degraded page of the given size to the clean page."""
        return Skew(self.rotation_deg, width_px, height_px).to_deskewed(x, y)


def _shadow(shape: tuple[int, ...], rng: np.random.Generator) -> Float32:
    """Return a smooth shadow from 0 to 1 [shape=(height, width)]: a gradient across the page and a soft blob."""
    height, width = shape
    y = np.linspace(-1, 1, height, dtype=np.float32)[:, None]
    x = np.linspace(-1, 1, width, dtype=np.float32)[None, :]
    direction = rng.uniform(0, 2 * np.pi)
    slope = np.float32(np.cos(direction)) * x + np.float32(np.sin(direction)) * y
    blob_x, blob_y = rng.uniform(-1, 1, size=2).astype(np.float32)
    radius = np.float32(rng.uniform(0.3, 0.8))
    blob = np.exp(-((x - blob_x) ** 2 + (y - blob_y) ** 2) / (2 * radius**2))
    shadow = slope + np.float32(2 * rng.uniform()) * blob
    shadow -= shadow.min()
    return np.asarray(shadow / max(float(shadow.max()), 1e-6), dtype=np.float32)


def _compress(image: GreyImage, quality: int) -> GreyImage:
    """Compress a page as JPEG and decode it again."""
    buffer = io.BytesIO()
    Image.fromarray(image).save(buffer, format="JPEG", quality=quality)
    with Image.open(buffer) as decoded:
        return np.asarray(decoded)
