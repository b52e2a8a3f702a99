"""Running Verovio in a separate process.

Damaged scores can make Verovio crash or hang. In a separate process, such a score cannot take down the caller:
it is refused, and the next one gets a new process.
"""

from __future__ import annotations

import atexit
import json
from collections.abc import Sequence
from typing import Any, Literal

from fusili_mir.errors import InputError
from fusili_mir.limits import LIMITS_VARIABLE, limit
from fusili_mir.worker_ending import WorkerEnding
from fusili_mir.worker_process import WorkerProcess

__all__ = ["convert_to_mei", "render_excerpts", "render_svgs"]


def render_svgs(
    filename: str, data: str, input_from: str, options: dict[str, Any], time_limit_sec: float | None = None
) -> list[str]:
    """Let Verovio engrave a score.

    Parameters
    ----------
    filename : str
        Name of the score, for messages.
    data : str
        Content of the score.
    input_from : str
        Verovio's name for the format: "xml" for MusicXML, or "mei".
    options : dict
        Verovio's options, by name.
    time_limit_sec : float, optional
        Time after which Verovio is stopped; by default the limit ``verovio_sec``.

    Returns
    -------
    list of str
        The pages, as SVG.
    """
    pages: list[str] | None = _ask(filename, data, input_from, options, "svg", time_limit_sec)
    if not pages:
        raise InputError(f"{filename}: Verovio cannot engrave it; is it a complete score?")
    return pages


def render_excerpts(
    filename: str,
    data: str,
    input_from: str,
    options: dict[str, Any],
    ranges: Sequence[tuple[int, int]],
    time_limit_sec: float | None = None,
) -> list[list[str]]:
    """Let Verovio engrave ranges of measures, each by itself.

    Parameters
    ----------
    filename, data, input_from, options, time_limit_sec
        As in `render_svgs`; the time limit is for all ranges together.
    ranges : sequence of (first, last)
        Measures counted from 0, both included.

    Returns
    -------
    list of list of str
        The pages of each range, as SVG.
    """
    spans = [f"{first + 1}-{last + 1}" for first, last in ranges]
    excerpts: list[list[str]] | None = _ask(filename, data, input_from, options, spans, time_limit_sec)
    if excerpts is None or not all(excerpts):
        raise InputError(f"{filename}: Verovio cannot engrave parts of it; is it a complete score?")
    return excerpts


def convert_to_mei(filename: str, data: str, input_from: str, time_limit_sec: float | None = None) -> str:
    """Let Verovio convert a score to MEI.

    Parameters
    ----------
    filename : str
        Name of the score, for messages.
    data : str
        Content of the score.
    input_from : str
        Verovio's name for the format, such as "humdrum" or "abc".
    time_limit_sec : float, optional
        Time after which Verovio is stopped; by default the limit ``verovio_sec``.

    Returns
    -------
    str
        The score as MEI. The same score always gets the same ids.
    """
    mei: str | None = _ask(filename, data, input_from, {"xmlIdSeed": 1}, "mei", time_limit_sec)
    if not mei:
        raise InputError(f"{filename}: Verovio cannot read it as {input_from}; is it a complete score?")
    return mei


def _ask(
    filename: str,
    data: str,
    input_from: str,
    options: dict[str, Any],
    to: Literal["svg", "mei"] | list[str],
    time_limit_sec: float | None,
) -> Any:
    time_limit_sec = limit("verovio_sec") if time_limit_sec is None else time_limit_sec
    request = {
        "input_from": input_from,
        "options": options,
        "data": data,
        "to": to,
        "time_limit_sec": time_limit_sec + 1,
    }
    with _WORKER.lock:
        answer = _WORKER.ask(json.dumps(request), time_limit_sec)
    if answer is None:
        place = f" on {_WORKER.place}" if _WORKER.place else ""
        raise InputError(f"{filename}: Verovio {_WORKER.ending}{place}; {_way_out(_WORKER.ending)}")
    return json.loads(answer)


def _way_out(ending: WorkerEnding) -> str:
    if ending.took_too_much_memory:
        return f"divide the score, or set {LIMITS_VARIABLE}=worker_bytes={2 * limit('worker_bytes'):.0f}"
    if ending.expired_sec is not None:
        return f"divide the score, or set {LIMITS_VARIABLE}=verovio_sec={2 * limit('verovio_sec'):g}"
    return "the score may be damaged: export it again, or give its pages as a PDF"


_WORKER = WorkerProcess("fusili_mir.scores.verovio_worker", most_bytes=lambda: limit("worker_bytes"))
atexit.register(_WORKER.stop)
