"""Where files are encoded: in this process, in several processes of this machine, or on a Dask cluster."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from itertools import islice
from typing import Any, TypeVar

from fusili_mir.dask_cluster import connect_to_dask
from fusili_mir.errors import InputError
from fusili_mir.spawned_process import WorkerContext
from fusili_mir.worker_process import begin_worker

__all__ = ["run_everywhere"]

T = TypeVar("T")
R = TypeVar("R")

_PER_WORKER = 2  # tasks that wait for each worker


def run_everywhere(
    task: Callable[[T], R], items: Iterable[T], jobs: int = 1, dask: str | None = None
) -> Generator[tuple[T, R | BaseException], None, None]:
    """Run a task for each item, and yield items with their results as they come.

    Parameters
    ----------
    task : function of a module
        It reports what it expects to fail as a result.
    items : iterable
    jobs : int
        Number of processes; with 1, the task runs in this one.
    dask : str, optional
        Address of a Dask scheduler; its workers must see the same files.

    Yields
    ------
    item, result
        A process that dies takes its item with it: the result is the exception. The others are run again.
    """
    if jobs < 1:
        raise InputError(f"{jobs} jobs, expected at least 1")
    if dask is not None:
        with _dask_workers(dask) as (executor, n_workers):
            yield from _run(executor, task, iter(items), _PER_WORKER * n_workers)
    elif jobs == 1:
        yield from ((item, task(item)) for item in items)
    else:
        left = iter(items)
        while True:
            lost: list[T] = []
            with _processes(jobs) as executor:
                for item, result in _run(executor, task, left, _PER_WORKER * jobs):
                    if isinstance(result, BrokenProcessPool):
                        lost.append(item)
                    else:
                        yield item, result
            if not lost:
                return
            for item in lost:  # one of them killed its process: each gets one of its own
                with _processes(1) as executor:
                    yield from _run(executor, task, iter([item]), 1)


@contextmanager
def _processes(jobs: int) -> Iterator[Executor]:
    context = WorkerContext()
    with ProcessPoolExecutor(jobs, context, begin_worker, (os.getpid(),)) as executor:
        try:
            yield executor
        except BaseException:  # interrupted, perhaps: nobody waits for the files that they work on
            executor.shutdown(wait=False, cancel_futures=True)
            context.kill()
            raise


@contextmanager
def _dask_workers(address: str) -> Iterator[tuple[Executor, int]]:
    with connect_to_dask(address) as client:
        workers = client.scheduler_info(n_workers=-1)["workers"]
        n_workers = sum(worker["nthreads"] for worker in workers.values())
        yield client.get_executor(pure=False), max(1, n_workers)


def _run(
    executor: Executor, task: Callable[[T], R], items: Iterator[T], n_waiting: int
) -> Generator[tuple[T, R | BaseException], None, None]:
    """Keep some tasks waiting, never all of them: there may be a million files."""
    running: dict[Future[R], T] = {}
    broken = False

    def submit(number: int) -> Iterator[tuple[T, BaseException]]:
        nonlocal broken
        if broken:
            return
        for item in islice(items, number):
            try:
                running[executor.submit(task, item)] = item
            except BrokenProcessPool as error:
                broken = True
                yield item, error
                return

    yield from submit(n_waiting)
    while running:
        done, _ = wait(running, return_when=FIRST_COMPLETED)
        for future in done:
            item = running.pop(future)
            error: Any = future.exception()
            broken |= isinstance(error, BrokenProcessPool)
            yield item, (future.result() if error is None else error)
        yield from submit(len(done))
