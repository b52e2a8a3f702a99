from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from fusili_mir.worker_process import (
    WorkerProcess,
    end_with_parent,
    ending_with_caller,
    withheld_from_workers,
)


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


@pytest.mark.skipif(sys.platform == "win32", reason="no peaks of memory")
def test_a_process_that_held_nearly_all_that_it_may_needed_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import resource

    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # with which a process begins
    n_bytes = own * (1 if sys.platform == "darwin" else 1024) + 200_000_000
    (tmp_path / "dying.py").write_text(DYING.format(way=f"held = b'x' * {n_bytes}; os.abort()"))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    worker = WorkerProcess("dying", most_bytes=lambda: n_bytes)
    assert worker.ask("question", time_limit_sec=60) is None
    assert worker.ending is not None
    assert worker.ending.took_too_much_memory


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


FORKING = """
import os, time
from fusili_mir.worker_process import begin_worker, end_with_parent
end_with_parent(os.getpid())  # not its own parent: nothing happens, and that is remembered
parent = os.getpid()
if os.fork():
    time.sleep(60)
begin_worker(parent)
print("watching", flush=True)
time.sleep(60)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs a fork")
def test_a_forked_worker_ends_with_the_process_that_forked_it() -> None:
    parent = subprocess.Popen([sys.executable, "-c", FORKING], stdout=subprocess.PIPE, encoding="utf-8")
    assert parent.stdout is not None
    assert parent.stdout.readline() == "watching\n"
    parent.kill()
    assert parent.communicate(timeout=10) == ("", None)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows gives orphans no other parent")
def test_a_worker_that_begins_when_its_parent_is_gone_ends_at_once() -> None:
    code = "from fusili_mir.worker_process import begin_worker; begin_worker(-1); print('on')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True)
    assert (done.returncode, done.stdout) == (1, b"")


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere it ends when its work is done")
def test_a_program_ends_with_the_process_that_waits_for_it() -> None:
    code = (
        "import subprocess, sys; from fusili_mir.worker_process import ending_with_caller; "
        "subprocess.run(ending_with_caller(['sh', '-c', 'echo begun; exec sleep 60']))"
    )
    parent = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, encoding="utf-8")
    assert parent.stdout is not None
    assert parent.stdout.readline() == "begun\n"
    parent.kill()
    assert parent.communicate(timeout=10) == ("", None)  # the program has closed its output, too


def test_a_program_gets_its_arguments_and_its_exit_code_comes_back() -> None:
    program = [str(shutil.which("sh")), "-c", 'echo "$0"; exit 7', "a 'quoted' name"]
    done = subprocess.run(ending_with_caller(program), capture_output=True, encoding="utf-8")
    assert (done.returncode, done.stdout, done.stderr) == (7, "a 'quoted' name\n", "")


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no signals to withhold")
def test_signals_do_not_reach_what_is_started_while_they_are_withheld() -> None:
    code = "import time; print('begun', flush=True); time.sleep(60)"
    with withheld_from_workers(signal.SIGINT):
        worker = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    with worker:
        assert worker.stdout is not None
        worker.stdout.readline()
        worker.send_signal(signal.SIGINT)
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(timeout=60) == -signal.SIGTERM
    with pytest.raises(KeyboardInterrupt):  # and this process gets them again
        signal.raise_signal(signal.SIGINT)


def test_nothing_is_imported_from_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "json.py").write_text("raise SystemExit('code of somebody else')")
    monkeypatch.chdir(tmp_path)
    worker = WorkerProcess("fusili_mir.scores.verovio_worker")
    try:
        answer = worker.ask(
            '{"input_from": "xml", "options": {}, "data": "", "to": "svg", "time_limit_sec": 60}'
        )
    finally:
        worker.stop()
    assert answer is not None
    assert "<svg" in answer


def test_a_worker_of_somebody_else_does_not_care() -> None:
    before = threading.active_count()
    end_with_parent(-1)
    assert threading.active_count() == before
