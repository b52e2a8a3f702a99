"""Reading a table of pairs: a score and a recording in each row, and a column for each option of `align`.

    score,recording,transpose,start
    songs/musik.mxl,1933/musik.mp3,-1,0:12
    scans/erlking.pdf#3-9,2006/erlking.flac,,

Files are named relative to the table. Several images of one score are separated by semicolons. A column `name`
names the results; columns that are none of these are ignored, so that a table of one's own need not be changed.
Cells may be separated by semicolons or tabs, too; a score of several images then stands in quotation marks.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeAlias

from fusili_mir.alignment.align_options import AlignOptions, option_texts, read_options
from fusili_mir.batch.pair_request import PairRequest, with_names
from fusili_mir.batch.table_text import read_rows
from fusili_mir.boundary import reading, refuse_address
from fusili_mir.errors import FusiliWarning, InputError

__all__ = ["PairsLike", "as_pairs"]

PairsLike: TypeAlias = str | os.PathLike[str] | Iterable[Any]
"""A table (CSV), or pairs: each a `PairRequest`, ``(score, recording)`` or ``(score, recording, options)``."""

_COLUMNS = ("score", "recording", "name", *option_texts())
_ALIKE = 0.75  # of a column that is likely misspelt, from 0 to 1
_SHOWN_COLUMNS = 8


def as_pairs(pairs: PairsLike, options: AlignOptions | None = None) -> list[PairRequest]:
    """Read pairs, and give each a name of its own.

    Parameters
    ----------
    pairs : file or sequence
        See `PairsLike`.
    options : AlignOptions, optional
        What holds for all pairs, unless a row says otherwise.

    Returns
    -------
    list of PairRequest
    """
    options = options or AlignOptions()
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


def _as_pair(pair: Any, options: AlignOptions) -> PairRequest:
    if isinstance(pair, PairRequest):
        return pair
    try:
        score, recording, *rest = pair
        (own,) = rest or [options]
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
    if not isinstance(own, AlignOptions):
        raise InputError(f"options of a pair: {own!r}, expected AlignOptions")
    return PairRequest(score, recording, own)


def _read_table(filename: Path, options: AlignOptions) -> list[PairRequest]:
    with reading(filename, "expected a table of pairs (CSV)"):
        return _parse_table(filename, options)


def _parse_table(filename: Path, options: AlignOptions) -> list[PairRequest]:
    table = read_rows(filename, _COLUMNS)
    lacking = [name for name in ("score", "recording") if name not in table.columns]
    if lacking:
        found = ", ".join(f"`{name}`" for name in table.columns[:_SHOWN_COLUMNS]) or "none"
        raise InputError(
            f"{filename}: no column `{lacking[0]}` (found: {found}); expected a header with score and recording, "
            "and if need be name and options such as transpose"
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


def _of_row(row: Mapping[str, str], filename: Path, line: int, options: AlignOptions) -> list[PairRequest]:
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
        own = read_options({name: values[name] for name in option_texts()}, options, folder)
    except InputError as error:
        raise InputError(f"{filename}, line {line}: {error}") from error
    score = tuple(folder / file for file in files)
    return [PairRequest(score, folder / values["recording"], own, values["name"])]
