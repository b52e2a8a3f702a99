"""Running graphs with onnxruntime, on the requested device and no other.

A device is the short name of an execution provider: "cpu", "cuda", "coreml", ... If a provider is listed but does
not work (a CUDA build on a machine without a GPU), onnxruntime silently falls back to the CPU. Every session is
therefore asked which provider it really uses.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from fusili_mir.arrays import Float32
from fusili_mir.errors import FusiliError, InputError, MissingExtraError

__all__ = ["GraphSession", "available_devices", "default_threads", "onnxruntime_version", "open_session"]

_SUFFIX = "ExecutionProvider"
_REMOTE = {"Azure"}  # providers that send data elsewhere
_FATAL, _ERROR, _WARNING = 4, 3, 2  # severities in onnxruntime's log


@dataclass(frozen=True)
class GraphSession:
    """A graph, ready to run.

    Attributes
    ----------
    session : onnxruntime.InferenceSession
    device : str
        Device that it runs on.
    n_threads : int
        Number of threads, if the device is the CPU.
    """

    session: Any
    device: str
    n_threads: int

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
        try:
            arrays = self.session.run(outputs, {name: np.ascontiguousarray(batch, np.float32)})
        except Exception as error:  # onnxruntime's errors have no common base
            raise FusiliError(
                f"onnxruntime cannot run a batch of shape {batch.shape} on {self.device} ({_one_line(error)})"
            ) from error
        return [np.asarray(array, np.float32) for array in arrays]


def onnxruntime_version() -> str:
    """Return the version of onnxruntime."""
    return str(_onnxruntime().__version__)


def available_devices() -> tuple[str, ...]:
    """Return the devices that the installed onnxruntime was built for, the CPU last; they may not work here."""
    providers = _onnxruntime().get_available_providers()
    names = [name.removesuffix(_SUFFIX) for name in providers]
    return tuple(
        sorted({name.lower() for name in names if name not in _REMOTE}, key=lambda n: (n == "cpu", n))
    )


def default_threads() -> int:
    """Return how many CPUs this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def open_session(graph: bytes, device: str = "auto", n_threads: int | None = None) -> GraphSession:
    """Open a graph.

    Parameters
    ----------
    graph : bytes
        Content of an ONNX file.
    device : str
        "auto" uses CUDA if it works, otherwise the CPU; "cpu", "cuda" or another of `available_devices` uses that
        one or raises an error.
    n_threads : int, optional
        Number of CPU threads; by default one per CPU.

    Returns
    -------
    GraphSession
    """
    device = device.lower()
    devices = available_devices()
    if device != "auto" and device not in devices:
        raise InputError(
            f"device {device!r} is not supported by this onnxruntime, which has {', '.join(devices)}; "
            + (
                "install fusili-mir[gpu] in place of [cpu]"
                if device == "cuda"
                else "choose one of these or auto"
            )
        )
    if n_threads is not None and n_threads < 1:
        raise InputError(f"{n_threads} threads, expected at least 1")
    n_threads = n_threads or default_threads()
    wanted = device if device != "auto" else "cuda" if "cuda" in devices else "cpu"
    session = _create(graph, wanted, n_threads)
    if session is None and device == "auto":
        wanted = "cpu"
        session = _create(graph, wanted, n_threads)
    if session is None:
        raise InputError(
            f"device {wanted!r} is supported by this onnxruntime but does not work on this machine: "
            "a driver or library is missing; choose cpu or auto"
        )
    return GraphSession(session, wanted, n_threads)


def _create(graph: bytes, device: str, n_threads: int) -> Any:
    """Return a session that runs on the device; None if it would run elsewhere."""
    runtime = _onnxruntime()
    provider = next(
        name for name in runtime.get_available_providers() if name.removesuffix(_SUFFIX).lower() == device
    )
    options = runtime.SessionOptions()
    options.intra_op_num_threads = n_threads
    options.inter_op_num_threads = 1
    options.log_severity_level = _ERROR if device == "cpu" else _FATAL
    with _quiet(runtime) if device != "cpu" else contextlib.nullcontext():
        if device == "cuda" and hasattr(runtime, "preload_dlls"):
            runtime.preload_dlls()
        try:
            session = runtime.InferenceSession(graph, options, providers=[provider], enable_fallback=0)
        except Exception as error:  # onnxruntime's errors have no common base
            if device != "cpu":
                return None
            raise InputError(f"onnxruntime cannot load the graph ({_one_line(error)})") from error
    return session if session.get_providers()[0] == provider else None


@contextlib.contextmanager
def _quiet(runtime: Any) -> Iterator[None]:
    """Suppress what onnxruntime prints about devices that do not work."""
    runtime.set_default_logger_severity(_FATAL)
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            yield
    finally:
        runtime.set_default_logger_severity(_WARNING)


def _onnxruntime() -> Any:
    try:
        return importlib.import_module("onnxruntime")
    except ImportError as error:
        raise MissingExtraError(
            "onnxruntime is not installed; run pip install 'fusili-mir[cpu]', or 'fusili-mir[gpu]' for CUDA "
            "(never both)"
        ) from error


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:300]
