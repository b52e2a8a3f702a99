from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from fusili_mir.errors import InputError
from fusili_mir.model.bundle import TOWERS, default_bundle
from fusili_mir.model.graph_checks import check_graph


def graph_of(nodes, initializers=(), shape=("batch", 4)) -> bytes:
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)]
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)]
    model = helper.make_model(helper.make_graph(nodes, "g", inputs, outputs, list(initializers)))
    return model.SerializeToString()


def integers(name: str, *values: int) -> onnx.TensorProto:
    return numpy_helper.from_array(np.array(values, np.int64), name)


def zeros(name: str, *shape: int) -> onnx.TensorProto:
    return numpy_helper.from_array(np.zeros(shape, np.float32), name)


def declared(name: str, *shape: int) -> onnx.TensorProto:
    tensor = zeros(name, 1)
    tensor.dims[:] = shape
    return tensor


def inside(inner: bytes) -> bytes:
    """Return a graph with another one as the branch of an If."""
    branch = onnx.load_from_string(inner).graph
    del branch.input[:]
    node = helper.make_node("If", ["c"], ["y"], then_branch=branch, else_branch=branch)
    return graph_of([node], [numpy_helper.from_array(np.array(True), "c")])


FILLED = helper.make_node("ConstantOfShape", ["s"], ["y"])
LARGE = [
    graph_of([FILLED], [integers("s", 30_000, 30_000)]),
    graph_of(
        [helper.make_node("Constant", [], ["s"], value=integers("v", 30_000, 30_000)), FILLED],
    ),
    graph_of([helper.make_node("Constant", [], ["s"], value_ints=[30_000, 30_000]), FILLED]),
    graph_of([helper.make_node("Expand", ["x", "s"], ["y"])], [integers("s", 30_000, 30_000)]),
    graph_of([helper.make_node("Tile", ["x", "s"], ["y"])], [integers("s", 10**6, 10**6)]),
    graph_of([helper.make_node("RandomNormal", [], ["y"], shape=[30_000, 30_000])]),
    graph_of([helper.make_node("Add", ["a", "b"], ["y"])], [zeros("a", 30_000, 1), zeros("b", 1, 30_000)]),
    graph_of([helper.make_node("Relu", ["x"], ["y"])], shape=("batch", 30_000, 30_000)),
    inside(graph_of([FILLED], [integers("s", 30_000, 30_000)])),
]


@pytest.mark.parametrize("graph", LARGE)
def test_a_graph_that_makes_a_tensor_of_30_000_by_30_000_is_refused(graph: bytes) -> None:
    with pytest.raises(InputError, match="elements of a tensor in a graph, expected at most") as refused:
        check_graph("image.onnx", graph)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("shape", [(2, 3), (-1,), (10_000, 10_000)])
def test_a_tensor_that_declares_more_than_it_holds_is_refused(shape: tuple[int, ...]) -> None:
    graph = graph_of([helper.make_node("Relu", ["a"], ["y"])], [declared("a", *shape)])
    if shape == (2, 3):  # 6 elements of 4 bits would fit into the 4 bytes
        check_graph("image.onnx", graph)
        return
    with pytest.raises(InputError, match="not an ONNX graph"):
        check_graph("image.onnx", graph)


def test_ordinary_constants_pass() -> None:
    nodes = [FILLED, helper.make_node("Add", ["a", "b"], ["z"])]
    check_graph("image.onnx", graph_of(nodes, [integers("s", 3, 4), zeros("a", 3, 1), zeros("b", 1, 4)]))


def test_the_graphs_that_ship_pass() -> None:
    for tower in TOWERS:
        assert default_bundle().read_graph(tower)


def test_a_limit_can_be_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FUSILI_LIMITS", "tensor_elements=1e9")
    check_graph("image.onnx", LARGE[0])
