"""How much a command says: `--quiet`, the usual, or `--verbose`.

Both options belong to every command. Quiet leaves out summary, warnings and progress; errors, and results
that were asked for, remain. Verbose says on standard error what is done, and how long it takes.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import logging
import os
import platform
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from copy import copy
from importlib import metadata
from typing import Any

import click

from fusili_mir import __version__
from fusili_mir.boundary import printable_lines
from fusili_mir.errors import FusiliWarning, OutputError
from fusili_mir.progress import progress_hidden, progress_shown

__all__ = ["give_up_stream", "plain_warnings", "say", "say_summary", "with_verbosity"]

_QUIET, _VERBOSE = "fusili_mir.quiet", "fusili_mir.verbose"
_PACKAGES = ("numpy", "partitura", "verovio", "soundfile", "av", "onnxruntime", "onnxruntime-gpu", "torch")


def with_verbosity(command: click.Command) -> click.Command:
    """Return a command with the two options."""
    options = [
        click.Option(
            ["-q", "--quiet"],
            is_flag=True,
            expose_value=False,
            callback=functools.partial(_choose, name=_QUIET),
            help="Print no summary, warnings or progress.",
        ),
        click.Option(
            ["-v", "--verbose"],
            is_flag=True,
            expose_value=False,
            callback=functools.partial(_choose, name=_VERBOSE),
            help="Print what is done, how long it takes, and versions.",
        ),
    ]
    callback = command.callback
    assert callback is not None  # noqa: S101

    @functools.wraps(callback)
    def run(*arguments: Any, **options: Any) -> Any:
        chosen = click.get_current_context().meta
        with (
            progress_hidden() if chosen.get(_QUIET) else nullcontext(),
            _logged_to_terminal() if chosen.get(_VERBOSE) else nullcontext(),
        ):
            return callback(*arguments, **options)

    completed = copy(command)
    completed.params = [*command.params, *options]
    completed.callback = run
    return completed


def say_summary(text: str) -> None:
    """Print the summary of a command, unless it is to be quiet."""
    if not _is_quiet():
        say(text)


def say(text: str, err: bool = False) -> None:
    """Print a text, in which names of files and what strangers wrote into them cannot command the terminal."""
    try:
        click.echo(printable_lines(text), err=err)
    except OSError as error:
        if error.errno == errno.EPIPE:  # whoever reads it has seen enough; click ends the program
            raise
        raise give_up_stream("error" if err else "output", error) from error


def give_up_stream(name: str, error: OSError) -> OutputError:
    """Return what to say of a standard stream that cannot be written, and drop what it still holds.

    Python would try to write it once more at its end, and exit with 120.
    """
    nowhere = os.open(os.devnull, os.O_WRONLY)
    with contextlib.suppress(OSError):  # of a stream that is no file
        os.dup2(nowhere, (sys.stderr if name == "error" else sys.stdout).fileno())
    os.close(nowhere)
    return OutputError(f"standard {name}: cannot be written ({error.strerror})")


@contextmanager
def plain_warnings() -> Iterator[None]:
    """Print our warnings on standard error as they come, one line each, and suppress all others."""

    def show(message: Warning | str, *_: object, **__: object) -> None:
        if not _is_quiet():
            if progress_shown():
                click.echo("\r\033[K", nl=False, err=True)  # erases the line of a bar or a stage
            say(f"fusili-mir: warning: {' '.join(str(message).split())}", err=True)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", FusiliWarning)
        warnings.showwarning = show
        yield


def _is_quiet() -> bool:
    context = click.get_current_context(silent=True)
    return context is not None and bool(context.meta.get(_QUIET))


def _choose(context: click.Context, _: click.Parameter, value: bool, name: str) -> None:
    context.meta[name] = value
    if context.meta.get(_QUIET) and context.meta.get(_VERBOSE):
        raise click.UsageError("--quiet and --verbose exclude each other", context)


class _PlainFormatter(logging.Formatter):
    """Lets names of files in messages not command the terminal."""

    def format(self, record: logging.LogRecord) -> str:
        """Return what is printed."""
        return printable_lines(super().format(record))


@contextmanager
def _logged_to_terminal() -> Iterator[None]:
    """Print the log messages of the package on standard error, versions first and the total time last."""
    log = logging.getLogger("fusili_mir")
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_PlainFormatter("fusili-mir: %(message)s"))
    level, start_sec = log.level, time.perf_counter()
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    try:
        log.info("%s", _versions())
        yield
        log.info("all together: %.1f s", time.perf_counter() - start_sec)
    finally:
        log.setLevel(level)
        log.removeHandler(handler)


def _versions() -> str:
    found = [f"fusili-mir {__version__}", f"Python {platform.python_version()}"]
    for package in _PACKAGES:
        try:
            found.append(f"{package} {metadata.version(package)}")
        except metadata.PackageNotFoundError:
            continue
    return f"{', '.join(found)}, {platform.system()} {platform.machine()}"
