"""Structured arrays for what is found on the pages of a score, and where.

Conventions
-----------
Pixels are those of the page image. x runs to the right, y downwards, and pixel (0, 0) covers the square from
(0, 0) to (1, 1). A box is ``x0 <= x < x1``, ``y0 <= y < y1``. All indices start at 0: systems and measures are
numbered through the whole piece in reading order, staves within their system from the top.

>>> staves = np.array([(0, 0, 0, 80, 100, 900, 140, 10), (0, 1, 0, 80, 300, 900, 340, 10)], STAFF_DTYPE)
>>> staves[staves["system"] == 1]["y0"].tolist()
[300.0]
"""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = [
    "MEASURE_DTYPE",
    "NOTE_DTYPE",
    "STAFF_DTYPE",
    "SYSTEM_DTYPE",
]


_BOX: list[tuple[str, Any]] = [("x0", "f4"), ("y0", "f4"), ("x1", "f4"), ("y1", "f4")]

NOTE_DTYPE = np.dtype(
    [
        ("id", "U256"),
        ("notated_id", "U256"),
        ("page", "i4"),
        ("system", "i4"),
        ("measure", "i4"),
        ("staff", "i4"),
        *_BOX,
    ]
)
"""One note head. `id` is the id of the sounding note in partitura, `notated_id` that of the printed head in the
file: a tied note has several heads, and a head in a repeated measure sounds several times."""

MEASURE_DTYPE = np.dtype([("measure", "i4"), ("number", "U16"), ("page", "i4"), ("system", "i4"), *_BOX])
"""One measure: from its left to its right bar line, across all staves. `number` is its number in the score."""

SYSTEM_DTYPE = np.dtype([("page", "i4"), ("system", "i4"), ("n_staves", "i4"), *_BOX, ("space_px", "f4")])
"""One system: from the top line of its first staff to the bottom line of its last. `space_px` is the distance
between neighbouring staff lines, averaged over its staves."""

STAFF_DTYPE = np.dtype([("page", "i4"), ("system", "i4"), ("staff", "i4"), *_BOX, ("space_px", "f4")])
"""One staff of a system: `y0` is the middle of its top line, `y1` that of its bottom line."""
