"""Tracing a tower into an ONNX graph that contains all its weights."""

from __future__ import annotations

import logging
import warnings

import onnx
import torch
from onnxscript import optimizer
from torch import Tensor, nn

from fusili_export.wrappers import TowerGraph
from fusili_mir.errors import FusiliError
from fusili_mir.model.bundle import AudioSpec, ImageSpec
from fusili_training.model.bundle_weights import SCOPES

__all__ = ["DEFAULT_OPSET", "trace_graph", "trace_module"]

DEFAULT_OPSET = 18
"""The oldest version that torch's exporter writes directly; old onnxruntimes can read it."""

# The parity check never uses these sizes, so it detects sizes that have become constants of the graph.
_BATCH, _STAVES, _COLUMNS, _FRAMES = 2, 3, 20, 20
_ANY_SIZE = 2**31


def trace_graph(tower: TowerGraph, spec: ImageSpec | AudioSpec, opset: int = DEFAULT_OPSET) -> bytes:
    """Trace one tower.

    Parameters
    ----------
    tower : TowerGraph
    spec : ImageSpec or AudioSpec
        Names of the input and the outputs, and which sizes are free: always the batch; staves, width and length
        if they are not fixed.
    opset : int
        Version of the ONNX operators.

    Returns
    -------
    bytes
        Content of an ONNX file.
    """
    example, axes = _image_example(spec) if isinstance(spec, ImageSpec) else _audio_example(spec)
    outputs = [spec.local_output, spec.global_output]
    return trace_module(tower, example, axes, spec.graph, spec.input, outputs, opset)


def trace_module(
    module: nn.Module,
    example: Tensor,
    axes: dict[int, str],
    name: str,
    input_name: str,
    output_names: list[str],
    opset: int = DEFAULT_OPSET,
) -> bytes:
    """Trace a module with one input, whose free axes are named; `name` is that of the graph in messages."""
    exporter_log = logging.getLogger("torch.onnx")
    level = exporter_log.level
    try:
        exporter_log.setLevel(logging.ERROR)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch warns about its own internals
            program = torch.onnx.export(
                module,
                (example,),
                input_names=[input_name],
                output_names=output_names,
                opset_version=opset,
                dynamic_shapes=(axes,),
                dynamo=True,
                external_data=False,
                verbose=False,
                optimize=False,
            )
    except (torch.onnx.errors.OnnxExporterError, RuntimeError) as error:
        reason = " ".join(str(error).split())[:300]
        raise FusiliError(f"{name}: torch cannot export this model at opset {opset} ({reason})") from error
    finally:
        exporter_log.setLevel(level)
    if program is None:
        raise FusiliError(f"{name}: torch returned no graph; install another version of torch")
    # The other rules of the optimiser also drop addends below 1e-8, such as the one under the square root of the
    # spectrum.
    optimizer.fold_constants_ir(program.model, input_size_limit=_ANY_SIZE, output_size_limit=_ANY_SIZE)
    optimizer.remove_unused_nodes(program.model)
    model = program.model_proto
    _drop_notes(model)
    return bytes(model.SerializeToString())


def _drop_notes(model: onnx.ModelProto) -> None:
    """Drop the exporter's metadata about the source code, which includes local paths, except names of modules."""
    graph = model.graph
    del model.metadata_props[:], graph.metadata_props[:]
    for item in (*graph.node, *graph.value_info, *graph.input, *graph.output, *graph.initializer):
        kept = [(note.key, note.value) for note in item.metadata_props if note.key == SCOPES]
        del item.metadata_props[:]
        for key, value in kept:
            item.metadata_props.add(key=key, value=value)


def _image_example(spec: ImageSpec) -> tuple[Tensor, dict[int, str]]:
    """Return example images for tracing, and the names of their free axes."""
    if spec.segment == "square":
        return torch.rand(_BATCH, 1, spec.height_px, spec.width_px or spec.height_px), {0: "batch"}
    axes = {0: "batch", 1: "staves"}
    width_px = spec.width_px
    if width_px is None:
        axes[3], width_px = "width", _COLUMNS * spec.patch_width_px
    return torch.rand(_BATCH, _STAVES, spec.height_px, width_px), axes


def _audio_example(spec: AudioSpec) -> tuple[Tensor, dict[int, str]]:
    """Return example waveforms for tracing, and the names of their free axes."""
    if spec.clip_frames is not None:
        return torch.randn(_BATCH, spec.clip_frames * spec.frame_samples), {0: "batch"}
    return torch.randn(_BATCH, _FRAMES * spec.frame_samples), {0: "batch", 1: "samples"}
