"""fp16 graphs for GPUs: weights and activations in half precision, all but what would lose too much in it.

The front end of the audio graph stays in float32, as a spectrum spans more orders of magnitude than half
precision does; so do normalisations and the inputs and outputs. A graph is tried in a process of its own, because
onnxruntime can crash on one; a graph that crashes or loses too much stays in float32.
"""

from __future__ import annotations

import pickle
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import onnx

from fusili_export.parity import ParityRow, Reference
from fusili_export.precision import front_end_nodes
from fusili_mir.errors import FusiliError
from fusili_mir.model.bundle import AudioSpec, ImageSpec
from fusili_mir.sessions.onnxruntime_library import onnxruntime
from fusili_mir.worker_process import ending_with_caller

__all__ = ["halve_graph", "try_half_precision", "why_not_half"]

# Squares and sums over many numbers leave the range of half precision.
_IN_FLOAT = (
    "LayerNormalization",
    "BatchNormalization",
    "ReduceL2",
    "ReduceSumSquare",
    "ReduceMean",
    "ReduceSum",
    "Softmax",
    "Resize",
    "Log",
    "Pow",
    "Sqrt",
    "Reciprocal",
    "Range",
    "STFT",
    "DFT",
)
_TIME_LIMIT_SEC = 1800
_CHECK = """
import pickle, sys
from fusili_export.parity import compare_graph
graph, spec, references = pickle.loads(open(sys.argv[1], "rb").read())
rows = compare_graph(graph, spec, references, "fp16")
open(sys.argv[2], "wb").write(pickle.dumps(rows))
"""


def halve_graph(graph: bytes) -> bytes:
    """Convert an fp32 graph, as torch's exporter writes it, to half precision.

    Parameters
    ----------
    graph : bytes
        Content of an ONNX file.

    Returns
    -------
    bytes
        Content of the fp16 file, with the same inputs and outputs in float32.
    """
    float16 = onnxruntime(".transformers.float16")

    model = onnx.load_from_string(graph)
    excluded = front_end_nodes(model)
    try:
        half = float16.convert_float_to_float16(
            model,
            keep_io_types=True,
            op_block_list=[*float16.DEFAULT_OP_BLOCK_LIST, *_IN_FLOAT],
            node_block_list=excluded,
        )
        _drop_repeated_nodes(half.graph)
        return bytes(half.SerializeToString())
    except (ValueError, RuntimeError, KeyError, TypeError) as error:
        reason = " ".join(str(error).split())[:300]
        raise FusiliError(f"the graph cannot be converted to fp16 ({reason}); export it as fp32") from error


def _drop_repeated_nodes(graph: onnx.GraphProto) -> None:
    """Drop casts that the converter inserts once per reader, all with one name and one output."""
    seen: set[tuple[str, ...]] = set()
    kept = []
    for node in graph.node:
        if tuple(node.output) not in seen:
            kept.append(node)
        seen.add(tuple(node.output))
    del graph.node[:]
    graph.node.extend(kept)


def try_half_precision(
    graph: bytes, spec: ImageSpec | AudioSpec, references: Sequence[Reference]
) -> list[ParityRow]:
    """Compare an fp16 graph with the checkpoint, in a process of its own.

    Returns
    -------
    list of ParityRow
        Empty if onnxruntime crashed on the graph or cannot load it.
    """
    with tempfile.TemporaryDirectory() as folder:
        asked, answer = Path(folder, "asked"), Path(folder, "answer")
        asked.write_bytes(pickle.dumps((graph, spec, list(references))))
        command = [sys.executable, "-c", _CHECK, str(asked), str(answer)]
        subprocess.run(  # noqa: S603
            ending_with_caller(command), capture_output=True, timeout=_TIME_LIMIT_SEC, check=False
        )
        if not answer.is_file():
            return []
        rows: list[ParityRow] = pickle.loads(answer.read_bytes())  # noqa: S301 (written by ourselves)
        return rows


def why_not_half(rows: Sequence[ParityRow]) -> str:
    """Return in one line what is wrong with an fp16 graph that was tried."""
    if not rows:
        return "onnxruntime cannot run it in fp16"
    worst = max(rows, key=ParityRow.excess)
    return f"in fp16 {worst.output} has a cosine of {worst.min_cosine:.5f} for {worst.inputs}"
