"""`fusili-mir render`: render a corpus of scores into training pairs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from fusili_mir.cli.job_options import N_JOBS
from fusili_mir.cli.verbosity import plain_warnings, say_summary
from fusili_mir.errors import InputError, MissingExtraError

__all__ = ["command"]


@click.command(name="render")
@click.argument("corpus", type=click.Path(path_type=Path))
@click.option("-o", "--out", required=True, type=click.Path(path_type=Path), help="Folder to write into.")
@click.option("--recipe", type=click.Path(path_type=Path), help="TOML file.  [default: staff strips, 16 kHz]")
@click.option("--seed", type=click.IntRange(min=0), help="Seed, instead of the recipe's.")
@click.option("--strict-soundfonts", is_flag=True, help="Use no soundfonts but those that the recipe names.")
@click.option("--licence", "licences", multiple=True, help="Use only pieces with this licence; repeatable.")
@click.option(
    "--split",
    "splits",
    multiple=True,
    type=click.Choice(["train", "valid", "test"]),
    help="Render only this split; repeatable.",
)
@click.option("--split-column", default="split", show_default=True, help="Column with the split of a piece.")
@click.option("--files", "pattern", help="Use only files that match a pattern, such as '*/lieder/*'.")
@click.option("--limit", type=click.IntRange(min=1), help="Use at most this many pieces.")
@click.option(
    "--jobs", type=N_JOBS, default=-1, show_default=True, help="Number of processes; -1: one per core."
)
@click.option("--backend", help="A joblib backend: loky, dask, ray, ...")
@click.option(
    "--backend-option", "backend_options", multiple=True, metavar="NAME=VALUE", help="Option of the backend."
)
@click.option(
    "--contact-sheet", type=click.Path(path_type=Path), help="PNG file to write, with 12 pairs to look at."
)
def command(
    corpus: Path,
    out: Path,
    recipe: Path | None,
    seed: int | None,
    strict_soundfonts: bool,
    split_column: str,
    jobs: int,
    backend: str | None,
    backend_options: tuple[str, ...],
    contact_sheet: Path | None,
    **selection: Any,
) -> None:
    """Render the scores of CORPUS into shards of image-audio pairs with the places and times of their notes.

    CORPUS is a folder of MusicXML, MXL, MEI, kern or ABC files, or a CSV table with the columns id and file
    (optionally licence, split, performance). If the command is interrupted, repeat it to continue.
    """
    try:
        from fusili_training.rendering.corpus import list_corpus, select_pieces
        from fusili_training.rendering.render import render_corpus
        from fusili_training.rendering.render_recipe import RenderRecipe, load_render_recipe
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            f"rendering needs the package {error.name}; install it with `pip install 'fusili-mir[train]'`"
        ) from error
    chosen = load_render_recipe(recipe) if recipe else RenderRecipe()
    if seed is not None:
        chosen = chosen.with_seed(seed)
    if strict_soundfonts:
        chosen = chosen.with_strict_soundfonts()
    pieces = select_pieces(list_corpus(corpus, split_column), **selection)
    options = dict(_name_and_value(option) for option in backend_options)
    with plain_warnings():
        manifest = render_corpus(pieces, out, chosen, jobs, backend, options, progress=True)
    say_summary(_summary(manifest, out))
    if manifest["broken"]:
        say_summary(
            f"{len(manifest['broken'])} of the pieces could not be rendered; {out / 'manifest.json'} says why"
        )
    if not manifest["segments"]:
        raise InputError(f"{out}: no segment could be rendered; manifest.json in that folder says why")
    if contact_sheet:
        from fusili_training.data.contact_sheet import save_contact_sheet

        split = next(name for name, counts in manifest["splits"].items() if counts["segments"])
        save_contact_sheet(out, contact_sheet, split, seed=chosen.seed)


def _name_and_value(option: str) -> tuple[str, str]:
    name, separator, value = option.partition("=")
    if not separator:
        raise click.BadParameter(f"{option!r}; expected NAME=VALUE", param_hint="--backend-option")
    return name, value


def _summary(manifest: dict[str, Any], out: Path) -> str:
    counts = [f"{manifest['segments']} segments"]
    if manifest["mutants"]:
        counts.append(f"{manifest['mutants']} mutants")
    counts.append(f"{manifest['pieces'] - len(manifest['broken'])} of {manifest['pieces']} pieces")
    counts += [f"{number} {reason}" for reason, number in manifest["dropped"].items()]
    return f"{', '.join(counts)} -> {out}"
