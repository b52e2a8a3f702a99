"""Refusing ONNX files that refer to other files, without the `onnx` package.

A graph may keep weights in other files, under any path, and onnxruntime would open them. The graphs of a bundle
must contain all their weights. Only fields on the way from the model to its tensors are followed.
"""

from __future__ import annotations

from fusili_mir.boundary import reason
from fusili_mir.errors import InputError
from fusili_mir.limits import limit
from fusili_mir.model.protobuf import BYTES, fields_of

__all__ = ["refuse_external_data"]

_GRAPH = 7  # field of a model

# Field numbers of onnx.proto: message -> {field: message that it holds}.
_CHILDREN: dict[str, dict[int, str]] = {
    "model": {_GRAPH: "graph", 20: "training_info", 25: "function"},
    "training_info": {1: "graph", 2: "graph"},
    "graph": {1: "node", 5: "tensor", 15: "sparse_tensor"},
    "function": {7: "node", 11: "attribute"},
    "node": {5: "attribute"},
    "attribute": {
        5: "tensor",
        6: "graph",
        10: "tensor",
        11: "graph",
        22: "sparse_tensor",
        23: "sparse_tensor",
    },
    "sparse_tensor": {1: "tensor", 2: "tensor"},
    "tensor": {},
}
_EXTERNAL_DATA, _DATA_LOCATION = 13, 14  # fields of a tensor


def refuse_external_data(name: str, graph: bytes) -> None:
    """Raise an error if a graph keeps data in other files, or is not an ONNX file.

    Parameters
    ----------
    name : str
        Name of the file, for the message.
    graph : bytes
        Content of the file.
    """
    try:
        if not any(
            item.number == _GRAPH and item.wire_type == BYTES for item in fields_of(graph, 0, len(graph))
        ):
            raise ValueError("it contains no graph")
        external = _has_external_data(graph, "model", 0, len(graph), 0)
    except (ValueError, IndexError) as error:
        found = error if type(error) is ValueError else reason(error)  # the former is ours
        raise InputError(f"{name}: not an ONNX graph ({found}); export the bundle again") from error
    if external:
        raise InputError(
            f"{name}: keeps weights in another file; expected a graph that contains all its weights"
        )


def _has_external_data(graph: bytes, message: str, start: int, stop: int, depth: int) -> bool:
    if depth > limit("graph_nesting"):
        raise ValueError("graphs nested too deeply")
    for item in fields_of(graph, start, stop):
        if message == "tensor" and (
            item.number == _EXTERNAL_DATA or (item.number == _DATA_LOCATION and item.value)
        ):
            return True
        child = _CHILDREN[message].get(item.number)
        if (
            child
            and item.wire_type == BYTES
            and _has_external_data(graph, child, item.start, item.stop, depth + 1)
        ):
            return True
    return False
