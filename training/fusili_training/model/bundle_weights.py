"""The weights of a bundle, back from its ONNX graphs, so that training can go on from the model that ships.

The exporter keeps the names of most weights. Matrices that it has transposed and folded are found by the module
that the graph says they belong to. What a graph does not hold keeps its starting value: heads that only training
uses, the pooling of global embeddings, which is trained anew, and blocks that the model has in addition, which
change nothing before they are trained.
"""

from __future__ import annotations

import ast
import math
import re
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from fusili_mir.boundary import reading
from fusili_mir.errors import InputError
from fusili_mir.model.bundle import TOWERS, load_bundle
from fusili_training.backbones.sequence_layers import LeftContext
from fusili_training.model.model import FusiliModel

__all__ = ["SCOPES", "load_bundle_weights"]

SCOPES = "pkg.torch.onnx.name_scopes"
"""Metadata key under which torch's exporter stores the modules of a node."""

_PREFIX = "model."
_NEW = ("note_heads.", "pooling.", "logit_scale_global", "image.global_head.", "audio.global_head.")
_UNUSED = "num_batches_tracked"
_BLOCK = re.compile(r"(.*blocks\.\d+)\.")  # a `ConvolutionBlock` or `NeighbourBlock`
_CONTEXT = ".context"  # a `LeftContext`, whose decay is folded into a factor


def load_bundle_weights(model: FusiliModel, folder: Path) -> None:
    """Load the encoders, the local heads and their scale from a bundle of the small backbone.

    Parameters
    ----------
    model : FusiliModel
        A model with towers of the same sizes; it may have further blocks after those of the bundle.
    folder : Path
        The bundle; its graphs must be in single precision.
    """
    bundle = load_bundle(folder)
    manifest = bundle.manifest
    if model.options.backbone != "small" or manifest.precision != "fp32":
        raise InputError(
            f"{folder}: a bundle in {manifest.precision}, to start a {model.options.backbone} model with;"
            " expected one in fp32 and a small model; others start from checkpoints"
        )
    found = {"logit_scale_local": torch.tensor(math.log(manifest.scale))}
    for tower in TOWERS:
        graph = bundle.read_graph(tower)
        with reading(bundle.graph_path(tower), "expected a graph that `fusili-mir export` wrote"):
            found |= _graph_weights(graph)
    own = model.state_dict()
    blocks = {_block_of(name) for name in found}
    wanted = [
        name
        for name in own
        if not name.startswith(_NEW) and not name.endswith(_UNUSED) and _block_of(name) in blocks
    ]
    for name in wanted:
        shape = tuple(found[name].shape) if name in found else None
        if shape != tuple(own[name].shape):
            held = "no such weight" if shape is None else f"one of shape {shape}"
            raise InputError(
                f"{folder} does not fit the model: it has {held} as {name}; expected {tuple(own[name].shape)}"
            )
    lacking = sorted(blocks - {_block_of(name) for name in own})
    if lacking:
        raise InputError(
            f"{folder} does not fit the model: it has the block {lacking[0]}, which the model lacks; expected the"
            " dilations and reaches of its recipe in model.backbone_options"
        )
    model.load_state_dict({name: found[name] for name in wanted}, strict=False)


def _block_of(name: str) -> str:
    """Return the block that a weight belongs to; "" for the weights of other modules."""
    block = _BLOCK.match(name)
    return "" if block is None else block[1]


def _graph_weights(content: bytes) -> dict[str, Tensor]:
    """Return the weights of an ONNX file by their names in the model."""
    import onnx
    from onnx import numpy_helper

    graph = onnx.load_from_string(content).graph
    constants = {each.name: np.array(numpy_helper.to_array(each)) for each in graph.initializer}
    found = {
        name.removeprefix(_PREFIX): torch.from_numpy(value)
        for name, value in constants.items()
        if name.startswith(_PREFIX)
    }
    for node in graph.node:
        scopes = next((note.value for note in node.metadata_props if note.key == SCOPES), "[]")
        modules = [str(scope) for scope in ast.literal_eval(scopes)[:-1]]
        if not modules or not modules[-1].startswith(_PREFIX):
            continue
        module = modules[-1].removeprefix(_PREFIX)
        matrices = [constants[name] for name in node.input if name in constants]
        if node.op_type == "MatMul" and len(matrices) == 1:
            found[f"{module}.weight"] = torch.from_numpy(matrices[0].T.copy())
        elif node.op_type == "Mul" and module.endswith(_CONTEXT) and matrices and matrices[0].size > 1:
            share = matrices[0].reshape(-1) / LeftContext.max_decay  # sigmoid(decay)
            found[f"{module}.decay"] = torch.from_numpy(np.log(share / (1 - share)))
        elif node.op_type == "Add" and matrices and matrices[0].ndim == 3 and _BLOCK.match(f"{module}."):
            table = matrices[0]  # (heads, reach, 3 * reach): the first place of a group sees all offsets
            found[f"{module}.nearness"] = torch.from_numpy(table[:, 0, : 2 * table.shape[1] + 1].copy())
    return found
