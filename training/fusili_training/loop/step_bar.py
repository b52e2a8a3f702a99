"""The progress bar of a run, with the loss, and messages."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import TYPE_CHECKING

import click

from fusili_mir.progress import progress_shown

if TYPE_CHECKING:
    from click._termui_impl import ProgressBar

__all__ = ["StepBar"]


class StepBar:
    """A progress bar over the steps of a run, on standard error if that is a terminal.

    Parameters
    ----------
    total_steps, first_step : int
        Number of steps of the run, and number of steps already done.
    shown : bool
        Whether anything is printed; False on all ranks except the first.
    """

    def __init__(self, total_steps: int, first_step: int, shown: bool) -> None:
        self._shown = shown
        self._bar: ProgressBar[float] | None = None
        if progress_shown(shown):
            self._bar = click.progressbar(
                length=total_steps,
                label="training",
                file=sys.stderr,
                show_pos=True,
                item_show_func=lambda loss: "" if loss is None else f"loss {loss:.4f}",
            )
            self._bar.update(first_step)

    def __enter__(self) -> StepBar:
        if self._bar is not None:
            self._bar.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.__exit__(kind, error, trace)

    def advance(self, loss: float) -> None:
        """Count a step."""
        if self._bar is not None:
            self._bar.update(1, loss)

    def say(self, line: str) -> None:
        """Print a line."""
        if self._shown:
            click.echo(("\n" if self._bar is not None else "") + line, err=True)
