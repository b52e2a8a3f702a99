from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import pytest
from example_scores import melody

from fusili_mir.errors import InputError
from fusili_mir.scores import verovio_process
from fusili_mir.scores.verovio_process import render_svgs


def test_pages_come_back_as_svg() -> None:
    (page,) = render_svgs("a", melody(2), "xml", {})
    assert page.startswith("<svg")


def test_a_score_that_crashes_verovio_is_refused_and_the_next_one_is_engraved() -> None:
    deadly = melody(2).replace("<beat-type>4</beat-type>", "<beat-type>0</beat-type>")
    with pytest.raises(
        InputError, match=r"deadly\.xml: Verovio crashed \(signal \d+, SIG\w+\); the score may be damaged"
    ):
        render_svgs("deadly.xml", deadly, "xml", {})
    assert len(render_svgs("fine.xml", melody(2), "xml", {})) == 1


def test_a_score_that_takes_too_long_is_refused() -> None:
    render_svgs("warm.xml", melody(1), "xml", {})
    with pytest.raises(InputError, match=r"long\.xml: Verovio took more than 0\.05 s; divide the score"):
        render_svgs("long.xml", melody(3000), "xml", {}, time_limit_sec=0.05)
    assert len(render_svgs("fine.xml", melody(2), "xml", {})) == 1


def test_a_score_that_takes_too_much_memory_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    verovio_process._WORKER.stop()  # a new one, which hears of the limit
    monkeypatch.setenv("FUSILI_LIMITS", "worker_bytes=200e6")
    with pytest.raises(InputError, match=r"huge\.xml: Verovio needed more than 0\.2 GB of memory.*; divide"):
        render_svgs("huge.xml", melody(20_000), "xml", {})
    verovio_process._WORKER.stop()


def test_what_verovio_cannot_load_is_refused() -> None:
    with pytest.raises(InputError, match="Verovio cannot engrave it"):
        render_svgs("odd.mei", "hello", "mei", {})


def test_a_process_that_was_killed_meanwhile_is_replaced() -> None:
    render_svgs("a", melody(1), "xml", {})
    process = verovio_process._WORKER._process
    assert process is not None
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert len(render_svgs("b", melody(1), "xml", {})) == 1


def test_options_of_one_score_do_not_reach_the_next() -> None:
    plain = render_svgs("a", melody(4), "xml", {"xmlIdSeed": 1})
    render_svgs("b", melody(4), "xml", {"xmlIdSeed": 1, "font": "Petaluma", "pageWidth": 500})
    assert render_svgs("c", melody(4), "xml", {"xmlIdSeed": 1}) == plain


def busy_worker(time_limit_sec: float) -> subprocess.Popen[bytes]:
    """Start a worker and give it work for a second or more."""
    worker = subprocess.Popen(
        [sys.executable, "-m", "fusili_mir.scores.verovio_worker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert worker.stdin is not None
    assert worker.stdout is not None
    request = {"input_from": "xml", "options": {}, "to": "svg", "time_limit_sec": time_limit_sec}
    worker.stdin.write((json.dumps({**request, "data": "", "time_limit_sec": 60}) + "\n").encode())
    worker.stdin.flush()
    assert b"<svg" in worker.stdout.readline()  # it is ready
    worker.stdin.write((json.dumps({**request, "data": melody(3000)}) + "\n").encode())
    worker.stdin.flush()
    return worker


def test_a_worker_ends_by_itself_when_its_time_is_over() -> None:
    with busy_worker(0.2) as worker:
        assert worker.wait(timeout=60) == -signal.SIGALRM


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere it ends when its work is done")
def test_a_worker_ends_at_once_when_nobody_can_hear_its_answer() -> None:
    with busy_worker(60) as worker:
        assert (
            worker.communicate(timeout=60)[0] == b""
        )  # closes the pipe of requests, as the end of its reader does
        assert worker.returncode in (-signal.SIGIO, 1)  # in the middle of its work, or just before
