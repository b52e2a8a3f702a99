"""Refusing ONNX files that refer to other files, without the `onnx` package.

A graph may keep weights in other files, under any path, and onnxruntime would open them. The graphs of a bundle
must contain all their weights. An ONNX file is a protobuf message: a list of fields (number, wire type, value),
where wire type 2 stands for bytes, text or a nested message. Only fields on the way from the model to its tensors
are followed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from fusili_mir.errors import InputError

__all__ = ["refuse_external_data"]

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
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
_MAX_DEPTH = 64


@dataclass(frozen=True)
class _Field:
    number: int
    wire_type: int
    value: int  # value of a varint
    start: int  # first byte of the value
    stop: int


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
            item.number == _GRAPH and item.wire_type == _BYTES for item in _fields(graph, 0, len(graph))
        ):
            raise ValueError("it contains no graph")
        external = _has_external_data(graph, "model", 0, len(graph), 0)
    except (ValueError, IndexError) as error:
        raise InputError(f"{name}: not an ONNX graph ({error}); export the bundle again") from error
    if external:
        raise InputError(
            f"{name}: keeps weights in another file; expected a graph that contains all its weights"
        )


def _has_external_data(graph: bytes, message: str, start: int, stop: int, depth: int) -> bool:
    if depth > _MAX_DEPTH:
        raise ValueError("graphs nested too deeply")
    for item in _fields(graph, start, stop):
        if message == "tensor" and (
            item.number == _EXTERNAL_DATA or (item.number == _DATA_LOCATION and item.value)
        ):
            return True
        child = _CHILDREN[message].get(item.number)
        if (
            child
            and item.wire_type == _BYTES
            and _has_external_data(graph, child, item.start, item.stop, depth + 1)
        ):
            return True
    return False


def _fields(graph: bytes, start: int, stop: int) -> Iterator[_Field]:
    place = start
    while place < stop:
        key, place = _varint(graph, place, stop)
        number, wire_type, value = key >> 3, key & 7, 0
        if wire_type == _VARINT:
            value, end = _varint(graph, place, stop)
        elif wire_type == _BYTES:
            length, place = _varint(graph, place, stop)
            end = place + length
        elif wire_type in (_FIXED64, _FIXED32):
            end = place + (8 if wire_type == _FIXED64 else 4)
        else:
            raise ValueError(f"wire type {wire_type} at byte {place}")
        if end > stop or number == 0:
            raise ValueError(f"a damaged field at byte {place}")
        yield _Field(number, wire_type, value, place, end)
        place = end


def _varint(graph: bytes, place: int, stop: int) -> tuple[int, int]:
    """Return a number stored as 7 bits per byte, lowest first, and the place after it."""
    value = 0
    for shift in range(0, 70, 7):
        if place >= stop:
            raise ValueError("truncated")
        byte = graph[place]
        value |= (byte & 0x7F) << shift
        place += 1
        if byte < 0x80:
            return value, place
    raise ValueError(f"an overlong number at byte {place}")
