"""Listing a corpus: a folder of scores, or a table with one row per piece.

A table is a CSV file with the columns ``id`` and ``file`` (relative to the table) and, optionally, ``licence``,
``split`` and ``performance`` (a match or MIDI file of how the piece was played).
"""

from __future__ import annotations

import csv
import hashlib
import re
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import cast

from fusili_mir.boundary import reason, refuse_address
from fusili_mir.errors import InputError
from fusili_training.splits import SPLITS, Split, split_of

__all__ = ["CorpusPiece", "list_corpus", "select_pieces"]

_SCORE_SUFFIXES = {".mxl", ".musicxml", ".xml", ".mei", ".krn", ".abc"}
_TABLE_NAME = "manifest.csv"
_UNKNOWN = "unknown"
_LONGEST_ID = 60  # names in a tar archive have at most 100 characters
_UNSAFE = re.compile(r"[^A-Za-z0-9_-]+")


@dataclass(frozen=True)
class CorpusPiece:
    """One piece: its id (letters, digits, ``_`` and ``-``), its score, and what the corpus says about it."""

    id: str
    file: Path
    licence: str
    split: Split
    performance: Path | None = None


def list_corpus(corpus: str | Path, split_column: str = "split") -> list[CorpusPiece]:
    """List the pieces of a corpus.

    Parameters
    ----------
    corpus : str or Path
        A CSV table, a folder with a table named ``manifest.csv``, or a folder with scores, also in subfolders.
    split_column : str
        Column of the split. Without the column or a value in it, the id of a piece decides. Rows with a value
        other than train, valid or test are left out.

    Returns
    -------
    list of CorpusPiece
        Sorted by id; ids are unique.
    """
    refuse_address(corpus)
    path = Path(corpus).absolute()  # workers of a cluster may have another working directory
    if path.is_dir() and (path / _TABLE_NAME).is_file():
        path = path / _TABLE_NAME
    if path.is_dir():
        pieces = _from_folder(path)
    elif path.is_file():
        pieces = _from_table(path, split_column)
    else:
        raise InputError(f"{path}: does not exist; expected a folder of scores or a CSV table of pieces")
    if not pieces:
        raise InputError(f"{path}: no pieces found; expected scores ({', '.join(sorted(_SCORE_SUFFIXES))})")
    repeated = [piece_id for piece_id, n in Counter(piece.id for piece in pieces).items() if n > 1]
    if repeated:
        raise InputError(
            f"{path}: {len(repeated)} ids belong to several pieces, such as {repeated[0]!r}; expected unique ids"
        )
    return sorted(pieces, key=lambda piece: piece.id)


def select_pieces(
    pieces: Sequence[CorpusPiece],
    licences: Collection[str] = (),
    splits: Collection[str] = (),
    pattern: str | None = None,
    limit: int | None = None,
) -> list[CorpusPiece]:
    """Choose pieces of a corpus.

    Parameters
    ----------
    pieces : sequence of CorpusPiece
    licences, splits : collection of str
        Licences and splits to choose from; empty: all.
    pattern : str, optional
        Shell pattern for the file, such as ``*/openscore_lieder/*``.
    limit : int, optional
        Largest number of pieces; their ids alone decide which are taken.

    Returns
    -------
    list of CorpusPiece
        At least one.
    """
    chosen = [
        piece
        for piece in pieces
        if (not licences or piece.licence in licences)
        and (not splits or piece.split in splits)
        and (pattern is None or fnmatch(piece.file.as_posix(), pattern))
    ]
    if not chosen:
        known = sorted({piece.licence for piece in pieces})
        raise InputError(
            f"none of the {len(pieces)} pieces matches the chosen licences, splits and files; "
            f"the corpus has the licences {', '.join(known[:8])}"
        )
    if limit is not None and limit < len(chosen):
        by_chance = sorted(chosen, key=lambda piece: hashlib.sha256(piece.id.encode()).digest())
        return sorted(by_chance[:limit], key=lambda piece: piece.id)
    return chosen


def _from_folder(folder: Path) -> list[CorpusPiece]:
    files = sorted(f for f in folder.rglob("*") if f.suffix.lower() in _SCORE_SUFFIXES and f.is_file())
    return [
        CorpusPiece(piece_id, file, _UNKNOWN, split_of(piece_id))
        for file in files
        for piece_id in [_slug(file.relative_to(folder).with_suffix("").as_posix())]
    ]


def _from_table(table: Path, split_column: str) -> list[CorpusPiece]:
    try:
        with table.open(encoding="utf-8-sig", newline="") as stream:
            reader = csv.DictReader(stream)
            rows = list(reader)
            columns = reader.fieldnames or []
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{table}: cannot be read as a CSV table ({reason(error)})") from error
    missing = {"id", "file"} - set(columns)
    if missing:
        raise InputError(
            f"{table}: found the columns {', '.join(columns)[:200] or 'none'}; "
            f"expected also {', '.join(sorted(missing))}"
        )
    pieces = []
    for row in rows:
        piece_id = _slug(row["id"] or "")
        given = (row.get(split_column) or "").strip()
        if given and given not in SPLITS:
            continue
        pieces.append(
            CorpusPiece(
                piece_id,
                table.parent / (row["file"] or ""),
                (row.get("licence") or "").strip() or _UNKNOWN,
                cast(Split, given) if given else split_of(piece_id),
                table.parent / row["performance"] if row.get("performance") else None,
            )
        )
    return pieces


def _slug(name: str) -> str:
    """Return a name as an id; if characters had to change, a few characters of its hash are added."""
    slug = _UNSAFE.sub("-", name)
    if slug == name and 0 < len(name) <= _LONGEST_ID:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:8]
    return f"{slug[: _LONGEST_ID - 9]}-{digest}"
