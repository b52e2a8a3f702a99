"""The structured arrays that say what lies where on the pages of a score.

Conventions
-----------
Pixels are those of the page image. x runs to the right, y downwards, and pixel (0, 0) covers the square from
(0, 0) to (1, 1). A box is ``x0 <= x < x1``, ``y0 <= y < y1``. Pages, systems, measures and staves are counted
from 0; systems and measures run on over the whole piece in reading order, staves start anew in each system
(0 is its top staff).
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
"""One note head. `id` is the note that sounds (its id in partitura), `notated_id` is the head's own, as in
the file: a tied note has several heads, a head in a repeated measure sounds several times."""

MEASURE_DTYPE = np.dtype([("measure", "i4"), ("number", "U16"), ("page", "i4"), ("system", "i4"), *_BOX])
"""One measure: from its left to its right bar line, over all staves. `number` is what the score calls it."""

SYSTEM_DTYPE = np.dtype([("page", "i4"), ("system", "i4"), ("n_staves", "i4"), *_BOX, ("space_px", "f4")])
"""One system: from the top line of its first staff to the bottom line of its last one. `space_px` is the
distance between neighbouring staff lines, the mean over its staves."""

STAFF_DTYPE = np.dtype([("page", "i4"), ("system", "i4"), ("staff", "i4"), *_BOX, ("space_px", "f4")])
"""One staff of a system: `y0` is the middle of its top line, `y1` that of its bottom line."""
