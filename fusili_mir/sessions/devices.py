"""Devices: the short names of onnxruntime's execution providers, and what each provider is given.

"cpu", "cuda", "tensorrt", "dml" (DirectML, also "directml"), "coreml", ...: the name of a provider without its
ending. A number chooses one of several: "cuda:1". A provider leaves nodes that it cannot run to those after it,
and at last to the CPU.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fusili_mir.errors import InputError
from fusili_mir.sessions.onnxruntime_library import onnxruntime

__all__ = ["Device", "device_names", "free_bytes", "provider_of", "why_not"]

_SUFFIX = "ExecutionProvider"
_ALIASES = {"directml": "dml", "trt": "tensorrt"}
_REMOTE = {"Azure"}  # providers that send data elsewhere
_FOLLOWED_BY = {"tensorrt": ("cuda",)}  # nodes that TensorRT does not take still run on the GPU
_MEMORY = {"cuda": "cuda", "tensorrt": "cuda", "dml": "dml"}  # the others share the memory of the CPU
_DEFAULTS: Mapping[str, Mapping[str, str]] = {
    # TF32 would cost three digits; growing by doubling would reserve memory that nobody uses.
    "cuda": {
        "use_tf32": "0",
        "arena_extend_strategy": "kSameAsRequested",
        "cudnn_conv_algo_search": "HEURISTIC",
    },
    "tensorrt": {"trt_engine_cache_enable": "1"},
}
_SHARED_LIBRARY = {"cuda": "onnxruntime_providers_cuda", "tensorrt": "onnxruntime_providers_tensorrt"}


@dataclass(frozen=True)
class Device:
    """A device by its name and number, with options for its provider.

    Attributes
    ----------
    name : str
    number : int
    options : mapping of str to str
        Options of the provider, besides and before those that are always set.
    """

    name: str
    number: int = 0
    options: Mapping[str, str] | None = None

    @classmethod
    def parse(cls, text: str, options: Mapping[str, str] | None = None) -> Device:
        """Read a name such as "cuda" or "cuda:1"."""
        name, colon, number = text.strip().lower().partition(":")
        if not name or (colon and not number.isdigit()):
            raise InputError(
                f"device {text!r}; expected a name such as cpu or cuda, or cuda:1 for the second one"
            )
        return cls(_ALIASES.get(name, name), int(number or 0), options)

    def __str__(self) -> str:
        return f"{self.name}:{self.number}" if self.number else self.name

    @property
    def memory(self) -> str:
        """Kind of memory in which its provider works, as onnxruntime names it."""
        return _MEMORY.get(self.name, "cpu")

    def providers(self, available: Sequence[str]) -> list[tuple[str, dict[str, str]]]:
        """Return the providers to ask for, in order, each with its options.

        Parameters
        ----------
        available : sequence of str
            Providers that onnxruntime was built with.
        """
        names = [self.name, *_FOLLOWED_BY.get(self.name, ())]
        found = [(name, provider_of(name, available)) for name in names]
        asked = [(provider, self._options(name)) for name, provider in found if provider is not None]
        if self.name != "cpu":
            asked.append((f"CPU{_SUFFIX}", {}))
        return asked

    def _options(self, name: str) -> dict[str, str]:
        options = dict(_DEFAULTS.get(name, {}))
        if _MEMORY.get(name):
            options["device_id"] = str(self.number)
        return options | dict(self.options or {}) if name == self.name else options


def device_names(providers: Sequence[str]) -> tuple[str, ...]:
    """Return the devices of some providers, the CPU last, without those that send data elsewhere."""
    names = [provider.removesuffix(_SUFFIX) for provider in providers]
    return tuple(
        sorted({name.lower() for name in names if name not in _REMOTE}, key=lambda n: (n == "cpu", n))
    )


def provider_of(name: str, available: Sequence[str]) -> str | None:
    """Return the provider of a device, if onnxruntime has it."""
    return next((each for each in available if each.removesuffix(_SUFFIX).lower() == name), None)


def why_not(name: str, error: Exception | None) -> str:
    """Return why a provider that onnxruntime has does not work on this machine, as far as can be found out.

    Parameters
    ----------
    name : str
        Name of the device.
    error : Exception or None
        What onnxruntime raised; None if it silently took the CPU instead.
    """
    if error is not None:
        return " ".join(str(error).split())[:200]
    library = _SHARED_LIBRARY.get(name)
    if library is not None:
        folder = Path(str(onnxruntime().__file__)).parent / "capi"
        ending = "dll" if os.name == "nt" else "so"
        for file in folder.glob(f"*{library}.{ending}"):
            try:
                ctypes.CDLL(str(file))
            except OSError as missing:
                return " ".join(str(missing).split())[:200]
    return "onnxruntime does not say why; is there such a device, and its driver?"


def free_bytes(device: Device) -> int | None:
    """Return the free memory of a device; None if it is not known."""
    if device.memory == "cuda":
        return _free_gpu_bytes(device.number)
    if device.memory == "cpu" and hasattr(os, "sysconf") and "SC_AVPHYS_PAGES" in os.sysconf_names:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return None


def _free_gpu_bytes(number: int) -> int | None:
    query = ["nvidia-smi", f"--id={number}", "--query-gpu=memory.free", "--format=csv,noheader,nounits"]
    try:
        answer: Any = subprocess.run(query, capture_output=True, text=True, timeout=10, check=True)  # noqa: S603
        return int(answer.stdout.strip()) * 2**20
    except (OSError, ValueError, subprocess.SubprocessError):
        return None
