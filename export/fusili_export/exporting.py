"""Exporting a bundle: trace both towers, compare the graphs with the checkpoint, and write them if they agree."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fusili_export.checkpoints import TrainedModel
from fusili_export.graphs import DEFAULT_OPSET, trace_graph
from fusili_export.half_precision import halve_graph, try_half_precision, why_not_half
from fusili_export.parity import (
    ParityRow,
    Precision,
    check_parity,
    compare_graph,
    parity_table,
    run_reference,
)
from fusili_export.parity_inputs import audio_cases, image_cases
from fusili_export.precision import quantise_graph
from fusili_export.specs import audio_spec, image_spec
from fusili_export.wrappers import TowerGraph
from fusili_mir import __version__
from fusili_mir.boundary import reason
from fusili_mir.errors import InputError
from fusili_mir.model.bundle import TOWERS, AudioSpec, ImageSpec, Manifest, Tower, save_bundle

__all__ = ["ManifestFacts", "export_bundle", "read_training_data"]

_DATA_FACTS = ("corpus_sha256", "pieces", "segments", "mutants", "licences")


@dataclass(frozen=True)
class ManifestFacts:
    """Facts for the manifest that are not in the checkpoint.

    Attributes
    ----------
    licence : str
        Licence of the weights.
    training_data, quality : dict
        Description of the training data, and measured figures.
    """

    licence: str = "not stated"
    training_data: dict[str, Any] = field(default_factory=dict)
    quality: dict[str, Any] = field(default_factory=dict)


def export_bundle(
    trained: TrainedModel,
    out: str | Path,
    facts: ManifestFacts | None = None,
    precision: Precision = "fp32",
    opset: int = DEFAULT_OPSET,
    force: bool = False,
    say: Callable[[str], None] = lambda text: None,
) -> None:
    """Write a model as a bundle, if its graphs agree with the model.

    Parameters
    ----------
    trained : TrainedModel
    out : str or Path
        Folder of the bundle; it appears only when it is complete.
    facts : ManifestFacts, optional
    precision : "fp32", "fp16" or "int8"
        Precision of the weights. fp16 and int8 graphs are made from fp32 graphs, which are compared with the
        checkpoint first. A graph that loses too much in fp16 stays in fp32.
    opset : int
        Version of the ONNX operators.
    force : bool
        Whether files in the folder may be replaced.
    say : function of a string
        Called with messages about the progress, and with the table of differences.
    """
    facts = facts or ManifestFacts()
    model = trained.model
    specs: dict[Tower, ImageSpec | AudioSpec] = {
        "image": image_spec(model.image),
        "audio": audio_spec(model.audio),
    }
    graphs: dict[Tower, bytes] = {}
    precisions: dict[Tower, Precision] = dict.fromkeys(TOWERS, "fp32")
    parity: list[ParityRow] = []
    for name in TOWERS:
        tower, spec = TowerGraph(model, name, trained.heads), specs[name]
        say(f"tracing {spec.graph}")
        graphs[name] = trace_graph(tower, spec, opset)
        say(f"comparing {spec.graph} with the checkpoint")
        references = run_reference(
            tower, image_cases(spec) if isinstance(spec, ImageSpec) else audio_cases(spec)
        )
        parity += compare_graph(graphs[name], spec, references, "fp32")
        if precision == "fp16":
            say(f"halving {spec.graph}")
            half = halve_graph(graphs[name])
            rows = try_half_precision(half, spec, references)
            if rows and all(row.is_close for row in rows):
                graphs[name], precisions[name] = half, "fp16"
            else:
                say(f"{spec.graph} stays in fp32: {why_not_half(rows)}")
            parity += rows if precisions[name] == "fp16" else []
        if precision == "int8":
            precisions[name] = "int8"
            say(f"quantising {spec.graph}")
            graphs[name] = quantise_graph(graphs[name])
            parity += compare_graph(graphs[name], spec, references, "int8")
    say(parity_table(parity))
    check_parity(parity)
    manifest = Manifest(
        name=trained.name,
        made_by=f"fusili-mir {__version__}",
        precision=_joined(precisions),
        embedding_dim=model.image.embedding_dim,
        scale=trained.scale,
        image=image_spec(model.image),
        audio=audio_spec(model.audio),
        licence=facts.licence,
        recipe=trained.recipe | {"local_heads": trained.heads, "checkpoint_sha256": trained.sha256},
        training_data=facts.training_data,
        quality=trained.quality | facts.quality,
        parity=[row.as_dict() for row in parity],
    )
    save_bundle(out, manifest, graphs["image"], graphs["audio"], force)


def _joined(precisions: Mapping[Tower, Precision]) -> str:
    """Return the precision of both graphs, or that of each: "fp16 image, fp32 audio"."""
    if len(set(precisions.values())) == 1:
        return precisions["image"]
    return ", ".join(f"{precision} {tower}" for tower, precision in precisions.items())


def read_training_data(folder: str | Path) -> dict[str, Any]:
    """Return the facts about a folder of rendered pairs that belong in a manifest."""
    path = Path(folder) / "manifest.json"
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(
            f"{path}: cannot be read ({reason(error)}); expected a folder written by `fusili-mir render`"
        ) from error
    if not isinstance(content, dict):
        raise InputError(
            f"{path}: not a manifest of rendered pairs; expected a folder written by `fusili-mir render`"
        )
    return {"name": Path(folder).name} | {key: content[key] for key in _DATA_FACTS if key in content}
