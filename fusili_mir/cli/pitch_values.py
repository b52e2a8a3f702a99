"""The pitch of a recording on the command line: auto, or a number of semitones or Hz."""

from __future__ import annotations

from typing import Any

import click

__all__ = ["SEMITONES", "TUNING_HZ"]


class _Auto(click.ParamType):  # type: ignore[type-arg]  # generic since click 8.2
    """A number that is checked by a function of `fusili_mir.alignment.pitch_options`, or auto.

    >>> SEMITONES.convert("auto", None, None), SEMITONES.convert("-1.5", None, None)
    ('auto', -1.5)
    """

    def __init__(self, check: str) -> None:
        self.name = check.removeprefix("check_")
        self._check = check

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> str | float | None:
        if value == "auto":
            return "auto"
        from fusili_mir.alignment import pitch_options
        from fusili_mir.errors import InputError

        try:
            number: float | None = getattr(pitch_options, self._check)(value)
        except InputError as error:
            self.fail(str(error), param, ctx)
        return number


SEMITONES = _Auto("check_transpose")
"""How far a recording sounds above its score."""

TUNING_HZ = _Auto("check_tuning")
"""The frequency of A in a recording."""
