"""What the providers of onnxruntime are given."""

from __future__ import annotations

import pytest

from fusili_mir.errors import InputError
from fusili_mir.sessions.devices import Device, device_names, free_bytes, why_not

GPU = ["TensorrtExecutionProvider", "CUDAExecutionProvider", "CPUExecutionProvider"]


def test_cuda_is_given_its_number_full_precision_and_the_cpu_behind_it() -> None:
    (cuda, options), (cpu, none) = Device.parse("CUDA:1").providers(GPU)
    assert (cuda, cpu, none) == ("CUDAExecutionProvider", "CPUExecutionProvider", {})
    assert (options["device_id"], options["use_tf32"]) == ("1", "0")
    assert options["arena_extend_strategy"] == "kSameAsRequested"


def test_options_of_the_user_come_last() -> None:
    device = Device.parse("cuda", {"use_tf32": "1", "gpu_mem_limit": "1000"})
    options = device.providers(GPU)[0][1]
    assert (options["use_tf32"], options["gpu_mem_limit"], options["device_id"]) == ("1", "1000", "0")


def test_what_tensorrt_leaves_runs_on_cuda() -> None:
    providers = Device.parse("trt").providers(GPU)
    assert [name for name, _ in providers] == GPU
    assert providers[0][1]["trt_engine_cache_enable"] == "1"
    assert providers[1][1]["use_tf32"] == "0"


@pytest.mark.parametrize(
    ("text", "available", "provider", "memory"),
    [
        ("directml", "DmlExecutionProvider", "DmlExecutionProvider", "dml"),
        ("dml:1", "DmlExecutionProvider", "DmlExecutionProvider", "dml"),
        ("coreml", "CoreMLExecutionProvider", "CoreMLExecutionProvider", "cpu"),
        ("cpu", "CPUExecutionProvider", "CPUExecutionProvider", "cpu"),
    ],
)
def test_other_providers_are_accepted(text: str, available: str, provider: str, memory: str) -> None:
    device = Device.parse(text)
    assert device.providers([available])[0][0] == provider
    assert device.memory == memory
    assert device.name in device_names([available, "CPUExecutionProvider"])


@pytest.mark.parametrize("text", ["", "cuda:", "cuda:first", ":1"])
def test_a_device_without_a_name_or_number_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="expected a name such as cpu or cuda"):
        Device.parse(text)


def test_a_missing_library_is_the_reason(tmp_path, monkeypatch) -> None:
    package = tmp_path / "onnxruntime"
    (package / "capi").mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "capi" / "libonnxruntime_providers_cuda.so").write_bytes(b"not a library")
    monkeypatch.setattr("fusili_mir.sessions.devices.onnxruntime", lambda: _module(package))
    assert "libonnxruntime_providers_cuda.so" in why_not("cuda", None)
    assert why_not("cuda", RuntimeError("no\ndriver")) == "no driver"
    assert "does not say why" in why_not("dml", None)


def _module(package):  # type: ignore[no-untyped-def]
    from types import SimpleNamespace

    return SimpleNamespace(__file__=str(package / "__init__.py"))


def test_the_free_memory_of_a_cpu_is_known_and_that_of_a_missing_gpu_is_not(monkeypatch, tmp_path) -> None:
    assert (free_bytes(Device("cpu")) or 0) > 2**20
    monkeypatch.setenv("PATH", str(tmp_path))
    assert free_bytes(Device("cuda")) is None


def test_the_free_memory_of_a_gpu_is_what_nvidia_smi_says(monkeypatch, tmp_path) -> None:
    program = tmp_path / "nvidia-smi"
    program.write_text('#!/bin/sh\ntest "$1" = --id=2 && echo 8000\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert free_bytes(Device("cuda", 2)) == 8000 * 2**20
