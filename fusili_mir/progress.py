"""What a long run shows: progress bars and stages on a terminal, and log messages of how long each took.

The messages go to the logger "fusili_mir" at the level INFO; the command line prints them with `--verbose`.
"""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

import click

__all__ = ["progress_bar", "progress_hidden", "progress_shown", "stage"]

T = TypeVar("T")

_log = logging.getLogger("fusili_mir")
_SHOWN_AFTER_SEC = 0.5
_STEP_SEC = 0.2
_hidden = False


@contextmanager
def progress_hidden() -> Iterator[None]:
    """Show neither bars nor stages, whatever is asked for."""
    global _hidden
    before, _hidden = _hidden, True
    try:
        yield
    finally:
        _hidden = before


def progress_shown(shown: bool = True) -> bool:
    """Return whether progress is shown: it is asked for, not hidden, and standard error is a terminal."""
    return shown and not _hidden and sys.stderr is not None and sys.stderr.isatty()


def progress_bar(items: Sequence[T], label: str, shown: bool = True) -> Iterator[T]:
    """Yield the items, with a progress bar on standard error if `shown` is true and it is a terminal."""
    start_sec = time.perf_counter()
    if progress_shown(shown):
        with click.progressbar(items, label=label, file=sys.stderr, show_pos=True) as bar:
            yield from bar
    else:
        yield from items
    _log.info("%s: %.1f s", label, time.perf_counter() - start_sec)


@contextmanager
def stage(label: str, shown: bool = True) -> Iterator[None]:
    """Show a stage whose length is not known, with the seconds that it has taken so far.

    Parameters
    ----------
    label : str
        What is done.
    shown : bool
        Whether to show it, on standard error if that is a terminal. A stage of less than half a second is not
        shown at all.
    """
    start_sec = time.perf_counter()
    if not progress_shown(shown):
        yield
    else:
        done = threading.Event()
        clock = threading.Thread(target=_show_clock, args=(label, start_sec, done), daemon=True)
        clock.start()
        try:
            yield
        finally:
            done.set()
            clock.join()
    _log.info("%s: %.1f s", label, time.perf_counter() - start_sec)


def _show_clock(label: str, start_sec: float, done: threading.Event) -> None:
    """Write a line with the seconds since `start_sec` again and again until `done` is set."""
    if done.wait(_SHOWN_AFTER_SEC):
        return
    while True:
        ended = done.is_set()
        line = f"\r{label}  {time.perf_counter() - start_sec:.1f} s"
        click.echo(line, file=sys.stderr, nl=ended)
        if ended:
            return
        done.wait(_STEP_SEC)
