"""The order in which measures are played, as people write it: ``1-8 1-8 9-16``.

Spans of printed measure numbers follow each other as they are played, separated by spaces, commas or lines; in a
file, the rest of a line after ``#`` is a comment. ``9-`` goes on to the last measure. If a repeat sign divides
measure 8, ``8a`` and ``8b`` are its parts: ``1-8a 1-8a 8b-16``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias

from fusili_mir.boundary import read_text_limited, refuse_address
from fusili_mir.errors import InputError
from fusili_mir.limits import check_limit

__all__ = ["PlayingOrder", "parse_playing_order", "read_playing_order", "write_playing_order"]

PlayingOrder: TypeAlias = str | os.PathLike[str] | Sequence[str | int]
"""Spans of measures as one text, a text file of them, or a sequence of single measures or spans."""

_SPAN = re.compile(r"(?P<first>[^\s,;-]+)(?P<dash>-)?(?P<last>[^\s,;-]+)?")
_FILE = re.compile(r"[/\\]|\.\w+$")  # what looks like the name of a file
_EXPECTED = "expected measures as played, such as '1-8 1-8 9-16'"
_LETTERS = "abcdefghijklmnopqrstuvwxyz"


def read_playing_order(order: PlayingOrder) -> str:
    """Return an order of measures as text, read from a file if it is the name of one.

    >>> read_playing_order(["1-8", "1-8", 9])
    '1-8 1-8 9'
    """
    if not isinstance(order, str | os.PathLike):
        if not isinstance(order, Sequence):
            raise InputError(f"repeats are {order!r}, {_EXPECTED}")
        return " ".join(str(each) for each in order)
    is_file = isinstance(order, os.PathLike) or (
        len(order) < 4096 and "\n" not in order and Path(order).is_file()
    )
    if not is_file:
        refuse_address(order)
        return str(order)
    lines = read_text_limited(Path(order), "table_bytes", _EXPECTED).splitlines()
    text = " ".join(line.split("#")[0] for line in lines)
    if not text.strip():
        raise InputError(f"{order}: a file without measures; {_EXPECTED}")
    return text


def parse_playing_order(order: PlayingOrder, numbers: Sequence[str]) -> tuple[int, ...]:
    """Read the order in which measures are played.

    Parameters
    ----------
    order : str, Path or sequence
        Spans of printed measure numbers, or a text file of them.
    numbers : sequence of str
        Printed numbers of the measures of the score, in written order. Neighbours may share a number: a measure
        that a repeat sign divides counts as one.

    Returns
    -------
    tuple of int
        Indices of measures in playing order, counted from 0.

    Examples
    --------
    >>> parse_playing_order("0-2 1-2 3-", ["0", "1", "2", "3", "4"])
    (0, 1, 2, 1, 2, 3, 4)
    """
    text = read_playing_order(order)
    measures: list[int] = []
    for word in re.split(r"[\s,;]+", text.replace("\N{EN DASH}", "-").strip()):
        span = _SPAN.fullmatch(word)
        if span is None:
            raise InputError(
                f"repeats are {text!r}, {_EXPECTED}" + (f"; {word!r} is no span" if word else "")
            )
        first, stop = _place(span["first"], numbers)
        if span["last"] is not None:
            stop = _place(span["last"], numbers)[1]
        elif span["dash"]:
            stop = len(numbers)
        if stop <= first:
            raise InputError(f"repeats {word!r} go backwards; expected the earlier measure first")
        measures += range(first, stop)
        check_limit("played_measures", len(measures), "repeats")
    return tuple(measures)


def write_playing_order(stretches: Sequence[tuple[int, int]], numbers: Sequence[str]) -> str:
    """Return an order of measures as `parse_playing_order` reads it.

    >>> write_playing_order([(0, 2), (0, 1), (2, 4)], ["1", "2", "3", "4"])
    '1-2 1 3-4'
    >>> write_playing_order([(0, 2), (0, 2), (2, 4)], ["1", "2", "2", "3"])
    '1-2a 1-2a 2b-3'
    """
    names = [_named_part(place, numbers) for place in range(len(numbers))]
    spans = []
    for first, end in stretches:
        begins_whole = first == 0 or numbers[first - 1] != numbers[first]
        ends_whole = end == len(numbers) or numbers[end] != numbers[end - 1]
        begin = numbers[first] if begins_whole else names[first]
        last = numbers[end - 1] if ends_whole else names[end - 1]
        if numbers[first] == numbers[end - 1]:
            spans.append(numbers[first] if begins_whole and ends_whole else "-".join(names[first:end]))
        else:
            spans.append(f"{begin}-{last}")
    return " ".join(spans)


def _named_part(place: int, numbers: Sequence[str]) -> str:
    """Return the name of a part of a measure, such as ``8b``, or the number of a whole one."""
    first = place
    while first > 0 and numbers[first - 1] == numbers[place]:
        first -= 1
    is_whole = first == place and (place + 1 == len(numbers) or numbers[place + 1] != numbers[place])
    return numbers[place] if is_whole else numbers[place] + _LETTERS[(place - first) % len(_LETTERS)]


def _place(number: str, numbers: Sequence[str]) -> tuple[int, int]:
    """Return the first measure with a number, and the one after the last."""
    found = [place for place, other in enumerate(numbers) if other == number]
    if not found and number[-1] in _LETTERS:
        found = [place for place, _ in enumerate(numbers) if _named_part(place, numbers) == number]
    if not found:
        span = f"{numbers[0]} to {numbers[-1]}" if numbers else "none"
        if _FILE.search(number):
            raise InputError(
                f"repeats {number!r} are neither a file that exists nor a measure of the score ({span}); "
                f"{_EXPECTED}"
            )
        raise InputError(f"repeats name measure {number}; the measures of the score are {span}")
    if found[-1] - found[0] >= len(found):
        raise InputError(
            f"repeats name measure {number}, which the score has {len(found)} times, in different places; "
            "align one movement at a time"
        )
    return found[0], found[-1] + 1
