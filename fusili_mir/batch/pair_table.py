"""Reading a table of pairs: a score and a recording in each row, and options as on the command line of `align`.

    score,recording,options
    songs/musik.mxl,1933/musik.mp3,--transpose -1 --start 0:12
    scans/erlking.pdf#3-9,2006/erlking.flac,

Files are named relative to the table. Several images of one score are separated by semicolons. A column `name`
names the results; further columns are ignored, so that a table of one's own need not be changed. Cells may be
separated by semicolons or tabs, too; a score of several images then stands in quotation marks.
"""

from __future__ import annotations

import os
import shlex
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeAlias

from fusili_mir.alignment.pair_options import PairOptions
from fusili_mir.alignment.pitch_options import check_transpose, check_tuning
from fusili_mir.alignment.unfolding_choice import check_unfold
from fusili_mir.batch.pair_request import PairRequest, with_names
from fusili_mir.batch.table_text import read_rows
from fusili_mir.boundary import reading, refuse_address
from fusili_mir.clock_times import parse_time
from fusili_mir.errors import FusiliWarning, InputError

__all__ = ["PairsLike", "as_pairs", "parse_options"]

PairsLike: TypeAlias = str | os.PathLike[str] | Iterable[Any]
"""A table (CSV), or pairs: each a `PairRequest`, ``(score, recording)`` or ``(score, recording, options)``."""

_COLUMNS = ("score", "recording", "options", "name")
_ALIKE = 0.75  # of a column that is likely misspelt, from 0 to 1
_SHOWN_COLUMNS = 8


def as_pairs(pairs: PairsLike, options: str = "") -> list[PairRequest]:
    """Read pairs, and give each a name of its own.

    Parameters
    ----------
    pairs : file or sequence
        See `PairsLike`.
    options : str
        Options for all pairs, as on the command line of `fusili-mir align`; those of a row come after them.

    Returns
    -------
    list of PairRequest
    """
    if isinstance(pairs, str | os.PathLike):
        read = _read_table(Path(pairs), options)
    elif isinstance(pairs, Iterable):
        read = [_as_pair(pair, options) for pair in pairs]
    else:
        raise InputError(f"pairs: {pairs!r}, expected a table, or pairs of a score and a recording")
    if not read:
        name = f"{pairs}: " if isinstance(pairs, str | os.PathLike) else ""
        raise InputError(f"{name}no pairs; expected at least one score with its recording")
    return with_names(read)


def parse_options(text: str, folder: Path | None = None) -> PairOptions:
    """Read options as they are written on the command line of `fusili-mir align`.

    Parameters
    ----------
    text : str
        Such as ``--transpose -1 --start 0:12``.
    folder : Path, optional
        Where a relative name of a table of anchors, or of a text file of repeats, begins.

    Returns
    -------
    PairOptions

    Examples
    --------
    >>> options = parse_options("--start 1:15 --jumps --repeats '1-8 1-8'")
    >>> options.start_sec, options.jumps, options.repeats
    (75.0, True, '1-8 1-8')
    """
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise InputError(f"options {text!r} ({str(error).lower()}); expected them as for `align`") from error
    values: dict[str, Any] = {}
    while words:
        option, equals, value = words.pop(0).partition("=")
        if option == "--jumps" and not equals:
            values["jumps"] = True
            continue
        if option not in _READERS:
            known = ", ".join(("--jumps", *_READERS))
            raise InputError(f"option {option!r}; expected some of {known}, as for `align`")
        if not equals:
            if not words:
                raise InputError(f"option {option} without a value; expected one, as for `align`")
            value = words.pop(0)
        name, read = _READERS[option]
        values[name] = read(value)
    if folder is not None:
        if "anchors" in values:
            values["anchors"] = folder / values["anchors"]
        if (folder / values.get("repeats", "")).is_file():
            values["repeats"] = str(folder / values["repeats"])
    return PairOptions(**values)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError as error:
        raise InputError(f"{text!r} is not a number; expected one, such as 300") from error


def _checked(check: Callable[[str], Any]) -> Callable[[str], str | float]:
    """Return a reader of a value that a function checks, and that may be auto."""

    def read(text: str) -> str | float:
        number = check(text)
        return "auto" if number is None else float(number)

    return read


def _unfold(text: str) -> str:
    check_unfold(text)
    return text


_READERS: Mapping[str, tuple[str, Callable[[str], Any]]] = {
    "--unfold": ("unfold", _unfold),
    "--repeats": ("repeats", str),
    "--transpose": ("transpose", _checked(check_transpose)),
    "--tuning": ("tuning", _checked(check_tuning)),
    "--dpi": ("dpi", _number),
    "--pages": ("page_range", str),
    "--start": ("start_sec", parse_time),
    "--end": ("end_sec", parse_time),
    "--anchors": ("anchors", Path),
}


def _as_pair(pair: Any, options: str) -> PairRequest:
    if isinstance(pair, PairRequest):
        return pair
    try:
        score, recording, *rest = pair
        own = rest[0] if rest else ""
        score = (
            tuple(map(Path, score))
            if isinstance(score, Sequence) and not isinstance(score, str)
            else (Path(score),)
        )
        recording = Path(recording)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"{pair!r} is not a pair; expected (score, recording) or (score, recording, options)"
        ) from error
    return PairRequest(score, recording, parse_options(f"{options} {own}"))


def _read_table(filename: Path, options: str) -> list[PairRequest]:
    with reading(filename, "expected a table of pairs (CSV)"):
        return _parse_table(filename, options)


def _parse_table(filename: Path, options: str) -> list[PairRequest]:
    table = read_rows(filename, _COLUMNS)
    lacking = [name for name in ("score", "recording") if name not in table.columns]
    if lacking:
        found = ", ".join(f"`{name}`" for name in table.columns[:_SHOWN_COLUMNS]) or "none"
        raise InputError(
            f"{filename}: no column `{lacking[0]}` (found: {found}); expected a header with score and recording, "
            "and if need be options and name"
        )
    for name in set(table.columns) - set(_COLUMNS):
        meant = get_close_matches(name, set(_COLUMNS) - set(table.columns), n=1, cutoff=_ALIKE)
        if meant:
            warnings.warn(
                f"{filename}: column `{name}` is ignored; is it meant to be `{meant[0]}`?",
                FusiliWarning,
                stacklevel=2,
            )
    return [pair for line, row in table.rows for pair in _of_row(row, filename, line, options)]


def _of_row(row: Mapping[str, str], filename: Path, line: int, options: str) -> list[PairRequest]:
    values = {name: row.get(name, "").strip() for name in _COLUMNS}
    if not any(values.values()):
        return []
    files = [part.strip() for part in values["score"].split(";") if part.strip()]
    if not files or not values["recording"]:
        lacking = "recording" if files else "score"
        raise InputError(
            f"{filename}, line {line}: no {lacking}; expected a score and a recording in each row"
        )
    folder = filename.parent
    try:
        for file in (*files, values["recording"]):
            refuse_address(file)
        own = parse_options(f"{options} {values['options']}", folder)
    except InputError as error:
        raise InputError(f"{filename}, line {line}: {error}") from error
    score = tuple(folder / file for file in files)
    return [PairRequest(score, folder / values["recording"], own, values["name"])]
