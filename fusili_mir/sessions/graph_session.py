"""Running graphs with onnxruntime, on the requested device and no other.

If a provider is listed but does not work (a CUDA build on a machine without a GPU), onnxruntime silently falls
back to the CPU. Every session is therefore asked which provider it really uses. With the device "auto" the CPU is
taken then, and a warning says once why.

Batches go through I/O binding: they are copied to the device once, and outputs stay there until they are asked
for, or are given to another graph.
"""

from __future__ import annotations

import contextlib
import io
import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fusili_mir.arrays import Float32
from fusili_mir.errors import FusiliError, FusiliWarning, InputError
from fusili_mir.sessions.devices import Device, device_names, why_not
from fusili_mir.sessions.onnxruntime_library import onnxruntime

__all__ = [
    "CPU_THREADS",
    "DeviceMemoryError",
    "DeviceTensor",
    "DeviceWarning",
    "GraphSession",
    "available_devices",
    "onnxruntime_version",
    "open_session",
    "usable_cpus",
]

CPU_THREADS = 1
"""Threads of a graph on a CPU, however many CPUs there are: their number decides in which order values are added
up, and so the last digit of an embedding. Several CPUs run several batches at once instead. Eight threads on one
CPU took half as much time again, since they wait for each other at every layer."""

_MOST_AT_ONCE = 4  # batches on a CPU: each takes its own work memory
_AUTO = ("cuda",)  # devices that "auto" tries before the CPU
_FATAL, _WARNING = 4, 2  # severities in onnxruntime's log
_OUT_OF_MEMORY = ("failed to allocate memory", "out of memory", "bad allocation", "bad_alloc")


class DeviceWarning(FusiliWarning):
    """A device that cannot be used, so that another one is."""


class DeviceMemoryError(FusiliError):
    """A batch that does not fit into the memory of its device."""


@dataclass(frozen=True, eq=False)
class DeviceTensor:
    """An output of a graph, in the memory of the device.

    Attributes
    ----------
    value : onnxruntime.OrtValue
    """

    value: Any

    @property
    def shape(self) -> tuple[int, ...]:
        """Its shape."""
        return tuple(self.value.shape())

    def to_numpy(self) -> Float32:
        """Copy it from the device."""
        return np.asarray(self.value.numpy(), np.float32)


@dataclass(frozen=True)
class GraphSession:
    """A graph, ready to run.

    Attributes
    ----------
    session : onnxruntime.InferenceSession
    place : Device
        Device that it runs on.
    n_threads : int
        Number of threads, if the device is the CPU.
    n_at_once : int
        How many batches should run at the same time, to use all CPUs.
    """

    session: Any
    place: Device
    n_threads: int
    n_at_once: int = 1

    @property
    def device(self) -> str:
        """Name of the device that it runs on."""
        return self.place.name

    def run(self, name: str, batch: Float32, outputs: list[str]) -> list[Float32]:
        """Run a batch through the graph.

        Parameters
        ----------
        name : str
            Name of the input.
        batch : np.ndarray, float32
        outputs : list of str
            Names of the requested outputs.

        Returns
        -------
        list of np.ndarray, float32
            Outputs in the requested order.
        """
        return [tensor.to_numpy() for tensor in self.run_bound({name: batch}, outputs)]

    def run_bound(
        self, inputs: Mapping[str, Float32 | DeviceTensor], outputs: Sequence[str]
    ) -> list[DeviceTensor]:
        """Run a batch through the graph, and leave the outputs on the device.

        Parameters
        ----------
        inputs : mapping of str to np.ndarray or DeviceTensor
            Inputs by name; tensors of the same device are not copied.
        outputs : sequence of str
            Names of the requested outputs.
        """
        memory, number = self.place.memory, self.place.number
        try:
            binding = self.session.io_binding()
            held = {name: self._on_device(value) for name, value in inputs.items()}  # until the run is over
            for name, tensor in held.items():
                binding.bind_ortvalue_input(name, tensor.value)
            for name in outputs:
                binding.bind_output(name, memory, number)
            binding.synchronize_inputs()
            self.session.run_with_iobinding(binding)
            binding.synchronize_outputs()
            return [DeviceTensor(value) for value in binding.get_outputs()]
        except Exception as error:  # onnxruntime's errors have no common base
            shapes = " and ".join(str(tuple(value.shape)) for value in inputs.values())
            kind = DeviceMemoryError if _is_out_of_memory(error) else FusiliError
            raise kind(
                f"onnxruntime cannot run a batch of shape {shapes} on {self.device} ({_one_line(error)})"
            ) from error

    def _on_device(self, value: Float32 | DeviceTensor) -> DeviceTensor:
        if isinstance(value, DeviceTensor):
            return value
        array = np.ascontiguousarray(value, np.float32)
        make = onnxruntime().OrtValue.ortvalue_from_numpy
        return DeviceTensor(make(array, self.place.memory, self.place.number))


def onnxruntime_version() -> str:
    """Return the version of onnxruntime."""
    return str(onnxruntime().__version__)


def available_devices() -> tuple[str, ...]:
    """Return the devices that the installed onnxruntime was built for, the CPU last; they may not work here."""
    return device_names(onnxruntime().get_available_providers())


def usable_cpus() -> int:
    """Return how many CPUs this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def open_session(
    graph: bytes,
    device: str = "auto",
    n_threads: int | None = None,
    device_options: Mapping[str, str] | None = None,
    name: str = "the graph",
) -> GraphSession:
    """Open a graph.

    Parameters
    ----------
    graph : bytes
        Content of an ONNX file.
    device : str
        "auto" uses CUDA if it works, otherwise the CPU; "cpu", "cuda", "cuda:1" or another of
        `available_devices` uses that one or raises an error.
    n_threads : int, optional
        Number of CPU threads, with one batch at a time; embeddings vary with it in the last digit. By default
        each batch has `CPU_THREADS`, and several batches run at once where there are several CPUs.
    device_options : mapping of str to str, optional
        Options of the execution provider, as onnxruntime names them.
    name : str
        What messages call it.

    Returns
    -------
    GraphSession

    Warns
    -----
    DeviceWarning
        Once, if "auto" takes the CPU although this onnxruntime was built for CUDA.
    """
    devices = available_devices()
    automatic = device.lower() == "auto"
    if automatic:
        device = next((each for each in _AUTO if each in devices), "cpu")
    chosen = Device.parse(device, None if automatic and device == "cpu" else device_options)
    if chosen.name not in devices:
        raise InputError(
            f"device {chosen.name!r} is not supported by this onnxruntime, which has {', '.join(devices)}; "
            + (
                "install fusili-mir[gpu] in place of [cpu]"
                if chosen.name in ("cuda", "tensorrt")
                else "choose one of these or auto"
            )
        )
    if n_threads is not None and n_threads < 1:
        raise InputError(f"{n_threads} threads, expected at least 1")
    opened = _create(graph, chosen, n_threads or CPU_THREADS, name)
    if isinstance(opened, _NotUsable) and automatic:
        _warn_once(f"{chosen} cannot be used, so the model runs on the CPU: {opened.reason}")
        chosen = Device("cpu")
        opened = _create(graph, chosen, n_threads or CPU_THREADS, name)
    if isinstance(opened, _NotUsable):
        raise InputError(
            f"device {str(chosen)!r} is supported by this onnxruntime but does not work on this machine "
            f"({opened.reason}); choose cpu or auto"
        )
    n_at_once = min(usable_cpus(), _MOST_AT_ONCE) if chosen.name == "cpu" and n_threads is None else 1
    return GraphSession(opened, chosen, n_threads or CPU_THREADS, n_at_once)


@dataclass(frozen=True)
class _NotUsable:
    reason: str


def _create(graph: bytes, device: Device, n_threads: int, name: str) -> Any:
    """Return a session that runs on the device, or why there is none."""
    runtime = onnxruntime()
    asked = device.providers(runtime.get_available_providers())
    options = runtime.SessionOptions()
    options.intra_op_num_threads = n_threads
    options.inter_op_num_threads = 1
    if device.name == "cpu":
        # Threads that wait busily take the CPU from each other where there are fewer CPUs than threads.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        # An arena keeps the work memory of the largest batch for good, and gains nothing measurable.
        options.enable_cpu_mem_arena = options.enable_mem_pattern = False
    options.log_severity_level = _FATAL  # errors are raised
    options.add_session_config_entry("session.load_model_format", "ONNX")  # not ORT's, by its first bytes
    with _quiet(runtime) if device.name != "cpu" else contextlib.nullcontext():
        if device.memory == "cuda" and hasattr(runtime, "preload_dlls"):
            runtime.preload_dlls()
        try:
            session = runtime.InferenceSession(graph, options, providers=asked, enable_fallback=0)
        except Exception as error:  # onnxruntime's errors have no common base
            if device.name != "cpu":
                return _NotUsable(why_not(device.name, error))
            raise InputError(f"{name}: onnxruntime cannot load it ({_one_line(error)})") from error
    if session.get_providers()[0] != asked[0][0]:
        return _NotUsable(why_not(device.name, None))
    return session


_warned: set[str] = set()


def _warn_once(text: str) -> None:
    if text not in _warned:
        _warned.add(text)
        warnings.warn(text, DeviceWarning, stacklevel=3)


def _is_out_of_memory(error: Exception) -> bool:
    return any(sign in str(error).lower() for sign in _OUT_OF_MEMORY)


@contextlib.contextmanager
def _quiet(runtime: Any) -> Iterator[None]:
    """Suppress what onnxruntime prints about devices that do not work."""
    runtime.set_default_logger_severity(_FATAL)
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            yield
    finally:
        runtime.set_default_logger_severity(_WARNING)


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:300]
