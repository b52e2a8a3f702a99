"""The process in which Verovio runs: JSON requests on standard input, JSON answers on standard output.

A request is one line, ``{"input_from": ..., "options": {...}, "data": ..., "to": ..., "time_limit_sec": ...}``.
The answer is the list of pages as SVG if `to` is "svg", one string of MEI if it is "mei", a list of pages for
each range if it is a list of ranges of measures ("1-8", counted from 1), and null if Verovio cannot load the
data.
`fusili_mir.scores.verovio_process` starts it.
"""

from __future__ import annotations

import json
import locale
import os
import sys
from typing import Any

import verovio

from fusili_mir.worker_limits import limit_memory, while_asked
from fusili_mir.worker_process import say_place


def main() -> None:
    """Answer requests until standard input ends."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # keeps the output of libraries apart from the answers
    limit_memory()
    locale.setlocale(locale.LC_NUMERIC, "C")  # Verovio reads and writes numbers as the locale does
    verovio.enableLog(verovio.LOG_OFF)
    toolkit = verovio.toolkit()
    for line in sys.stdin:
        request = json.loads(line)
        say_place()
        with while_asked(request["time_limit_sec"]):
            answer = _answer(toolkit, request)
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


def _answer(toolkit: verovio.toolkit, request: dict[str, Any]) -> str | list[str] | list[list[str]] | None:
    toolkit.resetOptions()
    toolkit.setInputFrom(request["input_from"])
    toolkit.setOptions(request["options"])
    if not toolkit.loadData(request["data"]):
        return None
    if request["to"] == "mei":
        mei: str = toolkit.getMEI()
        return mei
    if request["to"] == "svg":
        return [_page(toolkit, page) for page in range(1, toolkit.getPageCount() + 1)]
    return [_excerpt(toolkit, span) for span in request["to"]]


def _page(toolkit: verovio.toolkit, page: int) -> str:
    say_place(f"page {page}")
    svg: str = toolkit.renderToSVG(page)
    return svg


def _excerpt(toolkit: verovio.toolkit, span: str) -> list[str]:
    say_place(f"measures {span}")
    toolkit.select({"measureRange": span})
    toolkit.redoLayout()
    return [toolkit.renderToSVG(page + 1) for page in range(toolkit.getPageCount())]


if __name__ == "__main__":
    main()
