from __future__ import annotations

import os
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import onnx
import pytest
from example_bundles import pitch_audio_graph
from onnx import TensorProto, helper

from fusili_mir.errors import FusiliError, InputError, MissingExtraError
from fusili_mir.model.encoder import SIMILARITY_GRAPH
from fusili_mir.sessions import graph_session
from fusili_mir.sessions.graph_session import (
    DeviceTensor,
    DeviceWarning,
    available_devices,
    open_session,
)
from fusili_mir.sessions.onnxruntime_library import onnxruntime


def test_a_graph_runs_on_the_cpu_with_the_requested_threads() -> None:
    session = open_session(pitch_audio_graph(), "cpu", n_threads=1)
    assert (session.device, session.n_threads) == ("cpu", 1)
    assert session.session.get_session_options().intra_op_num_threads == 1
    frames, embedding = session.run("waveforms", np.zeros((3, 1280)), ["frames", "audio_embedding"])  # type: ignore[arg-type]
    assert (frames.shape, embedding.shape) == ((3, 2, 18), (3, 18))
    assert frames.dtype == np.float32


def test_the_number_of_threads_does_not_depend_on_the_cpus_of_the_machine(monkeypatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0}, raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 1)
    session = open_session(pitch_audio_graph(), "cpu")
    assert session.n_threads == session.session.get_session_options().intra_op_num_threads == 1


@pytest.mark.parametrize(("n_cpus", "n_at_once"), [(1, 1), (3, 3), (64, 4)])
def test_several_cpus_run_several_batches_at_once(n_cpus, n_at_once, monkeypatch) -> None:
    monkeypatch.setattr(graph_session, "usable_cpus", lambda: n_cpus)
    assert open_session(pitch_audio_graph(), "cpu").n_at_once == n_at_once
    assert open_session(pitch_audio_graph(), "cpu", n_threads=2).n_at_once == 1  # two threads, and no more


def test_an_unknown_device_is_refused_with_the_available_ones(monkeypatch) -> None:
    monkeypatch.setattr(graph_session, "available_devices", lambda: ("coreml", "cpu"))
    with pytest.raises(
        InputError, match="device 'tpu' is not supported by this onnxruntime, which has coreml, cpu"
    ):
        open_session(b"", "tpu")
    with pytest.raises(InputError, match=r"which has coreml, cpu; install fusili-mir\[gpu\]"):
        open_session(b"", "CUDA")


def without_gpu() -> SimpleNamespace:
    """An onnxruntime that was built for CUDA, on a machine where CUDA does not work: it falls back silently."""

    def session(graph: bytes, options: object, providers: list[object], enable_fallback: int) -> object:
        return onnxruntime().InferenceSession(graph, options, providers=["CPUExecutionProvider"])

    return SimpleNamespace(
        OrtValue=onnxruntime().OrtValue,
        get_available_providers=lambda: ["CUDAExecutionProvider", "CPUExecutionProvider"],
        SessionOptions=onnxruntime().SessionOptions,
        InferenceSession=session,
        set_default_logger_severity=onnxruntime().set_default_logger_severity,
    )


def test_auto_takes_the_cpu_where_cuda_is_listed_but_does_not_work_and_says_why_once(monkeypatch) -> None:
    monkeypatch.setattr(graph_session, "onnxruntime", without_gpu)
    monkeypatch.setattr(graph_session, "_warned", set())
    assert available_devices() == ("cuda", "cpu")
    with pytest.warns(DeviceWarning, match="cuda cannot be used, so the model runs on the CPU: onnxruntime"):
        assert open_session(pitch_audio_graph(), "auto").device == "cpu"
    assert open_session(pitch_audio_graph(), "auto").device == "cpu"  # a second warning would be an error


def failing(message: str) -> SimpleNamespace:
    """An onnxruntime whose CUDA provider raises an error; the CPU works."""

    def session(graph: bytes, options: object, providers: list[object], enable_fallback: int) -> object:
        if len(providers) > 1:
            raise RuntimeError(message)
        return onnxruntime().InferenceSession(graph, options, providers=["CPUExecutionProvider"])

    runtime = without_gpu()
    runtime.InferenceSession = session
    return runtime


def test_the_reason_is_that_of_onnxruntime(monkeypatch) -> None:
    monkeypatch.setattr(
        graph_session, "onnxruntime", lambda: failing("CUDA failure 100:\nno device is detected")
    )
    monkeypatch.setattr(graph_session, "_warned", set())
    with pytest.warns(DeviceWarning, match="on the CPU: CUDA failure 100: no device is detected"):
        open_session(pitch_audio_graph(), "auto")
    with pytest.raises(InputError, match=r"machine \(CUDA failure 100: no device is detected\); choose cpu"):
        open_session(pitch_audio_graph(), "cuda")


def test_outputs_stay_bound_and_go_into_the_next_graph_without_a_copy() -> None:
    session = open_session(pitch_audio_graph(), "cpu", n_threads=1)
    noise = (np.random.default_rng(0).normal(size=(4, 1280)) / 9).astype(np.float32)
    (frames,) = session.run_bound({"waveforms": noise}, ["frames"])
    assert isinstance(frames, DeviceTensor)
    assert frames.shape == (4, 2, 18)
    compare = open_session(SIMILARITY_GRAPH.read_bytes(), "cpu", n_threads=1)
    (found,) = compare.run_bound({"patches": frames, "frames": frames}, ["similarity"])
    local = frames.to_numpy()
    assert found.to_numpy() == pytest.approx(local @ local.swapaxes(1, 2), abs=1e-6)


def test_two_windows_of_a_recording_are_compared_as_one() -> None:
    rng = np.random.default_rng(0)
    patches, frames = rng.normal(size=(2, 3, 4)), rng.normal(size=(4, 5, 4))
    session = open_session(SIMILARITY_GRAPH.read_bytes(), "cpu", n_threads=1)
    (found,) = session.run_bound({"patches": patches, "frames": frames}, ["similarity"])  # type: ignore[dict-item]
    joined = frames.reshape(2, 10, 4)
    assert found.to_numpy() == pytest.approx(patches @ joined.swapaxes(1, 2), abs=1e-5)


def test_cuda_by_name_is_an_error_where_it_does_not_work(monkeypatch) -> None:
    monkeypatch.setattr(graph_session, "onnxruntime", without_gpu)
    with pytest.raises(InputError, match="device 'cuda' is supported by this onnxruntime but does not work"):
        open_session(pitch_audio_graph(), "cuda")


def test_remote_providers_are_not_devices(monkeypatch) -> None:
    runtime = SimpleNamespace(
        get_available_providers=lambda: ["AzureExecutionProvider", "CPUExecutionProvider"]
    )
    monkeypatch.setattr(graph_session, "onnxruntime", lambda: runtime)
    assert available_devices() == ("cpu",)


def test_without_onnxruntime_the_extras_are_named(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(MissingExtraError, match=r"'fusili-mir\[cpu\]', or 'fusili-mir\[gpu\]'"):
        open_session(b"")


def test_a_graph_that_onnxruntime_cannot_load_raises_a_one_line_error() -> None:
    value = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1])
    node = helper.make_node("Telepathy", ["x"], ["y"])
    output = helper.make_tensor_value_info("y", TensorProto.FLOAT, [1])
    model = onnx.helper.make_model(helper.make_graph([node], "g", [value], [output]), ir_version=8)
    with pytest.raises(InputError, match="the graph: onnxruntime cannot load it") as error:
        open_session(model.SerializeToString())
    assert "\n" not in str(error.value)


def test_a_batch_that_does_not_fit_raises_a_one_line_error() -> None:
    # In a process of its own: onnxruntime prints its own message to standard error, too.
    code = (
        "import numpy as np, sys; sys.path.insert(0, 'tests')\n"
        "from example_bundles import pitch_audio_graph\n"
        "from fusili_mir.sessions.graph_session import open_session\n"
        "open_session(pitch_audio_graph()).run('waveforms', np.zeros((1, 7)), ['frames'])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "FusiliError: onnxruntime cannot run a batch of shape (1, 7) on cpu" in done.stderr


def test_fewer_than_one_thread_is_refused() -> None:
    with pytest.raises(FusiliError, match="0 threads, expected at least 1"):
        open_session(pitch_audio_graph(), n_threads=0)
