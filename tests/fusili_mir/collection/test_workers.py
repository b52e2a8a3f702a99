from __future__ import annotations

import signal
from concurrent.futures.process import BrokenProcessPool

import pytest

from fusili_mir import InputError
from fusili_mir.collection.workers import run_everywhere


def test_an_item_that_kills_its_process_is_reported_and_the_others_are_run() -> None:
    harmless, deadly = signal.SIGCHLD, signal.SIGKILL
    items = [harmless] * 5 + [deadly] + [harmless] * 5
    results = list(run_everywhere(signal.raise_signal, items, jobs=2))
    assert sorted(item for item, _ in results) == sorted(items)
    assert [isinstance(result, BrokenProcessPool) for _, result in results].count(True) == 1
    assert all(result is None for item, result in results if item == harmless)


def test_no_processes_are_refused() -> None:
    with pytest.raises(InputError, match="0 jobs"):
        list(run_everywhere(abs, [1], jobs=0))
