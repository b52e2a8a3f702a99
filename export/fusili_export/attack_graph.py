"""Putting a network that hears attacks into a bundle."""

from __future__ import annotations

import hashlib
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import torch

from fusili_export.graphs import trace_module
from fusili_mir.errors import FusiliError, InputError
from fusili_mir.model.attack_hearing import ATTACK_INPUT, ATTACK_OUTPUT, AttackGraph
from fusili_mir.model.bundle import Bundle
from fusili_mir.sessions.graph_session import open_session
from fusili_mir.whole_files import write_bytes, write_text
from fusili_training.listening.attack_network import HOP_SEC, SAMPLE_RATE_HZ, AttackNetwork

__all__ = ["attack_graph_bytes", "export_attack_network"]

_FILE = "attacks.onnx"
_CONTEXT_SEC = 0.36  # what the windows and the blocks see
_CLOSE = 1e-3  # largest difference from torch, in logits
_CHECKED = ((1, 37), (3, 64))  # batch sizes and cells that tracing did not use


def attack_graph_bytes(network: AttackNetwork) -> bytes:
    """Trace a network, and compare the graph with it."""
    cell_samples = 2 * round(HOP_SEC * SAMPLE_RATE_HZ)
    example = torch.randn(2, 50 * cell_samples)
    axes = {0: "batch", 1: "samples"}
    graph = trace_module(network, example, axes, _FILE, ATTACK_INPUT, [ATTACK_OUTPUT])
    session = open_session(graph, "cpu", 1)
    rng = np.random.default_rng(0)
    for batch, cells in _CHECKED:
        sound = (0.1 * rng.normal(size=(batch, cells * cell_samples))).astype(np.float32)
        sound[:, sound.shape[1] // 2 :] = 0
        (found,) = session.run(ATTACK_INPUT, sound, [ATTACK_OUTPUT])
        with torch.no_grad():
            expected = network(torch.from_numpy(sound)).numpy()
        difference = float(np.abs(found - expected).max())
        if found.shape != expected.shape or not difference <= _CLOSE:
            raise FusiliError(
                f"{_FILE} differs from the network by {difference:.2g} logits; expected {_CLOSE} at most"
            )
    return graph


def export_attack_network(network: AttackNetwork, bundle: Bundle, made_from: dict[str, Any]) -> None:
    """Write a network into a bundle, and name it in its manifest.

    Parameters
    ----------
    network : AttackNetwork
    bundle : Bundle
    made_from : dict
        What the manifest says about its origin.
    """
    if bundle.audio.sample_rate_hz != SAMPLE_RATE_HZ:
        raise InputError(
            f"{bundle.folder}: listens at {bundle.audio.sample_rate_hz} Hz; expected {SAMPLE_RATE_HZ} Hz, the "
            "rate of the network"
        )
    graph = attack_graph_bytes(network.eval())
    spec = AttackGraph(_FILE, hashlib.sha256(graph).hexdigest(), HOP_SEC, _CONTEXT_SEC)
    decoder = {**bundle.manifest.decoder, "attacks": {**asdict(spec), **made_from}}
    write_bytes(bundle.folder / _FILE, graph)
    write_text(bundle.folder / "manifest.json", replace(bundle.manifest, decoder=decoder).to_json())
