"""Calls that run at the same time in threads; their results come back in the order in which they were started.

A graph runs on one thread, so that its results do not depend on the number of CPUs. Where there are several, they
are used by running several batches at once.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Generic, TypeVar

__all__ = ["RunsAtOnce", "map_at_once"]

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


class RunsAtOnce(Generic[_Result]):
    """Runs calls, at most `n_at_once` at the same time; with one, each runs where it is started.

    Parameters
    ----------
    n_at_once : int
    """

    def __init__(self, n_at_once: int) -> None:
        self._threads = ThreadPoolExecutor(n_at_once) if n_at_once > 1 else None
        self._n_at_once = n_at_once
        self._running: deque[Future[_Result]] = deque()

    def __enter__(self) -> RunsAtOnce[_Result]:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._threads is not None:
            self._threads.shutdown(cancel_futures=True)

    def start(self, function: Callable[[_Item], _Result], item: _Item) -> list[_Result]:
        """Start a call, and return the results of those that came before it by more than run at once."""
        if self._threads is None:
            return [function(item)]
        self._running.append(self._threads.submit(function, item))
        return self._results(down_to=self._n_at_once)

    def finish(self) -> list[_Result]:
        """Return the results of all calls that are still running."""
        return self._results(down_to=0)

    def _results(self, down_to: int) -> list[_Result]:
        n_due = max(len(self._running) - down_to, 0)
        return [self._running.popleft().result() for _ in range(n_due)]


def map_at_once(
    function: Callable[[_Item], _Result], items: Iterable[_Item], n_at_once: int
) -> Iterator[_Result]:
    """Yield what a function gives for each item; items are drawn in this thread.

    >>> list(map_at_once(abs, [-1, 2, -3], n_at_once=2))
    [1, 2, 3]
    """
    with RunsAtOnce[_Result](n_at_once) as runs:
        for item in items:
            yield from runs.start(function, item)
        yield from runs.finish()
