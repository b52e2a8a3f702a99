"""The graph of a network that hears onsets."""

from __future__ import annotations

import numpy as np
import torch

from fusili_export.graphs import trace_module
from fusili_mir.errors import FusiliError
from fusili_mir.hearing.onset_listener import ONSET_INPUT, ONSET_OUTPUT, ONSET_STEP_SEC, SAMPLE_RATE_HZ
from fusili_mir.sessions.graph_session import open_session
from fusili_training.listening.onset_network import OnsetNetwork

__all__ = ["onset_graph_bytes"]

_FILE = "onsets.onnx"
_CLOSE = 1e-3  # largest difference from torch, in logits
_CHECKED = ((1, 37), (3, 64))  # batch sizes and cells that tracing did not use


def onset_graph_bytes(network: OnsetNetwork) -> bytes:
    """Trace a network, and compare the graph with it."""
    cell_samples = 2 * round(ONSET_STEP_SEC * SAMPLE_RATE_HZ)
    example = torch.randn(2, 50 * cell_samples)
    axes = {0: "batch", 1: "samples"}
    graph = trace_module(network, example, axes, _FILE, ONSET_INPUT, [ONSET_OUTPUT])
    session = open_session(graph, "cpu", 1)
    rng = np.random.default_rng(0)
    for batch, cells in _CHECKED:
        sound = (0.1 * rng.normal(size=(batch, cells * cell_samples))).astype(np.float32)
        sound[:, sound.shape[1] // 2 :] = 0
        (found,) = session.run(ONSET_INPUT, sound, [ONSET_OUTPUT])
        with torch.no_grad():
            expected = network(torch.from_numpy(sound)).numpy()
        difference = float(np.abs(found - expected).max())
        if found.shape != expected.shape or not difference <= _CLOSE:
            raise FusiliError(
                f"{_FILE} differs from the network by {difference:.2g} logits; expected {_CLOSE} at most"
            )
    return graph
