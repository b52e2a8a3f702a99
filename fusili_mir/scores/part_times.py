"""Times of parts that can be compared: quarters from the beginning, in place of each part's own divisions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from partitura import score as ps

from fusili_mir.arrays import Float64

__all__ = ["quarters_of", "times_of"]


def quarters_of(part: ps.Part) -> Callable[[Any], Float64]:
    """Return the map from times of a part to quarters, counted from its first point; making the map is slow."""
    quarter_map = part.quarter_map
    first = float(quarter_map(part.first_point.t))
    return lambda times: np.asarray(quarter_map(times), np.float64) - first


def times_of(part: ps.Part) -> Callable[[float], int]:
    """Return the map from quarters, counted from the first point of a part, to its times, also beyond its end."""
    first, last = part.first_point.t, part.last_point.t
    quarter_map, inverse = part.quarter_map, part.inv_quarter_map
    start, end = float(quarter_map(first)), float(quarter_map(last))
    divisions = float(part.quarter_duration_map(last))

    def time(quarters: float) -> int:
        place = start + float(quarters)
        if place >= end:
            return round(float(last + (place - end) * divisions))
        return round(float(inverse(place)))

    return time
