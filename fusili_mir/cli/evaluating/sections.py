"""Help in sections: options that belong to one program of a command stand together under a title."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

__all__ = ["SectionOption", "SectionedCommand", "add_options"]

F = TypeVar("F", bound=Callable[..., Any])


class SectionOption(click.Option):
    """An option with the title of the section of the help in which it stands."""

    def __init__(self, *arguments: Any, section: str = "Options", **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.section = section


class SectionedCommand(click.Command):
    """A command whose help lists its options section by section."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the sections in the order in which their first options were declared."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx) if isinstance(parameter, click.Option) else None
            if record is not None:
                sections.setdefault(getattr(parameter, "section", "Options"), []).append(record)
        for title, records in sections.items():
            with formatter.section(title):
                formatter.write_dl(records)


def add_options(command: F, options: Sequence[Callable[[F], F]]) -> F:
    """Add options to a command; its help shows them in this order."""
    for option in reversed(options):
        command = option(command)
    return command
