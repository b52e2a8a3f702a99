"""Numbers of processes on the command line."""

from __future__ import annotations

from typing import Any

import click

__all__ = ["N_JOBS"]


class _NumberOfJobs(click.ParamType):  # type: ignore[type-arg]  # generic since click 8.2
    """A number of processes, or -1 for one per core.

    >>> N_JOBS.convert("4", None, None)
    4
    """

    name = "integer"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        try:
            number = int(value)
        except ValueError:
            number = 0
        if number == 0 or number < -1:
            self.fail(f"{value!r}; expected at least 1 process, or -1 for one per core", param, ctx)
        return number


N_JOBS = _NumberOfJobs()
"""The parameter type."""
