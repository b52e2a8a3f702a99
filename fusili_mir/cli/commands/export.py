"""`fusili-mir export`: a trained checkpoint as a bundle."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fusili_mir.boundary import reason
from fusili_mir.cli.verbosity import say_summary
from fusili_mir.errors import InputError, MissingExtraError
from fusili_mir.staging import check_output_folder

if TYPE_CHECKING:
    from fusili_export.checkpoints import TrainedModel
    from fusili_export.exporting import ManifestFacts

__all__ = ["command"]


@click.command(name="export")
@click.argument("checkpoint", type=click.Path(path_type=Path))
@click.option("-o", "--out", required=True, type=click.Path(path_type=Path), help="Folder of the bundle.")
@click.option(
    "--precision",
    type=click.Choice(["fp32", "fp16", "int8"]),
    default="fp32",
    show_default=True,
    help="Precision of the weights: fp16 for GPUs (a graph that loses too much stays in fp32), int8 for CPUs.",
)
@click.option(
    "--opset",
    type=click.IntRange(18, 23),
    default=18,
    show_default=True,
    help="Version of the ONNX operators.",
)
@click.option(
    "--heads",
    type=click.Choice(["auto", "local", "global"]),
    default="auto",
    show_default=True,
    help="Heads that embed patches and frames; auto: those that the recipe trained.",
)
@click.option("--name", help="Name of the bundle.  [default: that of the recipe]")
@click.option("--licence", default="not stated", show_default=True, help="Licence of the weights.")
@click.option(
    "--data",
    type=click.Path(path_type=Path),
    help="Folder of the rendered training pairs.  [default: that of the recipe, if it exists]",
)
@click.option(
    "--quality", type=click.Path(path_type=Path), help="JSON file with measured figures, for the manifest."
)
@click.option("--force", is_flag=True, help="Replace files in a folder that is not empty.")
def command(
    checkpoint: Path,
    out: Path,
    precision: Any,
    opset: int,
    heads: Any,
    name: str | None,
    licence: str,
    data: Path | None,
    quality: Path | None,
    force: bool,
) -> None:
    """Export CHECKPOINT, one of ours or of the paper's released code, as a bundle of two ONNX graphs.

    The bundle is written only if the embeddings of the graphs agree with those of the checkpoint: within 1e-4 in
    every number for fp32, with a mean cosine of at least 0.99 for int8.
    """
    from fusili_mir.sessions.onnxruntime_library import onnxruntime

    onnxruntime()
    try:
        import_module("onnxscript")
        from dataclasses import replace

        from fusili_export.checkpoints import load_trained
        from fusili_export.exporting import export_bundle
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            f"exporting needs the package {error.name}, which is not installed: pip install 'fusili-mir[export]'"
        ) from error
    check_output_folder(out, force)
    trained = load_trained(checkpoint, None if heads == "auto" else heads)
    if name:
        trained = replace(trained, name=name)
    facts = _manifest_facts(trained, licence, data, quality)
    export_bundle(trained, out, facts, precision, opset, force, say=say_summary)
    say_summary(f"{trained.name} ({precision}) -> {out}")


def _manifest_facts(
    trained: TrainedModel, licence: str, data: Path | None, quality: Path | None
) -> ManifestFacts:
    from fusili_export.exporting import ManifestFacts, read_training_data

    if data is None and trained.data_folder and (Path(trained.data_folder) / "manifest.json").is_file():
        data = Path(trained.data_folder)
    return ManifestFacts(
        licence,
        {} if data is None else read_training_data(data),
        {} if quality is None else _read_figures(quality),
    )


def _read_figures(path: Path) -> dict[str, Any]:
    try:
        figures = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(
            f"{path}: cannot be read ({reason(error)}); expected a JSON object of figures"
        ) from error
    if not isinstance(figures, dict):
        raise InputError(f"{path}: holds a {type(figures).__name__}; expected a JSON object of figures")
    return figures
