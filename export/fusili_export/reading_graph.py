"""The graph of a network that reads notes."""

from __future__ import annotations

import copy

import numpy as np
import torch
from torch import Tensor, nn

from fusili_export.graphs import DEFAULT_OPSET, trace_module
from fusili_mir.errors import FusiliError
from fusili_mir.geometry import strip_height_px
from fusili_mir.hearing.note_reading import (
    COLUMN_PX,
    MARGIN_SPACES,
    READING_INPUT,
    READING_OUTPUTS,
    SPACE_PX,
)
from fusili_mir.sessions.graph_session import open_session
from fusili_training.reading.reading_network import ReadingNetwork

__all__ = ["reading_graph_bytes"]

_FILE = "reading.onnx"
_CLOSE = 1e-3  # largest difference from torch, in logits
_CHECKED = ((1, 37), (3, 101))  # batch sizes and columns that tracing did not use


class _OnnxGru(nn.Module):
    """A GRU as one node of the graph; torch 2.13 cannot trace its own behind other layers."""

    def __init__(self, layer: nn.GRU) -> None:
        super().__init__()
        self.size = layer.hidden_size
        values = {name: _onnx_gates(value.detach()) for name, value in layer.named_parameters()}
        biases = torch.cat((values["bias_ih_l0"], values["bias_hh_l0"]))
        self.register_buffer("input_weights", values["weight_ih_l0"][None])
        self.register_buffer("state_weights", values["weight_hh_l0"][None])
        self.register_buffer("biases", biases[None])

    def forward(self, columns: Tensor, begun: Tensor) -> tuple[Tensor, Tensor]:
        """Return the state in each column [shape=(B, C, size)], and the last one [shape=(1, B, size)]."""
        steps = columns.transpose(0, 1)
        weights = [self.get_buffer(name) for name in ("input_weights", "state_weights", "biases")]
        n_steps, n_strips = steps.shape[:2]
        states, last = torch.onnx.ops.symbolic_multi_out(
            "GRU",
            (steps, *weights, None, begun),
            {"hidden_size": self.size, "linear_before_reset": 1},
            dtypes=(torch.float32, torch.float32),
            shapes=((n_steps, 1, n_strips, self.size), (1, n_strips, self.size)),
            version=DEFAULT_OPSET,
        )
        return states.squeeze(1).transpose(0, 1), last


def _onnx_gates(values: Tensor) -> Tensor:
    """Put the gates in ONNX's order: update, reset, new; torch has reset, update, new."""
    reset, update, new = values.chunk(3)
    return torch.cat((update, reset, new))


def reading_graph_bytes(network: ReadingNetwork) -> bytes:
    """Trace a network, and compare the graph with it."""
    height_px = strip_height_px(SPACE_PX, MARGIN_SPACES)
    example = torch.rand(2, height_px, 50 * COLUMN_PX)
    axes = {0: "batch", 2: "width"}
    traced = copy.deepcopy(network)
    for name in ("along", "along_rows"):
        setattr(traced, name, _OnnxGru(getattr(network, name)))
    graph = trace_module(traced, example, axes, _FILE, READING_INPUT, list(READING_OUTPUTS))
    session = open_session(graph, "cpu", 1)
    rng = np.random.default_rng(0)
    for batch, columns in _CHECKED:
        strips = rng.uniform(size=(batch, height_px, columns * COLUMN_PX)).astype(np.float32)
        found = session.run(READING_INPUT, strips, list(READING_OUTPUTS))
        with torch.no_grad():
            expected = [output.numpy() for output in network(torch.from_numpy(strips))]
        for name, ours, theirs in zip(READING_OUTPUTS, found, expected, strict=True):
            difference = float(np.abs(ours - theirs).max()) if ours.shape == theirs.shape else np.inf
            if not difference <= _CLOSE:
                raise FusiliError(
                    f"{_FILE} differs from the network by {difference:.2g} in the logits of {name}; expected "
                    f"{_CLOSE} at most"
                )
    return graph
