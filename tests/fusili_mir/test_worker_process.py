from __future__ import annotations

import subprocess
import sys
import threading
import time
from pathlib import Path

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


DYING = """
import os, sys
from fusili_mir.worker_process import say_place
for line in sys.stdin:
    say_place()
    say_place("page 3")
    {way}
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
@pytest.mark.parametrize(
    ("way", "ending"),
    [
        ("os.kill(os.getpid(), 11)", "crashed (signal 11, SIGSEGV)"),
        ("os.kill(os.getpid(), 9)", "was killed (signal 9, SIGKILL), perhaps for lack of memory"),
        ("held = bytearray(400_000_000); os.abort()", "needed more than 0.4 GB of memory"),
        ("raise MemoryError", "needed more than 0.4 GB of memory"),
        ("while True: pass", "took more than 2 s"),
        ("os._exit(3)", "ended with exit code 3"),
    ],
)
def test_how_and_where_a_process_died_is_known(
    way: str, ending: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "dying.py").write_text(DYING.format(way=way))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    worker = WorkerProcess("dying", most_bytes=lambda: 400e6)
    assert worker.ask("question", time_limit_sec=2) is None
    assert (str(worker.ending), worker.place) == (ending, "page 3")


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
