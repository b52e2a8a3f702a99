"""Times on the command line: seconds, minutes and seconds, or hours, minutes and seconds."""

from __future__ import annotations

from typing import Any

import click

from fusili_mir.clock_times import parse_time
from fusili_mir.errors import InputError

__all__ = ["TIME"]


class _Time(click.ParamType):  # type: ignore[type-arg]  # generic since click 8.2
    """A time in seconds; see `fusili_mir.clock_times.parse_time`.

    >>> TIME.convert("1:15.5", None, None)
    75.5
    """

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        try:
            return parse_time(value)
        except InputError as error:
            self.fail(str(error), param, ctx)


TIME = _Time()
"""The parameter type."""
