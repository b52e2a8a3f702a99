"""Pairs that nobody has written down: for each recording, the score of an index that it most probably is of.

What was found is kept in `matches.csv` beside the results, so that an interrupted run need not look again.
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from fusili_mir.alignment.align_options import AlignOptions
from fusili_mir.batch.pair_report import PairReport
from fusili_mir.batch.pair_request import PairRequest, with_names
from fusili_mir.batch.work_settings import stamp_files
from fusili_mir.collection.index import Index, open_index
from fusili_mir.collection.kinds import kind_of, list_files
from fusili_mir.collection.searching import search
from fusili_mir.errors import FusiliError, InputError
from fusili_mir.model.encoder import Encoder
from fusili_mir.progress import progress_bar
from fusili_mir.whole_files import write_text

__all__ = ["MATCHES_FILE", "match_recordings"]

MATCHES_FILE = "matches.csv"


@dataclass(frozen=True)
class _Found:
    """What was found for a recording: a row of `matches.csv`.

    Attributes
    ----------
    recording : str
    score : str
        The most probable score; empty if there is none.
    probability : float
        Probability that it is a match at all.
    problem : str
        Why nothing could be looked for; usually empty.
    stamp : str
        Size and time of change of the recording, and the state of the index.
    """

    recording: str
    score: str
    probability: float
    problem: str
    stamp: str


def match_recordings(
    recordings: Any,
    index: str | Path,
    encoder: Encoder,
    out: Path,
    least_probability: float = 0.5,
    options: AlignOptions | None = None,
    progress: bool = False,
) -> tuple[list[PairRequest], list[PairReport]]:
    """Find the score of each recording in an index.

    Parameters
    ----------
    recordings : file, folder, or a sequence of them
        If there are none, all recordings of the index.
    index : str or Path
    encoder : Encoder
        Of the model that encoded the index.
    out : Path
        Folder for `matches.csv`.
    least_probability : float
        A score that is less probable than this is none.
    options : AlignOptions, optional
        Of all pairs.
    progress : bool
        Whether to show progress on standard error.

    Returns
    -------
    pairs : list of PairRequest
    unmatched : list of PairReport
        The recordings without a score, with the reason.
    """
    opened, chosen = open_index(index), options or AlignOptions()
    opened.check_bundle(encoder.bundle)
    known = _known(out / MATCHES_FILE)
    found: list[_Found] = []
    try:
        for recording in progress_bar(_listed(recordings, opened), "looking for scores", shown=progress):
            stamp = _stamp(recording, opened)
            before = known.get(str(recording))
            if before is None or before.stamp != stamp or before.problem:
                before = _find(recording, opened, encoder, least_probability, stamp)
            found.append(before)
    finally:
        _save({**known, **{each.recording: each for each in found}}.values(), out / MATCHES_FILE)
    matched = [each for each in found if each.score and each.probability >= least_probability]
    pairs = [PairRequest((Path(each.score),), Path(each.recording), chosen) for each in matched]
    return with_names(pairs), [_unmatched(each) for each in found if each not in matched]


def _listed(recordings: Any, index: Index) -> list[Path]:
    given = [recordings] if isinstance(recordings, str | os.PathLike) else list(recordings or ())
    if not given:
        listed = [Path(piece.path) for piece in index.pieces if piece.kind == "recording"]
        if not listed:
            raise InputError(f"{index.folder}: the index has no recordings; name some, or index them, too")
        return listed
    listed = [file for file in list_files(given) if kind_of(file) == "recording"]
    if not listed:
        raise InputError(f"{given[0]}: no recordings; expected some, or folders of them")
    return listed


def _find(recording: Path, index: Index, encoder: Encoder, least_probability: float, stamp: str) -> _Found:
    """Look for a recording as it sounds and then, if nothing is probable enough, in other keys."""
    number = next((place for place, piece in enumerate(index.pieces) if Path(piece.path) == recording), None)
    try:
        query: Any = recording if number is None else index.load_piece(number)
        best = search(index, query, kind="score", top=1, model=encoder)
        if not best or best[0].probability < least_probability:
            best += search(index, recording, kind="score", top=1, transpose="auto", model=encoder)
    except FusiliError as error:
        return _Found(str(recording), "", 0.0, " ".join(str(error).split()), stamp)
    if not best:
        return _Found(str(recording), "", 0.0, "", stamp)
    most = max(best, key=lambda match: match.nats)
    return _Found(str(recording), most.path, round(most.probability, 4), "", stamp)


def _unmatched(found: _Found) -> PairReport:
    name = Path(found.recording).name
    if found.problem:
        return PairReport(name, "", found.recording, "failed", message=found.problem)
    message = "no score of the index is a match"
    if found.score:
        message += f"; the most probable is {found.score} ({found.probability:.2f})"
    return PairReport(name, "", found.recording, "unmatched", message=message)


def _stamp(recording: Path, index: Index) -> str:
    (stamp,) = stamp_files([recording])
    return " ".join(map(str, (*stamp[1:], index.manifest.id, index.manifest.generation)))


def _known(filename: Path) -> dict[str, _Found]:
    """Return what an earlier run has found; nothing if its table is damaged."""
    try:
        with filename.open(encoding="utf-8", newline="") as file:
            rows = [
                _Found(
                    row["recording"], row["score"], float(row["probability"]), row["problem"], row["stamp"]
                )
                for row in csv.DictReader(file)
            ]
    except (OSError, ValueError, KeyError, TypeError, csv.Error):
        return {}
    return {row.recording: row for row in rows}


def _save(found: Iterable[_Found], filename: Path) -> None:
    stream = io.StringIO()
    writer = csv.DictWriter(stream, [field.name for field in fields(_Found)], lineterminator="\n")
    writer.writeheader()
    writer.writerows(asdict(each) for each in found)
    write_text(filename, stream.getvalue())
