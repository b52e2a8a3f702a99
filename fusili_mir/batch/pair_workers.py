"""Who does the work: processes on this machine, or a Dask cluster. What kills a process is a line.

Pairs of the same score are one piece of work, so that the score is encoded once; large ones are divided.
"""

from __future__ import annotations

import json
import queue
import threading
from collections.abc import Generator, Iterator, Sequence
from dataclasses import asdict
from importlib import import_module
from itertools import groupby
from typing import Any

from fusili_mir.batch.pair_report import PairReport, report_failure
from fusili_mir.batch.pair_request import PairRequest, request_of_json
from fusili_mir.batch.work_settings import WorkSettings, settings_of_json
from fusili_mir.dask_cluster import connect_to_dask
from fusili_mir.dataclass_tables import read_table
from fusili_mir.errors import option
from fusili_mir.worker_ending import WorkerEnding
from fusili_mir.worker_process import WorkerProcess

__all__ = ["align_here", "align_on_cluster", "group_by_score"]

Group = Sequence[PairRequest]

_WORKER_MODULE = "fusili_mir.batch.pair_worker"


def group_by_score(requests: Sequence[PairRequest], n_workers: int) -> list[Group]:
    """Divide pairs into pieces of work: pairs of one score together, but no more than keeps all workers busy.

    Examples
    --------
    >>> from pathlib import Path
    >>> pairs = [PairRequest((Path(score),), Path("a.wav")) for score in "xyxx"]
    >>> [[pair.score[0].name for pair in group] for group in group_by_score(pairs, n_workers=1)]
    [['x', 'x', 'x'], ['y']]
    """
    first = {key: place for place, key in reversed([*enumerate(request.pages_key for request in requests)])}
    ordered = sorted(requests, key=lambda request: first[request.pages_key])
    most = max(1, -(-len(requests) // max(1, n_workers)))
    groups: list[Group] = []
    for _, same in groupby(ordered, key=lambda request: request.pages_key):
        members = list(same)
        groups += [members[start : start + most] for start in range(0, len(members), most)]
    return groups


def align_here(
    groups: Sequence[Group], settings: WorkSettings, n_workers: int
) -> Generator[PairReport, None, None]:
    """Align groups in processes of this machine, and yield reports as they come.

    Parameters
    ----------
    groups : sequence of groups of PairRequest
    settings : WorkSettings
    n_workers : int
    """
    waiting: queue.SimpleQueue[Group] = queue.SimpleQueue()
    for group in groups:
        waiting.put(group)
    reports: queue.SimpleQueue[PairReport | None] = queue.SimpleQueue()
    stopped = threading.Event()
    workers = [_worker() for _ in range(min(n_workers, len(groups)))]

    def work(worker: WorkerProcess) -> None:
        try:
            while not stopped.is_set():
                for report in _align_group(worker, waiting.get_nowait(), settings, stopped):
                    reports.put(report)
        except queue.Empty:
            pass
        finally:
            worker.stop()
            reports.put(None)

    threads = [threading.Thread(target=work, args=(worker,), daemon=True) for worker in workers]
    for thread in threads:
        thread.start()
    try:
        running = len(threads)
        while running:
            report = reports.get()
            if report is None:
                running -= 1
            else:
                yield report
    finally:  # interrupted, perhaps: nothing goes on behind the caller's back
        stopped.set()
        while any(thread.is_alive() for thread in threads):
            for worker in workers:
                worker.kill()
            for thread in threads:
                thread.join(timeout=0.05)


def align_on_cluster(
    groups: Sequence[Group], settings: WorkSettings, address: str
) -> Generator[PairReport, None, None]:
    """Align groups on the machines of a Dask cluster, and yield reports as they come.

    Parameters
    ----------
    groups : sequence of groups of PairRequest
    settings : WorkSettings
    address : str
        Address of the scheduler, such as ``tcp://10.0.0.1:8786``. All machines must see the files and the folder
        of results under the same names.
    """
    with connect_to_dask(address) as client:
        if not groups:
            return
        content = settings.to_json()
        futures = {
            client.submit(
                _align_remotely, content, [request.to_json() for request in group], pure=False
            ): group
            for group in groups
        }
        try:
            for future in import_module("distributed").as_completed(futures, loop=client.loop):
                fault = future.exception()
                if fault is None:
                    yield from (read_table(PairReport, each, complete=True) for each in future.result())
                else:
                    message = f"the cluster could not align it ({type(fault).__name__}: {fault})"
                    yield from (report_failure(request, message) for request in futures[future])
        finally:
            client.cancel(list(futures), force=True)


def _align_remotely(content: dict[str, Any], requests: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Align a group in a process beside the Dask worker."""
    settings = settings_of_json(content)
    worker, never = _worker(), threading.Event()
    try:
        group = [request_of_json(each) for each in requests]
        return [asdict(report) for report in _align_group(worker, group, settings, never)]
    finally:
        worker.stop()


def _worker() -> WorkerProcess:
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
    # More threads would add products up in another order, and so change the last digits of a result.
    return WorkerProcess(_WORKER_MODULE, dict.fromkeys(names, "1"))


def _align_group(
    worker: WorkerProcess, group: Group, settings: WorkSettings, stopped: threading.Event
) -> Iterator[PairReport]:
    for request in group:
        content = {"settings": settings.to_json(), "request": request.to_json()}
        answer = worker.ask(json.dumps(content))
        if stopped.is_set():
            return
        if answer is None:
            yield report_failure(
                request, f"the process that aligned it {worker.ending}{_way_out(worker.ending)}"
            )
        else:
            yield read_table(PairReport, json.loads(answer), complete=True)


def _way_out(ending: WorkerEnding) -> str:
    is_memory = ending.took_too_much_memory or ending.exit_code == -9
    return f"; use fewer processes ({option('--jobs', 'jobs')})" if is_memory else ""
