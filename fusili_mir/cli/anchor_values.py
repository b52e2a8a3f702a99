"""Anchors on the command line: a measure and a second."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from fusili_mir.cli.times import TIME

if TYPE_CHECKING:
    from fusili_mir.alignment.anchors import Anchor

__all__ = ["ANCHOR"]


class _Anchor(click.ParamType):  # type: ignore[type-arg]  # generic since click 8.2
    """An anchor such as 17=42.5, 17:2=61 or 17=1:01.

    >>> ANCHOR.convert("17=1:01", None, None).second
    61.0
    """

    name = "anchor"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Anchor:
        from fusili_mir.alignment.anchors import parse_anchor
        from fusili_mir.errors import InputError

        try:
            return parse_anchor(value, lambda text: TIME.convert(text, param, ctx))
        except InputError as error:
            self.fail(str(error), param, ctx)


ANCHOR = _Anchor()
"""The parameter type."""
