"""Between the pixels of the user's own pages and those of deskewed pages.

Systems are found, cut and encoded on deskewed pages, and `Pages` holds boxes in their pixels. What a user sees or
asks for is in pixels of the original page: results are converted when they are made, questions when they arrive.
Pages without a skew, and all pages of a symbolic score, have the same pixels in both.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from fusili_mir.arrays import Float64, Table
from fusili_mir.pages.skew import Skew

__all__ = ["box_corners_in_original", "boxes_to_original", "places_to_deskewed", "places_to_original"]


def places_to_original(
    skews: Sequence[Skew], page: npt.ArrayLike, x: npt.ArrayLike, y: npt.ArrayLike
) -> tuple[Float64, Float64]:
    """Map places on deskewed pages to the original pages.

    Parameters
    ----------
    skews : sequence of Skew
        `Pages.skews`: one per page, or empty if no page was deskewed.
    page, x, y : array_like [shape=(...)]
        Pages without an entry in `skews` are left unchanged.

    Returns
    -------
    x, y : np.ndarray [shape=(...)]

    Examples
    --------
    >>> skew = Skew(angle_deg=90.0, width_px=200, height_px=200)
    >>> x, y = places_to_original([skew], page=[0, 1], x=[150, 150], y=[100, 100])
    >>> x.round().tolist(), y.round().tolist()  # the second page has no skew
    ([100.0, 150.0], [50.0, 100.0])
    """
    return _convert(skews, page, x, y, to_original=True)


def places_to_deskewed(
    skews: Sequence[Skew], page: npt.ArrayLike, x: npt.ArrayLike, y: npt.ArrayLike
) -> tuple[Float64, Float64]:
    """Map places on original pages to the deskewed pages: the inverse of `places_to_original`."""
    return _convert(skews, page, x, y, to_original=False)


def box_corners_in_original(skews: Sequence[Skew], boxes: Table) -> Float64:
    """Map the corners of boxes on deskewed pages to the original pages.

    Parameters
    ----------
    skews : sequence of Skew
        `Pages.skews`.
    boxes : structured array with page, x0, y0, x1 and y1 [shape=(n,)]

    Returns
    -------
    np.ndarray [shape=(n, 4, 2)]
        (x, y) of the top left, top right, bottom right and bottom left corner.
    """
    x = np.stack([boxes[name] for name in ("x0", "x1", "x1", "x0")], axis=-1)
    y = np.stack([boxes[name] for name in ("y0", "y0", "y1", "y1")], axis=-1)
    return np.stack(places_to_original(skews, boxes["page"][:, None], x, y), axis=-1)


def boxes_to_original(skews: Sequence[Skew], boxes: Table) -> Table:
    """Replace boxes on deskewed pages by the smallest upright boxes around them on the original pages.

    Parameters
    ----------
    skews : sequence of Skew
        `Pages.skews`.
    boxes : structured array with page, x0, y0, x1 and y1 [shape=(n,)]
        It is left unchanged.

    Returns
    -------
    structured array [shape=(n,)]
    """
    corners = box_corners_in_original(skews, boxes)
    turned: Table = boxes.copy()
    turned["x0"], turned["y0"] = corners.min(axis=1).T
    turned["x1"], turned["y1"] = corners.max(axis=1).T
    return turned


def _convert(
    skews: Sequence[Skew], page: npt.ArrayLike, x: npt.ArrayLike, y: npt.ArrayLike, to_original: bool
) -> tuple[Float64, Float64]:
    page, x, y = np.broadcast_arrays(
        np.asarray(page, np.int64), np.asarray(x, np.float64), np.asarray(y, np.float64)
    )
    x, y = x.copy(), y.copy()
    for number, skew in enumerate(skews):
        here = page == number
        if skew.angle_deg != 0.0 and np.any(here):
            turn = skew.to_original if to_original else skew.to_deskewed
            x[here], y[here] = turn(x[here], y[here])
    return x, y
