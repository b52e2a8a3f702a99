from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from example_bundles import pitch_audio_graph, pitch_image_graph
from onnx import TensorProto, helper, numpy_helper

from fusili_mir.errors import InputError
from fusili_mir.sessions.graph_files import read_graph_file, refuse_external_data
from fusili_mir.sessions.graph_session import open_session

VALUES = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [4]) for name in ("x", "y")]


def external(location: str = "weights.bin") -> TensorProto:
    tensor = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[4], data_location=TensorProto.EXTERNAL)
    tensor.external_data.add(key="location", value=location)
    return tensor


def model_of(graph: onnx.GraphProto, **more: object) -> onnx.ModelProto:
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("d", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8, **more)


def as_initializer(tensor: TensorProto) -> onnx.ModelProto:
    nodes = [helper.make_node("Add", ["x", "w"], ["y"])]
    return model_of(helper.make_graph(nodes, "g", VALUES[:1], VALUES[1:], [tensor]))


def as_constant(tensor: TensorProto) -> onnx.ModelProto:
    nodes = [
        helper.make_node("Constant", [], ["w"], value=tensor),
        helper.make_node("Add", ["x", "w"], ["y"]),
    ]
    return model_of(helper.make_graph(nodes, "g", VALUES[:1], VALUES[1:]))


def as_initializer_of_a_branch(tensor: TensorProto) -> onnx.ModelProto:
    branch = helper.make_graph([helper.make_node("Identity", ["w"], ["z"])], "b", [], VALUES[1:], [tensor])
    nodes = [helper.make_node("If", ["x"], ["y"], then_branch=branch, else_branch=branch)]
    return model_of(helper.make_graph(nodes, "g", VALUES[:1], VALUES[1:]))


def as_constant_of_a_function(tensor: TensorProto) -> onnx.ModelProto:
    constant = helper.make_node("Constant", [], ["y"], value=tensor)
    function = helper.make_function("d", "F", [], ["y"], [constant], [helper.make_opsetid("", 18)])
    graph = helper.make_graph([helper.make_node("F", [], ["y"], domain="d")], "g", [], VALUES[1:])
    return model_of(graph, functions=[function])


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


def test_onnxruntime_itself_would_open_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    np.array([1, 2, 3, 4], np.float32).tofile("weights.bin")
    graph = as_constant_of_a_function(external()).SerializeToString()
    (found,) = open_session(graph, "cpu", 1).run_bound({}, ["y"])
    assert found.to_numpy().tolist() == [1, 2, 3, 4]


def test_a_length_that_is_spelled_with_more_bytes_than_needed_hides_nothing() -> None:
    graph = as_constant_of_a_function(external()).SerializeToString()
    (key,) = [at for at in range(len(graph)) if graph[at : at + 9] == b"\x08location"]
    for length in (b"\x88\x00", b"\x88\x80\x00", b"\x88\x80\x80\x80\x00"):
        with pytest.raises(InputError, match="keeps weights in another file"):
            refuse_external_data("g.onnx", graph[:key] + length + graph[key + 1 :])


def test_other_names_with_that_word_are_no_files() -> None:
    for name in ("allocation", "locations", "location_7"):
        node = helper.make_node("Relu", ["x"], ["y"], name=name)
        graph = model_of(helper.make_graph([node], name, VALUES[:1], VALUES[1:]))
        refuse_external_data("g.onnx", graph.SerializeToString())


def test_the_graphs_of_the_test_bundle_hold_all_their_weights() -> None:
    refuse_external_data("image.onnx", pitch_image_graph())
    refuse_external_data("audio.onnx", pitch_audio_graph())


def test_a_file_that_has_another_checksum_or_is_too_large_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, sha256 = tmp_path / "audio.onnx", hashlib.sha256(b"a graph").hexdigest()
    file.write_bytes(b"a graph")
    assert read_graph_file(file, sha256) == b"a graph"
    monkeypatch.setenv("FUSILI_LIMITS", "graph_bytes=6")
    with pytest.raises(InputError, match="7 bytes of an ONNX graph, expected at most 6"):
        read_graph_file(file, sha256)
    file.write_bytes(b"a_graph")
    monkeypatch.delenv("FUSILI_LIMITS")
    with pytest.raises(InputError, match=r"audio.onnx: sha256 .* the file is damaged"):
        read_graph_file(file, sha256)
