"""Times on the command line: seconds, minutes and seconds, or hours, minutes and seconds."""

from __future__ import annotations

import re
from typing import Any

import click

__all__ = ["TIME"]

_CLOCK = re.compile(r"(?:(\d+):)?(\d+):([0-5]?\d(?:\.\d*)?)")


class _Time(click.ParamType):  # type: ignore[type-arg]  # generic since click 8.2
    """A time in seconds, written as 75, 75.5, 1:15.5 or 0:01:15.5.

    >>> [TIME.convert(text, None, None) for text in ("75.5", "1:15.5", "1:00:00")]
    [75.5, 75.5, 3600.0]
    """

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        try:
            return float(value)
        except ValueError:
            match = _CLOCK.fullmatch(str(value))
        if match is None or (match[1] is not None and int(match[2]) > 59):
            self.fail(
                f"{value!r} is not a time; expected seconds or m:ss, such as 75.5 or 1:15.5", param, ctx
            )
        return 3600.0 * int(match[1] or 0) + 60.0 * int(match[2]) + float(match[3])


TIME = _Time()
"""The parameter type."""
