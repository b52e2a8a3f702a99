"""Stops whose seconds are known: between two of them, a path is searched and timed by itself.

A pin holds a stop at a second or, where nothing begins, a second between two stops. What lies between two pins
depends on nothing outside, so moving a pin changes only the stretches on its two sides.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from fusili_mir.errors import InputError

__all__ = ["StopPin", "Stretch", "stretches_between"]


@dataclass(frozen=True)
class StopPin:
    """A stop and a second.

    Attributes
    ----------
    stop : int
        The stop.
    second : float
        When it begins.
    is_onset : bool
        If false, nothing begins at that second: stops before `stop` begin earlier, it and all others later.
    name : str
        What the user calls it, for messages.
    """

    stop: int
    second: float
    is_onset: bool = True
    name: str = "a stop"


@dataclass(frozen=True)
class Stretch:
    """Some successive stops, and the time in which they begin.

    Attributes
    ----------
    first, end : int
        ``first <= stop < end``.
    from_sec, to_sec : float
        All of them begin within ``from_sec <= second < to_sec``.
    is_pinned : bool
        Whether the first stop begins exactly at `from_sec`.
    next_is_pinned : bool
        Whether the stop after the last one begins exactly at `to_sec`.
    """

    first: int
    end: int
    from_sec: float = -np.inf
    to_sec: float = np.inf
    is_pinned: bool = False
    next_is_pinned: bool = False


def stretches_between(pins: Sequence[StopPin], n_stops: int) -> list[Stretch]:
    """Cut a course at pins.

    Parameters
    ----------
    pins : sequence of StopPin
        In any order.
    n_stops : int
        Number of stops of the course.

    Returns
    -------
    list of Stretch
        Those that have stops, in order.

    Raises
    ------
    InputError
        If pins contradict each other.

    Examples
    --------
    >>> [(each.first, each.end) for each in stretches_between([StopPin(4, 2.5)], n_stops=9)]
    [(0, 4), (4, 9)]
    """
    pins = sorted(pins, key=lambda pin: (pin.stop, pin.is_onset, pin.second))
    for before, after in pairwise(pins):
        at = f"{before.name} is anchored at {before.second:g} s, {after.name} at {after.second:g} s"
        if before.stop == after.stop and before.is_onset:
            raise InputError(f"{at}, but they begin together; expected one anchor for them")
        if after.second <= before.second:
            raise InputError(f"{at}, but it comes later; expected anchors in the order of the music")
    edges = [StopPin(0, -np.inf, is_onset=False), *pins, StopPin(n_stops, np.inf, is_onset=False)]
    return [
        Stretch(before.stop, after.stop, before.second, after.second, before.is_onset, after.is_onset)
        for before, after in pairwise(edges)
        if after.stop > before.stop
    ]
