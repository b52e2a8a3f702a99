"""What a long run shows on standard error: a bar or a stage on a terminal, elsewhere a line from time to time.

How long everything took is logged as well, to the logger "fusili_mir" at the level INFO; the command line prints
that with `--verbose`.
"""

from __future__ import annotations

import contextlib
import logging
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import click

from fusili_mir.boundary import printable_lines

if TYPE_CHECKING:
    from click._termui_impl import ProgressBar

__all__ = ["Count", "ProgressLines", "counted", "progress_bar", "progress_hidden", "progress_shown", "stage"]

T = TypeVar("T")

_log = logging.getLogger("fusili_mir")
_SHOWN_AFTER_SEC = 0.5
_STEP_SEC = 0.2
_LINE_SHARE, _LINE_EVERY_SEC = 0.05, 30.0
_LEAST_BETWEEN_SEC, _LOOK_EVERY_SEC = 10.0, 1.0
_ERASED = "\r\033[K"  # the line of a bar
_hidden = False
_now_sec: Callable[[], float] = time.monotonic


@contextmanager
def progress_hidden() -> Iterator[None]:
    """Show nothing, whatever is asked for."""
    global _hidden
    before, _hidden = _hidden, True
    try:
        yield
    finally:
        _hidden = before


def progress_shown(shown: bool = True) -> bool:
    """Return whether bars are shown: they are asked for, not hidden, and standard error is a terminal."""
    return _is_heard(shown) and sys.stderr.isatty()


def _is_heard(shown: bool) -> bool:
    return shown and not _hidden and sys.stderr is not None


class ProgressLines:
    """The lines that say how far something is, where there is no terminal.

    The first is due after ten seconds, so that a short run has none. The next is due when another 5 % is done,
    but not within ten seconds of the last one, and after 30 s in any case.

    Parameters
    ----------
    label : str
        What is done.
    total, done : int
        How much there is, and how much of it was there before; a `total` of 0 means that nobody knows.
    """

    def __init__(self, label: str, total: int = 0, done: int = 0) -> None:
        self._label, self._total, self._before = label, total, done
        self._begin_sec = self._said_sec = _now_sec()
        self._said, self._kept = done, list[str]()

    def keep(self, done: int, note: str) -> None:
        """Note a line that is due as soon as there are any."""
        self._kept.append(self._line(done, note))

    def due(self, done: int, note: str = "") -> list[str]:
        """Return the lines to be printed now, if this much is done."""
        silent_sec = _now_sec() - self._said_sec
        is_first = self._said_sec == self._begin_sec
        if is_first and silent_sec < _LEAST_BETWEEN_SEC:
            return []
        lines, self._kept = self._kept, []
        is_further = self._total > 0 and done - self._said >= _LINE_SHARE * self._total
        is_time = silent_sec >= (_LEAST_BETWEEN_SEC if is_first or is_further else _LINE_EVERY_SEC)
        if not lines and is_time:
            lines = [self._line(done, note)]
        if lines:
            self._said_sec, self._said = _now_sec(), done
        return lines

    def last(self, done: int) -> list[str]:
        """Return the line that says how it ended, if there were lines before."""
        if self._said_sec == self._begin_sec or (self._total and self._said == done):
            return []
        if self._total:
            return [self._line(done)]
        return [f"fusili-mir: {self._label}: done in {_duration(_now_sec() - self._begin_sec)}"]

    def _line(self, done: int, note: str = "") -> str:
        so_far_sec = _now_sec() - self._begin_sec
        parts = [f"{done} of {self._total} ({100 * done / self._total:.0f} %)"] if self._total else []
        parts += [note] if note else []
        parts.append(f"{_duration(so_far_sec)} so far")
        if self._before < done < self._total:
            left_sec = so_far_sec * (self._total - done) / (done - self._before)
            parts.append(f"about {_duration(left_sec, 60 if left_sec >= 120 else 1)} left")
        return printable_lines(f"fusili-mir: {self._label}: {', '.join(parts)}")


def _duration(seconds: float, step_sec: int = 1) -> str:
    """Return a time as people say it, rounded to so many seconds.

    >>> [_duration(seconds) for seconds in (95, 754, 8000)], _duration(754, 60)
    (['95 s', '12 min 34 s', '2 h 13 min'], '13 min')
    """
    whole = step_sec * round(seconds / step_sec)
    if whole < 120:
        return f"{whole} s"
    if whole < 7200:
        return f"{whole // 60} min {whole % 60} s".removesuffix(" 0 s")
    return f"{whole // 3600} h {whole % 3600 // 60} min"


class Count:
    """How far something is, as `counted` shows it."""

    def __init__(self, done: int, bar: ProgressBar[str | None] | None, lines: ProgressLines | None) -> None:
        self._done, self._bar, self._lines = done, bar, lines
        self._note, self._lock = "", threading.Lock()

    @property
    def has_lines(self) -> bool:
        """Whether lines are printed, and no bar."""
        return self._lines is not None

    def advance(self, number: int = 1, note: str = "", each: bool = False) -> None:
        """Count what has been done.

        Parameters
        ----------
        number : int
        note : str
            What to say of it.
        each : bool
            Whether it is worth a line of its own, where there is no terminal.
        """
        if self._bar is not None:
            self._bar.update(number, note)
        with self._lock:
            self._done, self._note = self._done + number, note
            if self._lines is not None and each:
                self._lines.keep(self._done, note)
        self.look()

    def look(self) -> None:
        """Print the lines that are due."""
        if self._lines is not None:
            with self._lock:
                _print(*self._lines.due(self._done, self._note))

    def end(self) -> None:
        """Print how it ended, if anything was printed."""
        if self._lines is not None:
            _print(*self._lines.last(self._done))

    def say(self, line: str) -> None:
        """Print a line, if anything is shown at all."""
        if self._bar is not None:
            _print(_ERASED + printable_lines(line))
        elif self._lines is not None:
            _print(printable_lines(line))


@contextmanager
def counted(label: str, total: int, done: int = 0, shown: bool = True) -> Iterator[Count]:
    """Show how far something is, by a bar or by lines.

    Parameters
    ----------
    label : str
        What is done.
    total, done : int
        How much there is, and how much of it is there already.
    shown : bool
        Whether to show it.

    Yields
    ------
    Count
        To be told what has been done.
    """
    with _counted(label, total, done, shown) as count:
        if not count.has_lines:
            yield count
            return
        with _in_thread(partial(_look, count)):  # lines come also while nothing is done for long
            yield count


def progress_bar(items: Sequence[T], label: str, shown: bool = True) -> Iterator[T]:
    """Yield items, and show how many were dealt with, by a bar or by lines, if `shown` is true."""
    with _counted(
        label, len(items), 0, shown
    ) as count:  # not in a thread, which might outlive a forgotten loop
        for item in items:
            yield item
            count.advance()


@contextmanager
def stage(label: str, shown: bool = True) -> Iterator[None]:
    """Show a stage whose length is not known, with the time that it has taken so far.

    Parameters
    ----------
    label : str
        What is done.
    shown : bool
        Whether to show it. On a terminal, a stage of less than half a second is not shown at all.
    """
    start_sec = _now_sec()
    if progress_shown(shown):
        with _in_thread(partial(_show_clock, label, start_sec)):
            yield
        _log_end(label, start_sec)
    else:
        with counted(label, 0, shown=shown):
            yield


@contextmanager
def _counted(label: str, total: int, done: int, shown: bool) -> Iterator[Count]:
    start_sec = _now_sec()
    if progress_shown(shown):
        with click.progressbar(
            length=total, label=label, file=sys.stderr, show_pos=True, item_show_func=lambda note: note or ""
        ) as bar:
            bar.update(done)
            yield Count(done, bar, None)
    else:
        count = Count(done, None, ProgressLines(label, total, done) if _is_heard(shown) else None)
        yield count
        count.end()
    _log_end(label, start_sec)


def _log_end(label: str, start_sec: float) -> None:
    _log.info("%s: %.1f s", label, _now_sec() - start_sec)


@contextmanager
def _in_thread(work: Callable[[threading.Event], None]) -> Iterator[None]:
    """Do something in a thread until the context ends, of which an event tells it."""
    ended = threading.Event()
    thread = threading.Thread(target=work, args=(ended,), daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _look(count: Count, ended: threading.Event) -> None:
    while not ended.wait(_LOOK_EVERY_SEC):
        count.look()


def _show_clock(label: str, start_sec: float, ended: threading.Event) -> None:
    """Write a line with the seconds since `start_sec` again and again."""
    if ended.wait(_SHOWN_AFTER_SEC):
        return
    while True:
        is_last = ended.is_set()
        line = f"\r{label}  {_now_sec() - start_sec:.1f} s"
        click.echo(line, file=sys.stderr, nl=is_last)
        if is_last:
            return
        ended.wait(_STEP_SEC)


def _print(*lines: str) -> None:
    """Print lines; that nobody can read them must not end the work."""
    with contextlib.suppress(OSError, ValueError):
        for line in lines:
            click.echo(line, file=sys.stderr)
