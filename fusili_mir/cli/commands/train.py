"""`fusili-mir train`: train a model by a recipe."""

from __future__ import annotations

from pathlib import Path

import click

from fusili_mir.cli.verbosity import say, say_summary
from fusili_mir.errors import MissingExtraError

__all__ = ["command"]


@click.command(name="train")
@click.argument("recipe")
@click.option("--data", help="Folder or URL of the rendered pairs.  [default: data.folder of the recipe]")
@click.option(
    "--msmd", help="Folder of MSMD, whose split `valid` decides the best checkpoint together with the loss."
)
@click.option("--split-file", help="MSMD's split file.  [default: all pieces of the folder]")
@click.option(
    "-o",
    "--out",
    type=click.Path(path_type=Path),
    help="Folder of the run.  [default: runs/NAME OF THE RECIPE]",
)
@click.option(
    "--override",
    "overrides",
    multiple=True,
    metavar="KEY=VALUE",
    help="Override a key of the recipe, such as loss.alpha=0.5; repeatable.",
)
@click.option("--resume", is_flag=True, help="Continue the run in that folder, if there is one.")
@click.option(
    "--dry-run", is_flag=True, help="Only print the number of parameters, the memory and the steps."
)
@click.pass_context
def command(
    context: click.Context,
    recipe: str,
    data: str | None,
    msmd: str | None,
    split_file: str | None,
    out: Path | None,
    overrides: tuple[str, ...],
    resume: bool,
    dry_run: bool,
) -> None:
    """Train a model by RECIPE, a TOML file or the name of a recipe that comes with the package.

    Ctrl-C saves a checkpoint; repeat the command with --resume to continue from it. To train on several GPUs or
    machines, use `torchrun ... -m fusili_training` instead of `fusili-mir train`.
    """
    try:
        from fusili_training.loop.interruption import TrainingInterruptedError
        from fusili_training.loop.recipe_files import read_recipe
        from fusili_training.loop.running import describe_run, run_recipe
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            f"training needs the package {error.name}, which is not installed: pip install 'fusili-mir[train]'"
        ) from error
    paths = {"data.folder": data, "data.msmd": msmd, "data.msmd_split_file": split_file}
    overrides = (*overrides, *(f"{key}={path}" for key, path in paths.items() if path is not None))
    chosen = read_recipe(recipe, overrides)
    if dry_run:
        say("\n".join(describe_run(chosen)))
        return
    try:
        summary = run_recipe(chosen, out or Path("runs") / chosen.name, resume)
    except TrainingInterruptedError as interruption:
        say(f"fusili-mir: {interruption}", err=True)
        context.exit(130)
    if summary:
        say_summary(summary)
