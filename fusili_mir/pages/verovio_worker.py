"""The process in which Verovio runs: JSON requests on standard input, JSON answers on standard output.

A request is ``{"input_from": ..., "options": {...}, "data": ..., "time_limit_sec": ...}`` on a line; the
answer is the list of its pages as SVG, or null when Verovio cannot load the data.
`fusili_mir.pages.verovio_process` starts it.
"""

from __future__ import annotations

import json
import os
import signal
import sys

import verovio


def main() -> None:
    """Answer requests until standard input ends."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # whatever a library prints must not mix with answers
    verovio.enableLog(verovio.LOG_OFF)
    toolkit = verovio.toolkit()
    for line in sys.stdin:
        request = json.loads(line)
        _set_alarm(request["time_limit_sec"])
        toolkit.resetOptions()
        toolkit.setInputFrom(request["input_from"])
        toolkit.setOptions(request["options"])
        loaded = toolkit.loadData(request["data"])
        pages = [toolkit.renderToSVG(page + 1) for page in range(toolkit.getPageCount())] if loaded else None
        _set_alarm(0)
        answers.write(json.dumps(pages) + "\n")
        answers.flush()


def _set_alarm(seconds: float) -> None:
    """End this process after some seconds, even if whoever asked is gone by then; 0 takes that back."""
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_REAL, seconds)


if __name__ == "__main__":
    main()
