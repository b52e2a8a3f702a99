"""What may be said of one score and one recording: `AlignOptions`, stated once.

The flags of the command line, the columns of a table of pairs and the options that a result keeps are made from
its fields; the name of a flag or column is that of the field without its unit.
"""

from __future__ import annotations

import math
import numbers
import re
from collections.abc import Callable, Mapping
from dataclasses import Field, dataclass, field, fields, replace
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypedDict, Unpack

from fusili_mir.alignment.anchors import Anchor, AnchorsLike, as_anchors
from fusili_mir.clock_times import parse_time
from fusili_mir.errors import InputError
from fusili_mir.pages.page_ranges import parse_page_range
from fusili_mir.scores.playing_order import PlayingOrder, read_playing_order

if TYPE_CHECKING:  # the command line needs no model to print its help
    from fusili_mir.model.bundle import Bundle
    from fusili_mir.model.encoder import Encoder

__all__ = [
    "AlignKeywords",
    "AlignOptions",
    "AligningKeywords",
    "OptionText",
    "Spans",
    "option_texts",
    "read_options",
]

Spans: TypeAlias = tuple[tuple[int, int], ...]
"""Spans of measures in playing order: the first one, counted from 0, and the one after the last."""

_NAMED_REPEATS = ("auto", "maximal", "minimal", "as_written")
_MOST_SEMITONES = 24.0
_LOWEST_HZ, _HIGHEST_HZ = 220.0, 880.0
_MODERN_HZ = 440.0
_UNITS = ("_sec", "_hz")


@dataclass(frozen=True)
class OptionText:
    """How an option is written as text, in a flag or in a cell of a table.

    Attributes
    ----------
    name : str
        Its name there, such as ``start``.
    field : str
        Field of `AlignOptions`.
    read : callable
        Reads its value; None if the option is only named, such as ``--cuts``.
    metavar, help : str
    names_file : bool
        Whether the text may be the name of a file.
    words : tuple of str
        Words that it may be, for shells to complete.
    """

    name: str
    field: str
    read: Callable[[str], Any] | None
    metavar: str
    help: str
    names_file: bool = False
    words: tuple[str, ...] = ()


def _said(
    read: Callable[[str], Any] | None,
    metavar: str,
    help: str,  # noqa: A002 (the name that click has for it)
    **more: Any,
) -> dict[str, Any]:
    """Return what a flag and a column need to know of a field."""
    return {"read": read, "metavar": metavar, "help": help, **more}


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError as error:
        raise InputError(f"{text!r} is not a number; expected one, such as -2 or 415") from error


def _anchors(text: str) -> tuple[Anchor, ...]:
    """Read a table of anchors, or anchors such as ``17=42.5 33=1:20``."""
    if _is_file(Path(text)) or text.casefold().endswith(".csv"):
        return as_anchors(text)
    return as_anchors(re.split(r"[\s,;]+", text.strip()))


class AlignKeywords(TypedDict, total=False):
    """What `AlignOptions` takes for its fields."""

    repeats: PlayingOrder | Spans
    cuts: bool
    transpose: float | None
    a4_hz: float | None
    dpi: float
    pages: str | None
    start_sec: float
    end_sec: float | None
    anchors: AnchorsLike


class AligningKeywords(AlignKeywords, total=False):
    """What `align_recording` takes: the fields of `AlignOptions`, and the model and cache of an `Aligner`."""

    model: str | Path | Bundle | Encoder | None
    cache: str | Path | None


@dataclass(frozen=True, kw_only=True)
class AlignOptions:
    """What is said of one score and one recording.

    Attributes
    ----------
    start_sec, end_sec : float
        Excerpt of the recording to align; times in the result are those of the whole recording.
    transpose : float, optional
        Semitones by which the recording sounds above the score; None finds out. With a number, nothing is looked
        for: 0 takes the recording as it is.
    a4_hz : float, optional
        Frequency of A in the recording, apart from any transposition. None finds out or, with a `transpose`, is
        440 Hz.
    repeats : "auto", "maximal", "minimal", "as_written", measures, file or spans
        How repeats are played. "auto" finds out from the recording, "maximal" plays all, "minimal" none and the
        last endings only, "as_written" every measure once. Measures are named as they are played, such as
        ``"1-8 1-8 9-16"``, or in a text file.
    cuts : bool
        Whether the music is expected to go on at measures that no repeat sign leads to.
    pages : str, optional
        Pages to use, such as "3-7" or "1,3-5", counted from 1; only for scores that are images.
    dpi : float
        Resolution at which PDF pages are drawn.
    anchors : tuple of Anchor
        Seconds that are known beforehand; given as a table (CSV), a mapping such as ``{17: 42.5}``, or a sequence
        of `Anchor`.
    """

    repeats: str | Spans = field(
        default="auto",
        metadata=_said(
            str,
            "HOW|MEASURES|FILE",
            "How repeats are played. auto: as fits the recording best; maximal: all of them; minimal: no "
            "repeats, only last endings; as_written: every measure once; or measures as they are played, such as "
            "'1-8 1-8 9-16', or a text file of them.",
            names_file=True,
            words=_NAMED_REPEATS,
        ),
    )
    cuts: bool = field(
        default=False,
        metadata=_said(
            None, "", "Expect the music to go on at measures that no repeat sign leads to, as with cuts."
        ),
    )
    transpose: float | None = field(
        default=None,
        metadata=_said(
            _number,
            "SEMITONES",
            "Semitones by which the recording sounds above the score: -2 if it was sung a whole tone lower; 0 "
            "takes it as it is.  [default: found by listening]",
        ),
    )
    a4_hz: float | None = field(
        default=None,
        metadata=_said(
            _number,
            "HZ",
            "Frequency of A in the recording, transposition apart, such as 415.  [default: found by listening, "
            "or 440 with --transpose]",
        ),
    )
    dpi: float = field(
        default=200.0, metadata=_said(_number, "DPI", "Resolution at which PDF pages are drawn.")
    )
    pages: str | None = field(
        default=None,
        metadata=_said(str, "PAGES", "Pages to use, such as 3-7 or 1,3-5; only for scores that are images."),
    )
    start_sec: float = field(
        default=0.0,
        metadata=_said(
            parse_time,
            "TIME",
            "Align the recording from this time on: seconds or m:ss. Times in the result refer to the whole "
            "recording.",
        ),
    )
    end_sec: float | None = field(
        default=None, metadata=_said(parse_time, "TIME", "Align the recording up to this time only.")
    )
    anchors: tuple[Anchor, ...] = field(
        default=(),
        metadata=_said(
            _anchors,
            "MEASURE=SECOND|FILE",
            "A measure whose second is known, such as 17=42.5, or 17:2=61 for the second time that it is played; "
            "or a table of anchors (CSV), as the viewer writes it. May be repeated.",
            names_file=True,
        ),
    )

    if TYPE_CHECKING:  # fields are narrower than what is taken for them

        def __init__(self, **options: Unpack[AlignKeywords]) -> None: ...

    def __post_init__(self) -> None:
        most = _MOST_SEMITONES
        checked = {
            "repeats": _checked_repeats(self.repeats),
            "transpose": _checked_number("transpose", self.transpose, -most, most, "semitones"),
            "a4_hz": _checked_number("a4_hz", self.a4_hz, _LOWEST_HZ, _HIGHEST_HZ, "Hz"),
            "dpi": _checked_number("dpi", self.dpi, 1.0, math.inf, "dots per inch"),
            "start_sec": _checked_number("start_sec", self.start_sec, 0.0, math.inf, "seconds"),
            "end_sec": _checked_number("end_sec", self.end_sec, 0.0, math.inf, "seconds"),
            "anchors": as_anchors(self.anchors),
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)
        if not isinstance(self.cuts, bool):
            raise InputError(f"cuts is {self.cuts!r}, expected true or false")
        if self.cuts and self.repeats != "auto":
            raise InputError(
                f"cuts are looked for, and repeats are {self.repeats!r}; expected one of the two, as repeats say "
                "what is played"
            )
        if self.pages is not None:
            parse_page_range(self.pages)
        if self.end_sec is not None and self.end_sec <= self.start_sec:
            raise InputError(
                f"the excerpt ends at {self.end_sec:g} s and starts at {self.start_sec:g} s; expected a later end"
            )

    @property
    def known_a4_hz(self) -> float | None:
        """Frequency of A, if it need not be looked for."""
        return _MODERN_HZ if self.a4_hz is None and self.transpose is not None else self.a4_hz

    @property
    def score_key(self) -> tuple[object, ...]:
        """What an encoded score depends on: options with the same key share it."""
        return self.pages, self.dpi

    def to_json(self) -> dict[str, Any]:
        """Return the options as values that JSON can represent."""
        content = {each.name: getattr(self, each.name) for each in fields(self)}
        return {**content, "anchors": [anchor.to_json() for anchor in self.anchors]}

    @classmethod
    def from_json(cls, content: object) -> AlignOptions:
        """Return the options that `to_json` has described."""
        known = [each.name for each in fields(cls)]
        if not isinstance(content, Mapping) or set(content) - set(known):
            raise InputError(f"options are {content!r}; expected some of {', '.join(known)}")
        values = dict(content)
        try:
            values["anchors"] = tuple(Anchor.from_json(each) for each in values.get("anchors", ()))
            if isinstance(values.get("repeats"), list):
                values["repeats"] = tuple(map(tuple, values["repeats"]))
        except TypeError as error:
            raise InputError(f"options are {content!r}; expected lists of anchors and of spans") from error
        return cls(**values)


def option_texts() -> dict[str, OptionText]:
    """Return how each option is written as text, by the name of its flag and column.

    >>> list(option_texts())
    ['repeats', 'cuts', 'transpose', 'a4', 'dpi', 'pages', 'start', 'end', 'anchors']
    """
    texts = (_text(each) for each in fields(AlignOptions))
    return {each.name: each for each in texts}


def read_options(
    cells: Mapping[str, str], usual: AlignOptions | None = None, folder: Path = Path()
) -> AlignOptions:
    """Read options from the cells of a table.

    Parameters
    ----------
    cells : dict from str to str
        Texts by the names of their columns. Empty ones are left as usual.
    usual : AlignOptions, optional
        What holds if a cell is empty.
    folder : Path, optional
        Where relative names of files begin; by default the current one.

    Examples
    --------
    >>> read_options({"start": "1:15", "transpose": "-2", "end": ""}).start_sec
    75.0
    """
    texts = option_texts()
    values: dict[str, Any] = {}
    folder = folder or Path()
    for name, cell in cells.items():
        if name not in texts:
            near = get_close_matches(name, texts, n=1)
            hint = f"did you mean {near[0]}? " if near else ""
            raise InputError(f"option {name!r}; {hint}expected some of {', '.join(texts)}")
        if not cell.strip():
            continue
        text, option = cell.strip(), texts[name]
        if option.names_file and _is_file(folder / text):
            text = str(folder / text)
        try:
            values[option.field] = _read_flag(text) if option.read is None else option.read(text)
        except InputError as error:
            raise InputError(f"{name}: {error}") from error
    return replace(usual or AlignOptions(), **values)


def _text(each: Field[Any]) -> OptionText:
    name = each.name
    for unit in _UNITS:
        name = name.removesuffix(unit)
    return OptionText(name, each.name, **each.metadata)


def _read_flag(text: str) -> bool:
    known = {"yes": True, "true": True, "1": True, "no": False, "false": False, "0": False}
    if text.casefold() not in known:
        raise InputError(f"{text!r}, expected yes or no")
    return known[text.casefold()]


def _is_file(file: Path) -> bool:
    try:
        return file.is_file()
    except (OSError, ValueError):  # a text too long to be a name, or with a NUL
        return False


def _checked_number(name: str, value: object, least: float, most: float, unit: str) -> float | None:
    if value is None:
        return None
    number = float(value) if isinstance(value, numbers.Real) and not isinstance(value, bool) else math.nan
    if not least <= number <= most or not math.isfinite(number):
        limits = f"{least:g} or more" if math.isinf(most) else f"{least:g} to {most:g}"
        raise InputError(f"{name} is {value!r}, expected {limits} {unit}")
    return number


def _checked_repeats(repeats: Any) -> str | Spans:
    """Return spans as they are, and names and measures as text."""
    if isinstance(repeats, tuple) and any(isinstance(each, tuple) for each in repeats):
        if not all(_is_span(each) for each in repeats):
            raise InputError(f"repeats are {repeats!r}, expected spans such as ((0, 8), (0, 16))")
        return repeats
    text = read_playing_order(repeats).strip()
    named = text.replace("-", "_")
    return named if named in _NAMED_REPEATS else text


def _is_span(given: object) -> bool:
    return (
        isinstance(given, tuple)
        and len(given) == 2
        and all(isinstance(each, int) and not isinstance(each, bool) for each in given)
        and 0 <= given[0] < given[1]
    )
