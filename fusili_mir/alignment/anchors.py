"""Anchors: seconds that somebody knows for measures, notes or places, which an alignment must keep.

They are given on the command line (``17=42.5``), as a table with the columns measure, pass, note, page, x, y and
second, such as the viewer writes, or in Python.
"""

from __future__ import annotations

import csv
import io
import math
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

from fusili_mir.boundary import read_text_limited, reading, reason
from fusili_mir.clock_times import parse_time
from fusili_mir.errors import InputError

__all__ = ["Anchor", "AnchorsLike", "anchors_at_speed", "anchors_csv", "as_anchors", "parse_anchor"]

_TEXT = re.compile(r"(?P<measure>.+?)(?::(?P<time>\d{1,9}))?=(?P<second>[^=]+)")
_COLUMNS = ("measure", "pass", "note", "page", "x", "y", "second")
_EXPECTED = (
    "expected MEASURE=SECOND such as 17=42.5, or 17:2=61 for the second time that measure 17 is played"
)


@dataclass(frozen=True)
class Anchor:
    """A measure, a note or a place on a page, and when it begins to sound.

    Attributes
    ----------
    second : float
        Second of the recording.
    measure : str, optional
        Printed number of a measure.
    time : int
        Which time the measure or place is played, from 1.
    note : str, optional
        Id of a note, as in `Alignment.notes`.
    place : (page, x, y), optional
        Place in pixels of the user's own page, counted from 0.
    """

    second: float
    measure: str | None = None
    time: int = 1
    note: str | None = None
    place: tuple[int, float, float] | None = None

    def __post_init__(self) -> None:
        if sum(each is not None for each in (self.measure, self.note, self.place)) != 1:
            raise InputError("an anchor without a measure, a note or a place, or with several; expected one")
        if not math.isfinite(self.second):
            raise InputError(f"{self.name} is anchored at {self.second} s; expected a number of seconds")
        if self.place is not None and not (
            self.place[0] >= 0 and all(math.isfinite(each) for each in self.place[1:])
        ):
            raise InputError(f"{self.name} is anchored; expected a page from 0, and numbers for x and y")
        if self.time < 1:
            raise InputError(f"measure {self.measure} is anchored for time {self.time}; expected 1 or more")

    @property
    def name(self) -> str:
        """What it holds, in words.

        >>> Anchor(61.0, measure="17", time=2).name
        'measure 17 (time 2)'
        """
        if self.note is not None:
            return f"note {self.note}"
        what = (
            f"measure {self.measure}" if self.place is None else "the place {}:{:g},{:g}".format(*self.place)
        )
        return what if self.time == 1 else f"{what} (time {self.time})"

    def to_json(self) -> dict[str, Any]:
        """Return it as values that JSON can represent, named as the columns of the table."""
        page, x, y = self.place or (None, None, None)
        values = (self.measure, None if self.note else self.time, self.note, page, x, y, self.second)
        return {name: value for name, value in zip(_COLUMNS, values, strict=True) if value is not None}

    @classmethod
    def from_json(cls, content: Any) -> Anchor:
        """Return the anchor that `to_json` has described."""
        try:
            measure, note = content.get("measure"), content.get("note")
            place = None
            if measure is None and note is None:
                place = (int(content["page"]), float(content["x"]), float(content["y"]))
            return cls(
                float(content["second"]),
                None if measure is None else str(measure),
                int(content.get("pass") or 1),
                None if note is None else str(note),
                place,
            )
        except InputError:
            raise
        except (AttributeError, KeyError, TypeError, ValueError, OverflowError) as error:
            raise InputError(f"anchor {content!r}; expected some of {', '.join(_COLUMNS)}") from error


AnchorsLike: TypeAlias = (
    str | os.PathLike[str] | Mapping[Any, float] | Iterable["Anchor | str | tuple[Any, float]"] | None
)
"""A table, measure -> second, or anchors; see `as_anchors`."""


def parse_anchor(text: str) -> Anchor:
    """Read an anchor as written on the command line.

    >>> parse_anchor("17=42.5").second, parse_anchor("17:2=1:01")
    (42.5, Anchor(second=61.0, measure='17', time=2, note=None, place=None))
    """
    match = _TEXT.fullmatch(text.strip())
    if match is None:
        raise InputError(f"anchor {text!r}; {_EXPECTED}")
    try:
        second = parse_time(match["second"].strip())
    except InputError as error:
        raise InputError(f"anchor {text!r}: {match['second']!r} is not a time; {_EXPECTED}") from error
    return Anchor(second, measure=match["measure"].strip(), time=int(match["time"] or 1))


def as_anchors(anchors: AnchorsLike) -> tuple[Anchor, ...]:
    """Read anchors, whatever they are given as.

    Parameters
    ----------
    anchors : file, mapping, sequence or None
        A table (CSV), a mapping from measure to second, or a sequence of `Anchor`, of ``(measure, second)`` or
        of texts such as ``"17=42.5"``.

    Returns
    -------
    tuple of Anchor

    Examples
    --------
    >>> [anchor.name for anchor in as_anchors({17: 42.5, "18": 44.0})]
    ['measure 17', 'measure 18']
    """
    if anchors is None:
        return ()
    if isinstance(anchors, str | os.PathLike):
        return _read_table(Path(anchors))
    if not isinstance(anchors, Iterable):
        raise InputError(f"anchors: {anchors!r}, expected a table, measures with their seconds, or anchors")
    pairs = anchors.items() if isinstance(anchors, Mapping) else anchors
    return tuple(_as_anchor(each) for each in pairs)


def anchors_csv(anchors: Sequence[Anchor]) -> str:
    """Return anchors as a table."""
    stream = io.StringIO()
    writer = csv.DictWriter(stream, _COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(anchor.to_json() for anchor in anchors)
    return stream.getvalue()


def anchors_at_speed(anchors: Iterable[Anchor], start_sec: float, factor: float) -> tuple[Anchor, ...]:
    """Return anchors at another speed, around the second at which the audio starts."""
    return tuple(replace(each, second=start_sec + (each.second - start_sec) * factor) for each in anchors)


def _as_anchor(given: Any) -> Anchor:
    if isinstance(given, Anchor):
        return given
    if isinstance(given, str):
        return parse_anchor(given)
    try:
        measure, second = given
        return Anchor(float(second), measure=str(measure))
    except (TypeError, ValueError) as error:
        raise InputError(f"anchor {given!r}; expected an Anchor, (measure, second) or '17=42.5'") from error


def _read_table(filename: Path) -> tuple[Anchor, ...]:
    expected = "expected a table of anchors"
    text = read_text_limited(filename, "table_bytes", expected)
    with reading(filename, expected):
        return _parse_table(filename, text)


def _parse_table(filename: Path, text: str) -> tuple[Anchor, ...]:
    reader = csv.DictReader(io.StringIO(text, newline=""))
    if "second" not in (reader.fieldnames or ()):
        raise InputError(f"{filename}: no column `second`; expected a header with {', '.join(_COLUMNS)}")
    anchors = []
    for number, row in enumerate(reader, start=2):
        try:
            anchors.append(_of_row(row))
        except (ValueError, InputError) as error:
            raise InputError(f"{filename}, line {number}: {reason(error)}") from error
    return tuple(anchors)


def _of_row(row: Mapping[str, str | None]) -> Anchor:
    values = {name: (row.get(name) or "").strip() for name in _COLUMNS}
    place = None
    if values["page"] and not values["measure"] and not values["note"]:
        place = (int(values["page"]), float(values["x"]), float(values["y"]))
    return Anchor(
        parse_time(values["second"]),
        measure=values["measure"] or None,
        time=int(values["pass"] or 1),
        note=values["note"] or None,
        place=place,
    )
