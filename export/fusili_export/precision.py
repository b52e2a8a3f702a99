"""int8 graphs: the weights of matrix products as 8-bit integers, everything else unchanged.

Activations are quantised dynamically, from their own range, so no calibration data is needed. Weights are
quantised per column to 7 of the 8 bits: CPUs without VNNI add pairs of products in 16 bits, which silently
overflow with 8-bit weights. The front end of the audio graph stays in float, as a spectrum spans more orders of
magnitude than 8 bits do. Convolutions also stay in float, as their integer form is no faster in onnxruntime.
"""

from __future__ import annotations

import ast
import logging
import tempfile
from pathlib import Path

import onnx

from fusili_mir.errors import FusiliError
from fusili_mir.sessions.onnxruntime_library import onnxruntime
from fusili_training.model.bundle_weights import SCOPES

__all__ = ["front_end_nodes", "quantise_graph"]

_FRONT_ENDS = ("filter_bank", "spectrogram_extractor", "logmel_extractor")
"""Modules that compute spectra of waveforms."""
_QUANTISED = ("MatMul", "Gemm")


def quantise_graph(graph: bytes) -> bytes:
    """Quantise an fp32 graph, as torch's exporter writes it, to an int8 graph.

    Parameters
    ----------
    graph : bytes
        Content of an ONNX file.

    Returns
    -------
    bytes
        Content of the int8 file, with the same inputs and outputs.
    """
    quantization = onnxruntime(".quantization")

    model = onnx.load_from_string(graph)
    excluded = front_end_nodes(model)
    del model.graph.value_info[:]  # the quantiser infers shapes itself, and fails on those of the exporter
    advice_log = logging.getLogger()
    level = advice_log.level
    with tempfile.TemporaryDirectory() as folder:
        quantised = Path(folder) / "int8.onnx"
        try:
            advice_log.setLevel(logging.ERROR)  # it recommends a preprocessing that is already done
            quantization.quantize_dynamic(
                model,
                quantised,
                op_types_to_quantize=list(_QUANTISED),
                per_channel=True,
                reduce_range=True,
                weight_type=quantization.QuantType.QInt8,
                nodes_to_exclude=excluded,
            )
        except (ValueError, RuntimeError, AssertionError) as error:
            raise FusiliError(
                f"onnxruntime cannot quantise the graph ({' '.join(str(error).split())[:300]}); export it as fp32"
            ) from error
        finally:
            advice_log.setLevel(level)
        return quantised.read_bytes()


def front_end_nodes(model: onnx.ModelProto) -> list[str]:
    """Return the names of the nodes that compute spectra of waveforms; an image graph has none."""
    return [node.name for node in model.graph.node if _modules(node).intersection(_FRONT_ENDS)]


def _modules(node: onnx.NodeProto) -> set[str]:
    """Return the names of the modules around a node, such as ``filter_bank`` of ``model.audio.filter_bank``."""
    scopes = next((item.value for item in node.metadata_props if item.key == SCOPES), "[]")
    return {part for scope in ast.literal_eval(scopes) for part in scope.split(".")}
