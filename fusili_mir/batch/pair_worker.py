"""The process in which pairs are aligned: requests on standard input, reports on standard output, a line each.

Each request has the settings of its run. The process ends with its input, even in the middle of a pair: when
the process that started it is killed, nothing goes on behind its back.
"""

from __future__ import annotations

import json
import os
import queue
import sys
import threading
from dataclasses import asdict

from fusili_mir.batch.pair_request import request_of_json
from fusili_mir.batch.pair_work import PairWork
from fusili_mir.batch.work_settings import settings_of_json


def main() -> None:
    """Align pairs until standard input ends."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # keeps the output of libraries apart from the answers
    lines: queue.Queue[str] = queue.Queue()
    threading.Thread(target=_listen, args=(lines,), daemon=True).start()
    work: PairWork | None = None
    while True:
        content = json.loads(lines.get())
        settings = settings_of_json(content["settings"])
        if work is None or work.settings != settings:
            work = PairWork(settings)
        report = work.align(request_of_json(content["request"]))
        answers.write(json.dumps(asdict(report)) + "\n")
        answers.flush()


def _listen(lines: queue.Queue[str]) -> None:
    """Pass lines on, and end the process with them."""
    for line in sys.stdin:
        lines.put(line)
    os._exit(0)


if __name__ == "__main__":
    main()
