from __future__ import annotations

import threading
import time

from fusili_mir.worker_process import WorkerProcess


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
