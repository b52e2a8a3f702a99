"""The ink of a page: whatever is darker than the paper around it, in any lighting."""

from __future__ import annotations

import numpy as np
from PIL import Image
from scipy import ndimage

from fusili_mir.arrays import Float32, GreyImage

__all__ = ["evenly_lit", "ink_map", "reduce_page"]


def reduce_page(image: GreyImage, factor: int) -> GreyImage:
    """Average blocks of factor x factor pixels; x on the page is factor * x in the result, likewise y.

    >>> reduce_page(np.array([[0, 100], [100, 200]], np.uint8), 2).tolist()
    [[100]]
    """
    if factor <= 1:
        return image
    return np.asarray(Image.fromarray(image).reduce(factor))


def ink_map(image: GreyImage) -> Float32:
    """Return the darkness of each pixel relative to the paper around it.

    Parameters
    ----------
    image : np.ndarray [shape=(height, width)]
        The page, in any lighting.

    Returns
    -------
    np.ndarray [shape=(height, width)]
        Ink: 0 is paper and 1 is black; grain of the paper may be below 0.
    """
    height, width = image.shape
    small = np.asarray(
        Image.fromarray(image).resize((max(1, width // 4), max(1, height // 4)), Image.Resampling.BOX)
    ).astype(np.float32)
    reach = 1 + 2 * (max(small.shape) // 60)
    paper = ndimage.maximum_filter(small, size=reach)
    paper = ndimage.uniform_filter(ndimage.minimum_filter(paper, size=reach), size=reach)
    paper = np.asarray(Image.fromarray(paper).resize((width, height), Image.Resampling.BILINEAR))
    return np.asarray(1.0 - image / np.maximum(paper, 32.0), dtype=np.float32)


def evenly_lit(image: GreyImage) -> GreyImage:
    """Return a page as if it were white paper in even light."""
    return np.asarray(255 * (1 - np.clip(ink_map(image), 0, 1)), dtype=np.uint8)
