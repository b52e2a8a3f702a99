"""What became of a pair: the row of the summary, kept in the folder of the result."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from fusili_mir.alignment.results import Alignment
from fusili_mir.batch.pair_request import PairRequest
from fusili_mir.boundary import reason
from fusili_mir.dataclass_tables import read_table
from fusili_mir.errors import InputError

__all__ = ["REPORT_FILE", "PairReport", "load_report", "report_failure", "report_result", "save_report"]

REPORT_FILE = "report.json"
_FORMAT = 1

Status = Literal["aligned", "doubtful", "unmatched", "failed"]


@dataclass(frozen=True)
class PairReport:
    """What became of a pair.

    Attributes
    ----------
    name, score, recording : str
    status : "aligned", "doubtful", "unmatched" or "failed"
        Doubtful: the recording may be of another piece. Unmatched: no score of an index seems to belong to it.
    reliability : float, optional
        See `Alignment.reliability`.
    notes_heard, notes, measures : int, optional
        Notes that were heard, notes and measures, repeats written out.
    repeats, pitch : str
        How repeats were played, and the pitch if it is not that of the score; may be empty.
    recording_sec, cpu_sec : float, optional
        Length of the recording, and how long aligning took.
    message : str
        Why it failed; otherwise warnings.
    """

    name: str
    score: str
    recording: str
    status: Status
    reliability: float | None = None
    notes_heard: int | None = None
    notes: int | None = None
    measures: int | None = None
    repeats: str = ""
    pitch: str = ""
    recording_sec: float | None = None
    cpu_sec: float | None = None
    message: str = ""


def report_result(
    request: PairRequest, alignment: Alignment, cpu_sec: float, messages: list[str]
) -> PairReport:
    """Describe a result."""
    has_notes, pitch = alignment.played is not None, alignment.pitch
    return PairReport(
        request.name,
        request.score_text,
        str(request.recording),
        "aligned" if alignment.is_reliable else "doubtful",
        round(float(alignment.reliability), 4),
        int(np.isfinite(alignment.notes["onset_sec"]).sum()) if has_notes else None,
        len(alignment.notes) if has_notes else None,
        len(alignment.measures) or None,
        alignment.repeats or "",
        pitch.text if pitch is not None and pitch.source in ("found", "given") else "",
        round(alignment.grid.end_sec - alignment.grid.audio_start_sec, 3),
        round(cpu_sec, 2),
        "; ".join(dict.fromkeys(messages)),
    )


def report_failure(request: PairRequest, message: str) -> PairReport:
    """Describe a failure in one line."""
    message = " ".join(message.split())
    return PairReport(request.name, request.score_text, str(request.recording), "failed", message=message)


def save_report(report: PairReport, key: str, filename: Path) -> None:
    """Write a report, with the key of what the result was made from."""
    content = {"format": _FORMAT, "key": key, "report": asdict(report)}
    filename.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def load_report(filename: Path) -> tuple[PairReport, str]:
    """Read a report and its key."""
    try:
        content: Any = json.loads(filename.read_text(encoding="utf-8"))
        if content["format"] != _FORMAT:
            raise InputError(f"format {content['format']}, expected {_FORMAT}")
        return read_table(PairReport, content["report"], complete=True), str(content["key"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise InputError(
            f"{filename}: damaged ({reason(error)}); remove its folder to align this pair again"
        ) from error
