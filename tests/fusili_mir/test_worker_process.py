from __future__ import annotations

import subprocess
import sys
import threading
import time

import pytest

from fusili_mir.worker_process import WorkerProcess, end_with_parent


def test_a_process_that_ends_without_an_answer_gives_none_and_its_exit_code() -> None:
    worker = WorkerProcess("keyword")  # a module of the standard library that does nothing when it is run
    assert worker.ask("question") is None
    assert worker.exit_code == 0


def test_a_process_that_hangs_is_stopped_at_the_time_limit() -> None:
    worker = WorkerProcess("fusili_mir.batch.pair_worker")  # answers only requests, and an empty line is none
    assert worker.ask("", time_limit_sec=0.2) is None
    assert worker.exit_code not in (None, 0)


def test_another_thread_can_end_a_process_that_is_being_asked() -> None:
    worker = WorkerProcess("asyncio")  # an interpreter that waits for more
    answers: list[str | None] = []
    asking = threading.Thread(target=lambda: answers.append(worker.ask("while True:")))
    asking.start()
    while asking.is_alive():
        worker.kill()
        time.sleep(0.01)
    assert answers == [None]


PARENT = """
import subprocess, sys, time
code = "import os, sys, time; from fusili_mir.worker_process import end_with_parent; " + sys.argv[1]
worker = subprocess.Popen([sys.executable, "-c", code])
time.sleep(60)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows gives orphans no other parent")
def test_a_worker_ends_with_the_process_that_started_it() -> None:
    child = "end_with_parent(os.getppid()); print('watching', flush=True); time.sleep(60)"
    parent = subprocess.Popen([sys.executable, "-c", PARENT, child], stdout=subprocess.PIPE, encoding="utf-8")
    assert parent.stdout is not None
    assert parent.stdout.readline() == "watching\n"
    parent.kill()
    assert parent.communicate() == ("", None)  # the worker has closed its output, too: it has ended


def test_a_worker_of_somebody_else_does_not_care() -> None:
    before = threading.active_count()
    end_with_parent(-1)
    assert threading.active_count() == before
