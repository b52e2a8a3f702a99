"""What happens to a page between the engraver and the camera: ink, light, turn, blur, noise, compression.

`Degradation` is the recipe of one page, small enough to store beside it. Only the turn moves anything; the
recipe says where every place of the clean page went.
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

__all__ = ["MAX_ROTATION_DEG", "Degradation"]

MAX_ROTATION_DEG = 3.0
"""The largest turn that `Degradation.draw` gives a page."""


@dataclass(frozen=True)
class Degradation:
    """One way to spoil a page; the default leaves it as it is."""

    rotation_deg: float = 0.0  # counter-clockwise as seen
    ink: float = 0.0  # share of the darkness that the strokes lose (negative: gain) to their surroundings
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
        """Draw a recipe at random.

        Parameters
        ----------
        rng : np.random.Generator
            The source of chance.
        strength : float
            0 leaves the page as it is, 1 reaches `MAX_ROTATION_DEG`, a blur of 1.2 px, a grain of 8 % of white
            and half of the light gone in one corner.

        Returns
        -------
        Degradation
            The same recipe for the same state of `rng`.
        """
        if not 0.0 <= strength <= 1.0:
            raise InputError(f"degradation of strength {strength}; expected 0 to 1")
        rotation, ink, light, paper, blur, noise, jpeg = rng.uniform(0.0, 1.0, size=7)
        return cls(
            rotation_deg=strength * MAX_ROTATION_DEG * (2 * rotation - 1),
            ink=strength * 0.4 * (2 * ink - 1),
            light=strength * 0.5 * light,
            paper=1.0 - strength * 0.25 * paper,
            blur_px=strength * 1.2 * blur,
            noise=strength * 0.08 * noise,
            jpeg_quality=round(95 - strength * 60 * jpeg) if strength > 0 else None,
        )

    def apply(self, image: GreyImage, rng: np.random.Generator) -> GreyImage:
        """Spoil one page.

        Parameters
        ----------
        image : np.ndarray [shape=(height, width)]
            The clean page.
        rng : np.random.Generator
            Decides where the shadow falls and what the grain looks like.

        Returns
        -------
        np.ndarray [shape=(height, width)]
            The page on the same canvas.
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
        spoilt = np.clip(np.rint(255 * page), 0, 255).astype(np.uint8)
        return spoilt if self.jpeg_quality is None else _compress(spoilt, self.jpeg_quality)

    def to_degraded(
        self, x: npt.ArrayLike, y: npt.ArrayLike, *, width_px: int, height_px: int
    ) -> tuple[Float64, Float64]:
        """Map places on the clean page of the given size to the degraded page."""
        return Skew(self.rotation_deg, width_px, height_px).to_original(x, y)

    def to_clean(
        self, x: npt.ArrayLike, y: npt.ArrayLike, *, width_px: int, height_px: int
    ) -> tuple[Float64, Float64]:
        """Map places on the degraded page to the clean page of the given size."""
        return Skew(self.rotation_deg, width_px, height_px).to_deskewed(x, y)


def _shadow(shape: tuple[int, ...], rng: np.random.Generator) -> Float32:
    """Return a smooth shadow from 0 to 1 [shape=(height, width)]: a slope across the page and a soft blob."""
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
    """Send a page through JPEG."""
    buffer = io.BytesIO()
    Image.fromarray(image).save(buffer, format="JPEG", quality=quality)
    with Image.open(buffer) as decoded:
        return np.asarray(decoded)
