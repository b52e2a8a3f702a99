"""The process in which Verovio runs: JSON requests on standard input, JSON answers on standard output.

A request is ``{"input_from": ..., "options": {...}, "data": ...}`` on a line; the answer is the list of its pages
as SVG, or null when Verovio cannot load the data. Started by `fusili_mir.verovio_process`.
"""

from __future__ import annotations

import json
import os
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
        toolkit.resetOptions()
        toolkit.setInputFrom(request["input_from"])
        toolkit.setOptions(request["options"])
        loaded = toolkit.loadData(request["data"])
        pages = [toolkit.renderToSVG(page + 1) for page in range(toolkit.getPageCount())] if loaded else None
        answers.write(json.dumps(pages) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
