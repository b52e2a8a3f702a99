"""Copies of parts, so that a score of the user's own is never changed."""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import cache
from typing import Any

from partitura import score as ps

__all__ = ["copy_elements", "copy_part"]


def copy_part(part: ps.Part, part_id: str) -> ps.Part:
    """Return a copy of a part under another id, without its group."""
    copied = ps.Part(part_id, part.part_name, part.part_abbreviation)
    for time, divisions in part.quarter_durations():
        copied.set_quarter_duration(int(time), int(divisions))
    copy_elements(part, copied, int)
    return copied


def copy_elements(
    source: ps.Part,
    target: ps.Part,
    rescale: Callable[[int], int],
    skipped: tuple[type, ...] = (),
    rescale_end: Callable[[int], int] | None = None,
) -> list[Any]:
    """Copy the elements of one part into another.

    Parameters
    ----------
    source, target : partitura.score.Part
        `source` is left unchanged.
    rescale : callable
        Map from times of `source` to times of `target`.
    skipped : tuple of types
        Elements that are not copied.
    rescale_end : callable, optional
        Map for the times at which elements end, by default `rescale`.

    Returns
    -------
    list
        The copies. They refer to each other as the elements do; references that leave the part, as those of slurs
        that unfolding cuts, are dropped.
    """
    copies: dict[Any, Any] = {}
    point_at = cache(target.get_or_add_point)  # looking a point up costs partitura more than all the rest
    starting, ending = cache(rescale), cache(rescale_end or rescale)
    for element in source.iter_all():
        timed = isinstance(element, ps.TimedObject)  # partitura leaves marks of kern in parts
        if not timed or element.start is None or isinstance(element, skipped):
            continue
        copied = copies[element] = copy.copy(element)
        point_at(starting(element.start.t)).add_starting_object(copied)
        copied.end = None
        if element.end is not None:
            point_at(ending(element.end.t)).add_ending_object(copied)
    for copied in copies.values():
        for name in getattr(copied, "_ref_attrs", ()):
            old = getattr(copied, name)
            new = [copies[one] for one in old if one in copies] if isinstance(old, list) else copies.get(old)
            setattr(copied, name, new)
    return list(copies.values())
