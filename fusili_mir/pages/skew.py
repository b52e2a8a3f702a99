"""Estimating the skew of a page, and deskewing it.

A page is turned about its centre on a canvas of unchanged size, so the pixels of the original and of the deskewed
page are related by one rotation, exact in both directions.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from PIL import Image
from scipy import ndimage

from fusili_mir.arrays import Float64, GreyImage

__all__ = ["MAX_SKEW_DEG", "Skew", "deskew_page", "estimate_skew", "paper_grey"]

MAX_SKEW_DEG = 5.0
"""Largest angle that is searched for."""

_WORK_SIZE_PX = 1600  # longer side of the image that is searched
_N_SLICES = 96  # vertical slices of the page, narrow enough for lines to stay sharp in each
_COARSE_STEP_DEG = 0.2
_FINE_STEP_DEG = 0.02
_SOFT_ROWS = 1.0  # standard deviation of the blur before energies are compared
_MIN_PEAK = 1.35  # energy of the best angle over the median angle; noise and empty pages stay below it


@dataclass(frozen=True)
class Skew:
    """The skew of one page, as maps between its original and its deskewed pixels.

    `angle_deg` is the angle by which the original page is turned, counter-clockwise as seen. Both maps take
    scalars or arrays of continuous coordinates, not pixel indices: the centre of pixel (0, 0) is (0.5, 0.5).

    >>> x, y = Skew(angle_deg=2.0, width_px=400, height_px=300).to_deskewed(200.0, 150.0)
    >>> float(x), float(y)  # the centre of the page stays where it is
    (200.0, 150.0)
    """

    angle_deg: float
    width_px: int
    height_px: int

    def to_deskewed(self, x: npt.ArrayLike, y: npt.ArrayLike) -> tuple[Float64, Float64]:
        """Map places on the original page to the deskewed page."""
        return self._turn(x, y, self.angle_deg)

    def to_original(self, x: npt.ArrayLike, y: npt.ArrayLike) -> tuple[Float64, Float64]:
        """Map places on the deskewed page to the original page."""
        return self._turn(x, y, -self.angle_deg)

    def _turn(self, x: npt.ArrayLike, y: npt.ArrayLike, clockwise_deg: float) -> tuple[Float64, Float64]:
        cos, sin = np.cos(np.deg2rad(clockwise_deg)), np.sin(np.deg2rad(clockwise_deg))
        right = np.asarray(x, dtype=np.float64) - self.width_px / 2
        down = np.asarray(y, dtype=np.float64) - self.height_px / 2
        return self.width_px / 2 + cos * right - sin * down, self.height_px / 2 + sin * right + cos * down


def paper_grey(image: GreyImage) -> int:
    """Return the grey value of the paper: a tenth of the page is lighter."""
    stride = max(1, max(image.shape) // 1000)
    return int(np.percentile(image[::stride, ::stride], 90))


def deskew_page(image: GreyImage, skew_deg: float) -> GreyImage:
    """Turn a page back about its centre by its skew.

    Parameters
    ----------
    image : np.ndarray [shape=(height, width)]
        The original page.
    skew_deg : float
        Degrees by which the page is turned, counter-clockwise as seen; see `estimate_skew`.

    Returns
    -------
    np.ndarray [shape=(height, width)]
        The deskewed page on the same canvas; corners that the page does not cover are filled with paper.
    """
    if skew_deg == 0.0:
        return image
    height, width = image.shape
    skew = Skew(skew_deg, width, height)
    (x0, x_right, x_down), (y0, y_right, y_down) = skew.to_original([0.0, 1.0, 0.0], [0.0, 0.0, 1.0])
    deskewed = Image.fromarray(image).transform(
        (width, height),
        Image.Transform.AFFINE,
        (x_right - x0, x_down - x0, x0, y_right - y0, y_down - y0, y0),
        resample=Image.Resampling.BICUBIC,
        fillcolor=paper_grey(image),
    )
    return np.asarray(deskewed)


def estimate_skew(image: GreyImage) -> float:
    """Find the angle at which the lines of a page give the sharpest row profile.

    Parameters
    ----------
    image : np.ndarray [shape=(height, width)]
        The page.

    Returns
    -------
    float
        Degrees by which the page is turned, counter-clockwise as seen, within +-`MAX_SKEW_DEG`; 0.0 when no
        angle stands out, as on an empty page.
    """
    slices, slice_px = _slice_edges(image)
    coarse = np.arange(-MAX_SKEW_DEG, MAX_SKEW_DEG + _COARSE_STEP_DEG / 2, _COARSE_STEP_DEG)
    energy = _profile_energy(slices, slice_px, coarse)
    best = int(energy.argmax())
    if energy[best] <= _MIN_PEAK * np.median(energy):
        return 0.0
    reach = np.arange(-_COARSE_STEP_DEG, _COARSE_STEP_DEG + _FINE_STEP_DEG / 2, _FINE_STEP_DEG)
    fine = coarse[best] + reach
    energy = _profile_energy(slices, slice_px, fine)
    best = int(np.clip(energy.argmax(), 1, len(fine) - 2))
    before, peak, after = energy[best - 1 : best + 2]
    bend = before - 2 * peak + after
    shift = 0.5 * (before - after) / bend if bend < 0 else 0.0
    angle_deg = float(fine[best] + np.clip(shift, -1, 1) * _FINE_STEP_DEG)
    return float(np.clip(angle_deg, -MAX_SKEW_DEG, MAX_SKEW_DEG))


def _slice_edges(image: GreyImage) -> tuple[Float64, float]:
    """Reduce a page to the horizontal edges in its vertical slices.

    Returns
    -------
    np.ndarray [shape=(n_slices, height)]
        Vertical derivative of the mean of each slice.
    float
        Width of a slice, in units of the height of a row.
    """
    height, width = image.shape
    n_slices = min(_N_SLICES, width)
    n_rows = min(height, max(1, round(height * min(1.0, _WORK_SIZE_PX / max(height, width)))))
    slices = np.asarray(
        Image.fromarray(image).resize((n_slices, n_rows), Image.Resampling.BOX), dtype=np.float64
    ).T
    reach = 1 + 2 * (n_rows // 50)
    paper = ndimage.minimum_filter1d(ndimage.maximum_filter1d(slices, reach, axis=1), reach, axis=1)
    dark = paper - slices
    # The grain of the paper follows the pixel grid of the camera, or JPEG blocks, and must not count.
    dark = np.maximum(dark - 2.5 * np.percentile(dark, 25), 0)
    edges = np.diff(dark, axis=1, append=dark[:, -1:])
    # A slice with a black margin or a photograph must not dominate the others.
    strength = np.sqrt((edges**2).mean(axis=1, keepdims=True))
    edges /= np.maximum(strength, np.median(strength)) + 1e-9
    return edges, (width / n_slices) / (height / n_rows)


def _profile_energy(slices: Float64, slice_px: float, angles_deg: Float64) -> Float64:
    """Return the energy of the row profile after deskewing the slices by each angle [shape=(n_angles,)]."""
    n_slices, n_rows = slices.shape
    padded = 1 << int(n_rows + np.tan(np.deg2rad(MAX_SKEW_DEG)) * slice_px * n_slices).bit_length()
    spectra = np.fft.rfft(slices, n=padded, axis=1)  # (n_slices, n_freqs)
    omega = 2 * np.pi * np.fft.rfftfreq(padded)
    soft = np.exp(
        -((omega * _SOFT_ROWS) ** 2)
    )  # lines that happen to fall sharply on the row grid must not win
    energy = np.empty(len(angles_deg))
    for i, angle_deg in enumerate(angles_deg):
        # Turned counter-clockwise, a line rises to the right; each slice is shifted down by that rise.
        step = np.exp(-1j * omega * np.tan(np.deg2rad(angle_deg)) * slice_px)
        total = np.zeros_like(omega, dtype=np.complex128)
        for spectrum in spectra[::-1]:
            total = total * step + spectrum
        energy[i] = (soft * (total.real**2 + total.imag**2)).sum()
    return energy
