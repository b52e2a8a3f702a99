"""`fusili-mir search`: which pieces of an index a query belongs to, and where in them it is."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fusili_mir.boundary import printable
from fusili_mir.cli.times import TIME
from fusili_mir.cli.verbosity import plain_warnings, say, say_summary
from fusili_mir.progress import stage

if TYPE_CHECKING:
    from fusili_mir.collection.searching import Match

__all__ = ["command"]

_NUMBER = r"\d+(?:\.\d*)?"
_BOX = re.compile(rf"(?:(\d{{1,9}}):)?({_NUMBER}),({_NUMBER}),({_NUMBER}),({_NUMBER})")


def _semitones(context: click.Context, parameter: click.Parameter, value: str) -> str | float:
    from fusili_mir.alignment.align_options import AlignOptions
    from fusili_mir.errors import InputError

    try:
        return value if value == "auto" else AlignOptions(transpose=float(value)).transpose or 0.0
    except InputError as error:
        raise click.BadParameter(str(error), context, parameter) from error
    except ValueError:
        raise click.BadParameter(f"{value!r}, expected auto or semitones", context, parameter) from None


@click.command(name="search")
@click.argument("index", type=click.Path(path_type=Path))
@click.argument("query")
@click.option(
    "--kind", type=click.Choice(["score", "recording"]), help="Look for one kind of pieces.  [default: both]"
)
@click.option("--top", type=click.IntRange(1), default=10, show_default=True, help="Number of answers.")
@click.option(
    "--start", "start_sec", type=TIME, help="Look for a recording from this time on: seconds or m:ss."
)
@click.option("--end", "end_sec", type=TIME, help="Look for a recording up to this time only.")
@click.option("--page", type=click.IntRange(1), help="Look for one page of a score, counted from 1.")
@click.option("--box", metavar="[PAGE:]X0,Y0,X1,Y1", help="Look for what is in a box, in pixels of the page.")
@click.option(
    "--transpose",
    callback=_semitones,
    default="0",
    show_default=True,
    metavar="auto|SEMITONES",
    help="Semitones by which a recording sounds above the scores of the index; auto: all from -6 to 6 are tried.",
)
@click.option(
    "--candidates",
    type=click.IntRange(1),
    default=100,
    show_default=True,
    help="Pieces that are looked at in full; more for collections of many thousand.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the answers as JSON.")
@click.option(
    "--open", "opens", is_flag=True, help="Align the query with the best answer, and open it in the browser."
)
@click.option("-o", "--out", type=click.Path(path_type=Path), help="With --open: folder for the alignment.")
@click.option("--server", metavar="URI", help="Milvus server of the index, if it has moved.")
@click.option(
    "--device", default="auto", show_default=True, help="Where the model runs; see `fusili-mir align`."
)
@click.option(
    "--model",
    type=click.Path(path_type=Path),
    metavar="BUNDLE",
    help="Folder of the model.  [default: the installed one]",
)
@click.pass_context
def command(
    context: click.Context,
    /,
    index: Path,
    query: str,
    page: int | None,
    box: str | None,
    as_json: bool,
    opens: bool,
    out: Path | None,
    server: str | None,
    **options: Any,
) -> None:
    """Find the pieces of INDEX that QUERY belongs to, the most probable first.

    QUERY is a recording, a score, a PDF or an image, whole or in part: a photograph of a few bars, a page, ten
    seconds of sound. The probability is that of being a match at all.
    """
    from fusili_mir.collection.index import open_index, refuse_swapped
    from fusili_mir.collection.searching import search

    if opens and as_json:
        raise click.UsageError("--open and --json exclude each other")
    page, corners = _parse_box(page, box)
    refuse_swapped(index, query)
    with plain_warnings():
        opened = open_index(index, server)
        with stage("searching"):
            matches = search(opened, query, page=None if page is None else page - 1, box=corners, **options)
    if as_json:
        say(_json(matches))
        return
    say(_table(matches))
    if opens:
        _open_best(context, query, matches, out, options)


def _json(matches: list[Match]) -> str:
    """Return JSON in which what cannot be printed, such as half a character in the name of a file, is escaped."""
    text = json.dumps([match.to_json() for match in matches], indent=1, ensure_ascii=False)
    return "".join(c if c.isprintable() or c == "\n" else json.dumps(c)[1:-1] for c in text)


def _table(matches: list[Match]) -> str:
    if not matches:
        return "no match"
    shown = [printable(path) for path in _short([match.path for match in matches])]
    width = max(len("piece"), *(len(path) for path in shown))
    places = max(len("place"), *(len(match.place) for match in matches))
    lines = [f"{'piece':{width}}  {'place':{places}}  probability"]
    for match, path in zip(matches, shown, strict=True):
        key = f"  {match.semitones:+g} semitones" if match.semitones else ""
        lines.append(f"{path:{width}}  {match.place:{places}}  {match.probability:11.3f}{key}")
    return "\n".join(lines)


def _short(paths: list[str]) -> list[str]:
    """Write paths that lie below the current folder relative to it."""
    here = Path.cwd()
    return [str(Path(path).relative_to(here)) if Path(path).is_relative_to(here) else path for path in paths]


def _parse_box(
    page: int | None, box: str | None
) -> tuple[int | None, tuple[float, float, float, float] | None]:
    if box is None:
        return page, None
    match = _BOX.fullmatch(box)
    x0, y0, x1, y1 = (float(match[group]) for group in range(2, 6)) if match else (0.0, 0.0, 0.0, 0.0)
    if match is None or x1 <= x0 or y1 <= y0 or match[1] == "0":
        raise click.UsageError(f"--box is {box!r}, expected PAGE:X0,Y0,X1,Y1 such as 1:100,250,800,400")
    if match[1] is not None and page not in (None, int(match[1])):
        raise click.UsageError("--page and --box name different pages")
    return int(match[1]) if match[1] is not None else page, (x0, y0, x1, y1)


def _open_best(
    context: click.Context, query: str, matches: list[Match], out: Path | None, options: dict[str, Any]
) -> None:
    """Align the query with the best match of the other kind, and view it."""
    import tempfile

    from fusili_mir.cli.commands import align, view
    from fusili_mir.collection.file_states import is_gone
    from fusili_mir.collection.kinds import kind_of
    from fusili_mir.errors import InputError

    kind = kind_of(query)
    best = next((match for match in matches if match.kind != kind), None)
    if best is None:
        other = "recording" if kind == "score" else "score"
        raise InputError(f"no {other} is among the answers, so nothing can be aligned with {query}")
    if is_gone(Path(best.path)):
        raise InputError(
            f"{best.path}: the best answer is no longer there; `fusili-mir index` again, with --remove-missing"
        )
    score, recording = (query, best.path) if kind == "score" else (best.path, query)
    folder = out or Path(tempfile.mkdtemp(prefix="fusili-mir-")) / "alignment"
    stretch: dict[str, Any] = {}
    if kind == "recording":
        stretch = {"start_sec": options["start_sec"], "end_sec": options["end_sec"]}
    chosen = {**stretch, "model": options["model"], "device": options["device"]}
    say_summary(f"aligning {Path(score).name} with {Path(recording).name}")
    context.invoke(align.command, score=(Path(score),), audio=recording, out=folder, **chosen)
    context.invoke(view.command, results=(folder,))
