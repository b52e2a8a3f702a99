from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
import pytest
from example_bundles import pitch_audio_graph, pitch_image_graph
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from fusili_mir.errors import InputError
from fusili_mir.model.graph_files import refuse_external_data

VALUES = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [4]) for name in ("x", "y")]


def external(location: str = "../weights.bin") -> TensorProto:
    tensor = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[4], data_location=TensorProto.EXTERNAL)
    tensor.external_data.add(key="location", value=location)
    return tensor


def as_initializer(tensor: TensorProto) -> onnx.ModelProto:
    nodes = [helper.make_node("Add", ["x", "w"], ["y"])]
    return helper.make_model(helper.make_graph(nodes, "g", VALUES[:1], VALUES[1:], [tensor]))


def as_constant(tensor: TensorProto) -> onnx.ModelProto:
    nodes = [
        helper.make_node("Constant", [], ["w"], value=tensor),
        helper.make_node("Add", ["x", "w"], ["y"]),
    ]
    return helper.make_model(helper.make_graph(nodes, "g", VALUES[:1], VALUES[1:]))


def as_initializer_of_a_branch(tensor: TensorProto) -> onnx.ModelProto:
    branch = helper.make_graph([helper.make_node("Identity", ["w"], ["z"])], "b", [], VALUES[1:], [tensor])
    nodes = [helper.make_node("If", ["x"], ["y"], then_branch=branch, else_branch=branch)]
    return helper.make_model(helper.make_graph(nodes, "g", VALUES[:1], VALUES[1:]))


def as_constant_of_a_function(tensor: TensorProto) -> onnx.ModelProto:
    constant = helper.make_node("Constant", [], ["y"], value=tensor)
    function = helper.make_function("d", "F", [], ["y"], [constant], [helper.make_opsetid("", 18)])
    graph = helper.make_graph([helper.make_node("F", [], ["y"], domain="d")], "g", [], VALUES[1:])
    return helper.make_model(graph, functions=[function])


def as_sparse_values(tensor: TensorProto) -> onnx.ModelProto:
    indices = numpy_helper.from_array(np.arange(4), "i")
    model = as_initializer(numpy_helper.from_array(np.zeros(4, np.float32), "w"))
    model.graph.sparse_initializer.append(helper.make_sparse_tensor(tensor, indices, [9]))
    return model


PLACES = [
    as_initializer,
    as_constant,
    as_initializer_of_a_branch,
    as_constant_of_a_function,
    as_sparse_values,
]


@pytest.mark.parametrize("place", PLACES)
def test_external_data_is_found_wherever_a_tensor_can_be(
    place: Callable[[TensorProto], onnx.ModelProto],
) -> None:
    inside = numpy_helper.from_array(np.ones(4, np.float32), "w")
    refuse_external_data("g.onnx", place(inside).SerializeToString())
    with pytest.raises(InputError, match=r"g.onnx: keeps weights in another file"):
        refuse_external_data("g.onnx", place(external()).SerializeToString())


def test_the_graphs_of_the_test_bundle_hold_all_their_weights() -> None:
    refuse_external_data("image.onnx", pitch_image_graph())
    refuse_external_data("audio.onnx", pitch_audio_graph())


@pytest.mark.parametrize("content", [b"", b"\x00", b"hello, I am not a graph", b"\x3a\xff", b"\xff" * 40])
def test_bytes_that_are_not_a_graph_are_refused(content: bytes) -> None:
    with pytest.raises(InputError, match="not an ONNX graph"):
        refuse_external_data("x.onnx", content)


@settings(deadline=None)
@given(st.integers(0, 400), st.binary(min_size=1, max_size=8))
def test_a_damaged_graph_is_refused_or_passes_but_never_crashes(place: int, damage: bytes) -> None:
    graph = bytearray(as_constant(external()).SerializeToString())
    graph[place : place + len(damage)] = damage
    try:
        refuse_external_data("x.onnx", bytes(graph))
    except InputError as error:
        assert "\n" not in str(error)  # noqa: PT017


def test_endless_nesting_is_refused() -> None:
    content = b""
    for _ in range(200):  # graph { node { attribute { graph { ...
        for key in (0x32, 0x2A, 0x0A):
            length = len(content)
            size = bytes([length & 0x7F | 0x80, (length >> 7) & 0x7F | 0x80, length >> 14])
            content = bytes([key]) + size + content
    length = len(content)
    model = b"\x3a" + bytes([length & 0x7F | 0x80, (length >> 7) & 0x7F | 0x80, length >> 14]) + content
    with pytest.raises(InputError, match="nested too deeply"):
        refuse_external_data("x.onnx", model)
