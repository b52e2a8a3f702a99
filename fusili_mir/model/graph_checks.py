"""Checking an ONNX graph before onnxruntime sees it: all weights inside, and no tensor out of all proportion.

onnxruntime computes what is constant when it loads a graph, and takes the memory for it. So the sizes that a
graph states are checked first: those of its weights, inputs and outputs, and of the results of operators that
make large tensors out of a few numbers. What a graph computes while it runs is not known beforehand.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from fusili_mir.boundary import reading
from fusili_mir.limits import check_limit
from fusili_mir.model.graph_files import refuse_external_data
from fusili_mir.model.protobuf import BYTES, VARINT, Field, fields_of, varints_of

__all__ = ["check_graph"]

_INT64, _FLOAT = 7, 1  # data types
_RAW = 9  # field of a tensor: its bytes
_DATA = (4, 5, 6, 7, _RAW, 10, 11)  # fields of a tensor that hold elements
_FEW = 64  # elements: a shape has no more
_SIZED_BY = {
    "ConstantOfShape": (0,),
    "Expand": (1,),
    "Tile": (1,),
    "Resize": (3,),
    "OneHot": (1,),
    "Range": (1,),
}
_SIZED_BY_ATTRIBUTE = ("RandomNormal", "RandomUniform")


@dataclass(frozen=True)
class _Tensor:
    """A tensor of the file: its dimensions, and its numbers if they are few."""

    dims: tuple[int, ...]
    numbers: tuple[float, ...] | None = None


@dataclass
class _Node:
    """An operator: its kind, its inputs, its outputs, and its attributes that hold sizes."""

    kind: str = ""
    inputs: list[str] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)
    value: _Tensor | None = None
    shape: tuple[int, ...] = ()
    graphs: list[Field] = field(default_factory=list)


def check_graph(name: str, graph: bytes) -> None:
    """Refuse a graph that refers to other files, or that states a tensor that is too large.

    Parameters
    ----------
    name : str
        Name of the file, for messages.
    graph : bytes
        Content of the file.

    Raises
    ------
    InputError
    """
    refuse_external_data(name, graph)
    with reading(name, "export the bundle again", "not an ONNX graph"):
        for item in _messages(graph, Field(0, BYTES, 0, 0, len(graph)), 7):
            _check(name, graph, item, {}, 0)


def _check(name: str, data: bytes, graph: Field, outer: Mapping[str, _Tensor], depth: int) -> None:
    """Check a graph; `outer` are the constants of the graphs around it."""
    check_limit("graph_nesting", depth, name)
    known = dict(outer)
    for item in _messages(data, graph, 5):
        label, tensor = _read_tensor(name, data, item)
        known[label] = tensor
    for number in (11, 12, 13):  # inputs, outputs, other values
        for item in _messages(data, graph, number):
            _check_size(name, _declared(data, item), "a value")
    for item in _messages(data, graph, 1):
        node = _read_node(name, data, item)
        if node.kind == "Constant" and node.value is not None and node.outputs:
            known[node.outputs[0]] = node.value
        _check_node(name, node, known)
        for inner in node.graphs:
            _check(name, data, inner, known, depth + 1)


def _check_node(name: str, node: _Node, known: Mapping[str, _Tensor]) -> None:
    """Check what an operator makes of constants."""
    if node.kind in _SIZED_BY_ATTRIBUTE:
        _check_size(name, node.shape, node.kind)
    constants = [known.get(each) for each in node.inputs]
    for place in _SIZED_BY.get(node.kind, ()):
        sized_by = constants[place] if place < len(constants) else None
        if sized_by is not None and sized_by.numbers is not None:
            _check_size(name, sized_by.numbers, node.kind)
    shapes = [each.dims for each in constants if each is not None]
    if len(shapes) == len(node.inputs) > 1:  # it is computed when the graph is loaded
        _check_size(name, _broadcast(shapes), node.kind)


def _broadcast(shapes: Sequence[tuple[int, ...]]) -> list[int]:
    """Return the largest of the last dimensions, of those before them, and so on."""
    rank = max(map(len, shapes))
    padded = [(1,) * (rank - len(shape)) + shape for shape in shapes]
    return [max(dims) for dims in zip(*padded, strict=True)]


def _check_size(name: str, dims: Sequence[float], what: str) -> None:
    elements = math.prod(abs(float(size)) or 1.0 for size in dims)
    check_limit("tensor_elements", elements, f"{name}: {what}", "export the bundle again")


def _read_tensor(name: str, data: bytes, item: Field) -> tuple[str, _Tensor]:
    label, kind, raw, n_held, held = "", 0, False, 0, b""
    dims: list[int] = []
    for each in fields_of(data, item.start, item.stop):
        if each.number == 1:
            dims += _integers(data, each)
        elif each.number == 2:
            kind = each.value
        elif each.number == 8:
            label = _text(data, each)
        elif each.number in _DATA:
            n_held += each.stop - each.start
            if each.number == _RAW or (each.number == 7 and each.wire_type == BYTES):
                held = data[each.start : each.stop] if each.stop - each.start <= 8 * _FEW else b""
                raw = each.number == _RAW
    elements = math.prod(dims)
    _check_size(name, dims, "a tensor")
    if min(dims, default=0) < 0 or elements > 2 * n_held:  # the smallest elements have 4 bits
        raise ValueError(f"a tensor of shape {tuple(dims)[:8]} that holds {n_held} bytes")
    numbers: tuple[float, ...] | None = None
    if held and elements <= _FEW and kind in (_INT64, _FLOAT):
        size, code = (8, "q") if kind == _INT64 else (4, "f")
        if raw and len(held) == size * elements:
            numbers = struct.unpack(f"<{elements}{code}", held)
        elif not raw and kind == _INT64:
            numbers = tuple(_signed(value) for value in varints_of(held))
    return label, _Tensor(tuple(dims), numbers)


def _read_node(name: str, data: bytes, item: Field) -> _Node:
    node = _Node()
    for each in fields_of(data, item.start, item.stop):
        if each.number == 1:
            node.inputs.append(_text(data, each))
        elif each.number == 2:
            node.outputs.append(_text(data, each))
        elif each.number == 4:
            node.kind = _text(data, each)
        elif each.number == 5 and each.wire_type == BYTES:
            _read_attribute(name, data, each, node)
    return node


def _read_attribute(name: str, data: bytes, item: Field, node: _Node) -> None:
    label = ""
    integers: list[int] = []
    for each in fields_of(data, item.start, item.stop):
        if each.number == 1:
            label = _text(data, each)
        elif each.number in (5, 10) and each.wire_type == BYTES:
            node.value = _read_tensor(name, data, each)[1]
        elif each.number in (6, 11) and each.wire_type == BYTES:
            node.graphs.append(each)
        elif each.number == 8:
            integers += _integers(data, each)
    if label == "shape":
        node.shape = tuple(integers)
    elif label == "value_ints":
        node.value = _Tensor((len(integers),), tuple(integers))


def _declared(data: bytes, item: Field) -> list[int]:
    """Return the dimensions of a value that are known."""
    return [
        _signed(each.value)
        for kind in _messages(data, item, 2)
        for tensor in _messages(data, kind, 1)
        for shape in _messages(data, tensor, 2)
        for dim in _messages(data, shape, 1)
        for each in fields_of(data, dim.start, dim.stop)
        if each.number == 1 and each.wire_type == VARINT
    ]


def _messages(data: bytes, item: Field, number: int) -> Iterator[Field]:
    """Yield the messages with a number inside another."""
    for each in fields_of(data, item.start, item.stop):
        if each.number == number and each.wire_type == BYTES:
            yield each


def _integers(data: bytes, item: Field) -> list[int]:
    """Return a repeated integer: one of them, or all of them packed."""
    if item.wire_type == VARINT:
        return [_signed(item.value)]
    return [_signed(value) for value in varints_of(data[item.start : item.stop])]


def _signed(value: int) -> int:
    return value - (1 << 64) if value >= 1 << 63 else value


def _text(data: bytes, item: Field) -> str:
    return data[item.start : item.stop].decode("utf-8", "replace")
