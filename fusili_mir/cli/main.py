"""The command line: `fusili-mir COMMAND`. A command's module is imported only when it is called."""

from __future__ import annotations

import functools
import os
import signal
import sys
import threading
import traceback
from importlib import import_module
from typing import Any

import click

from fusili_mir import __version__
from fusili_mir.boundary import printable
from fusili_mir.cli.examples import epilog
from fusili_mir.cli.verbosity import give_up_stream, with_verbosity
from fusili_mir.errors import FusiliError, flags_named

__all__ = ["main"]

_COMMANDS = {
    "align": "Align a recording with a score: which note and which spot sounds at which second.",
    "align-many": "Align many recordings with their scores, and summarise the results.",
    "demo": "Align a song that comes with the package, and report the errors.",
    "evaluate": "Evaluate a model on the paper's three tasks, and measure its onset errors.",
    "export": "Export a trained checkpoint as a model bundle, and check that both agree.",
    "index": "Index scores and recordings, so that any part of one can be found.",
    "info": "Describe a model bundle, and the devices of this machine that can run it.",
    "pages": "Show what is found on the pages of a score: systems, measures, note heads.",
    "point": "Find the spots that sound at a given second, or when a given spot sounds.",
    "render": "Render a corpus of scores as training pairs.",
    "search": "Find the pieces of an index that a page, a photograph or a recording belongs to.",
    "train": "Train a model from a recipe.",
    "view": "See, hear and correct a result in the browser.",
}
"""Name and one-line help of each command; `fusili_mir.cli.commands.NAME` (with _ for -) holds its
`command`."""

_WITH_TORCH = {"evaluate", "export", "train"}
_GO_ON = {"align-many", "index", "render"}
"""Commands that go on where they were when they are repeated; `train` says itself how it does."""

_LONGEST_LINE = 2000
_BLAS_THREADS = ("OPENBLAS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")


class _InterruptedError(Exception):
    """Ctrl-C; the text says how to go on."""


class _LazyGroup(click.Group):
    """A group that knows the names and help of its commands, and imports a command only to run it."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as error:
            goes_on = ctx.invoked_subcommand in _GO_ON
            raise _InterruptedError("; repeat the command to go on" if goes_on else "") from error

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        if cmd_name not in _WITH_TORCH:
            _multiply_alike_everywhere()
        module = cmd_name.replace("-", "_")
        command: click.Command = import_module(f"fusili_mir.cli.commands.{module}").command
        return _completed(command, cmd_name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(_COMMANDS.items()))


@functools.cache
def _completed(command: click.Command, name: str) -> click.Command:
    """Return a command with what all commands have: `--quiet`, `--verbose`, and examples in its help."""
    completed = with_verbosity(command)
    completed.epilog = epilog(name)
    return completed


@click.group(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="fusili-mir")
def _cli() -> None:
    """Align score images with recordings."""


def main(argv: list[str] | None = None) -> None:
    """Run the command line; a `FusiliError` becomes one line on standard error and exit code 1."""
    _heed_requests_to_end()
    try:
        _run(argv)
    except OSError as error:
        if traceback.extract_tb(error.__traceback__)[-1].name != click.echo.__name__:
            raise
        refused = give_up_stream("output", error)  # by help or a version; of standard error, nobody hears
        try:
            click.echo(f"fusili-mir: {refused}", err=True)
        except OSError as also:
            give_up_stream("error", also)
        sys.exit(1)


def _run(argv: list[str] | None) -> None:
    try:
        with flags_named():
            result: Any = _cli.main(args=argv, prog_name="fusili-mir", standalone_mode=False)
        sys.exit(result if isinstance(result, int) else 0)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt, _InterruptedError) as error:
        click.echo(f"fusili-mir: interrupted{error}", err=True)
        sys.exit(130)
    except FusiliError as error:
        click.echo(f"fusili-mir: {_one_line(str(error))}", err=True)
        sys.exit(1)


def _one_line(text: str) -> str:
    """Return a message without what a stranger's file may have put into it: line breaks, codes, whole pages."""
    line = " ".join(map(printable, text.split()))
    half = _LONGEST_LINE // 2
    return line if len(line) <= _LONGEST_LINE else f"{line[:half]} ... {line[-half:]}"


def _multiply_alike_everywhere() -> None:
    """Let numpy, which is not imported yet, multiply matrices on one thread, unless the user has chosen.

    The number of threads decides in which order products are added up, and so the last digits of a result.
    """
    for name in _BLAS_THREADS:
        os.environ.setdefault(name, "1")


def _heed_requests_to_end() -> None:
    """Let SIGTERM end the program as an error does: what is half-written is removed, workers are stopped."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
