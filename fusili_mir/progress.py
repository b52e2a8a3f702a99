"""Progress bars, shown only on a terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import TypeVar

import click

__all__ = ["progress_bar"]

T = TypeVar("T")


def progress_bar(items: Sequence[T], label: str, shown: bool = True) -> Iterator[T]:
    """Yield the items, with a progress bar on standard error if `shown` is true and it is a terminal."""
    if not (shown and sys.stderr.isatty()):
        yield from items
        return
    with click.progressbar(items, label=label, file=sys.stderr, show_pos=True) as bar:
        yield from bar
