"""The times of notes as a timemap, in the form of Verovio's `renderToTimemap`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from fusili_mir.alignment.measure_tempo import measure_tempo
from fusili_mir.alignment.results import Alignment
from fusili_mir.output.score_time import ScoreTime, score_time

__all__ = ["save_timemap", "timemap"]


def save_timemap(alignment: Alignment, filename: str | Path) -> None:
    """Write the timemap as JSON, one event per line; see `timemap`."""
    lines = ",\n".join(json.dumps(event, ensure_ascii=False) for event in timemap(alignment))
    Path(filename).write_text(f"[\n{lines}\n]\n", encoding="utf-8")


def timemap(alignment: Alignment) -> list[dict[str, Any]]:
    """List when notes begin and end in the recording.

    Parameters
    ----------
    alignment : Alignment
        An alignment with a symbolic score.

    Returns
    -------
    list of dict
        Events in order of time, each with `tstamp` (milliseconds of the recording), `qstamp` (quarter notes
        from the start of the unfolded score), and where it applies `on` and `off` (ids of the printed note
        heads, as in SVG pages by Verovio) and `tempo` (quarter notes per minute, at the start of each measure).
    """
    time = score_time(alignment)
    heard = np.isfinite(alignment.notes["onset_sec"])
    first_quarter = float(min(time.onset_quarter.min(), time.measure_start_quarter.min()))
    events: dict[float, dict[str, Any]] = {}

    def event(second: float, quarter: float) -> dict[str, Any]:
        tstamp = round(1000 * second, 1)
        return events.setdefault(tstamp, {"tstamp": tstamp, "qstamp": round(quarter - first_quarter, 4)})

    for row in np.flatnonzero(heard):
        note = alignment.notes[row]
        begun = event(float(note["onset_sec"]), float(time.onset_quarter[row]))
        begun.setdefault("on", []).append(_head(note))
    for row in np.flatnonzero(heard):
        note = alignment.notes[row]
        end_sec = float(note["offset_sec"])
        event(end_sec, float(time.tempo.to_beats(end_sec))).setdefault("off", []).append(_head(note))
    for second, quarter, tempo in _tempos(alignment, time):
        event(second, quarter)["tempo"] = tempo
    return [events[tstamp] for tstamp in sorted(events)]


def _head(note: np.void) -> str:
    return str(note["notated_id"] or note["id"])


def _tempos(alignment: Alignment, time: ScoreTime) -> list[tuple[float, float, float]]:
    """Return the second, the quarter and the tempo of each measure whose tempo is known."""
    quarters = time.measure_end_quarter - time.measure_start_quarter
    tempo = quarters * measure_tempo(alignment).measures_per_minute
    start_sec = alignment.measures["start_sec"]
    # A recording that begins within a measure begins after its first quarter.
    start_quarter = np.where(
        start_sec <= alignment.grid.audio_start_sec,
        time.tempo.to_beats(start_sec),
        time.measure_start_quarter,
    )
    return [
        (float(start_sec[row]), float(start_quarter[row]), round(float(tempo[row]), 2))
        for row in np.flatnonzero(np.isfinite(tempo))
    ]
