"""`fusili-mir point`: which spots sound at a given second, and when a given spot sounds."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import click

from fusili_mir.cli.options import alignment_arguments, alignment_options, open_aligner, read_align_options
from fusili_mir.cli.times import TIME
from fusili_mir.cli.verbosity import plain_warnings, say

__all__ = ["command"]

_PLACE = re.compile(r"(\d+):(-?[\d.]+),(-?[\d.]+)")


@click.command(name="point")
@alignment_arguments
@click.option("--time", "seconds", type=TIME, help="Find what sounds at this time: seconds or m:ss.")
@click.option("--at", "place", metavar="PAGE:X,Y", help="Find when this spot sounds; the first page is 1.")
@click.option("--top", type=click.IntRange(min=1), default=5, show_default=True, help="Number of answers.")
@alignment_options
def command(
    score: tuple[Path, ...],
    audio: str,
    seconds: float | None,
    place: str | None,
    top: int,
    **options: Any,
) -> None:
    """Find the spots of SCORE that sound at a second of AUDIO, or the seconds at which a spot sounds.

    The first answer is the one that fits the whole recording; the others are similar spots or moments, the most
    similar first. Pages are counted from 1, among those of --pages; x and y are in pixels of the page.
    """
    from fusili_mir.alignment.retrieval import point_at_spot, point_at_time

    if (seconds is None) == (place is None):
        raise click.UsageError("give either --time SECONDS or --at PAGE:X,Y")
    spot = None if place is None else _parse_place(place)
    said = read_align_options(options)
    with plain_warnings():
        alignment = open_aligner(options).align(list(score), audio, said)
    if seconds is not None:
        lines = ["page        x        y  measure  similarity"]
        for found in point_at_time(alignment, seconds, top):
            where = f"{found.page + 1:4d} {found.x:8.1f} {found.y:8.1f}"
            lines.append(f"{where}  {found.measure or '-':>7}  {found.similarity:10.3f}")
    else:
        assert spot is not None  # noqa: S101
        lines = [" seconds  similarity"]
        for moment in point_at_spot(alignment, spot[0] - 1, spot[1], spot[2], top):
            lines.append(f"{moment.seconds:8.3f}  {moment.similarity:10.3f}")
    say("\n".join(lines))


def _parse_place(text: str) -> tuple[int, float, float]:
    match = _PLACE.fullmatch(text)
    try:
        if match is None or int(match[1]) < 1:
            raise ValueError
        return int(match[1]), float(match[2]), float(match[3])
    except ValueError:
        raise click.UsageError(
            f"--at is {text!r}, expected PAGE:X,Y such as 1:420,310, with pages counted from 1"
        ) from None
