"""The one place that imports onnxruntime."""

from __future__ import annotations

import importlib
import os
from typing import Any

from fusili_mir.errors import MissingExtraError

__all__ = ["onnxruntime"]


def onnxruntime(part: str = "") -> Any:
    """Return the module, or a part of it such as ".quantization", with its telemetry switched off.

    It is on by default: from its import on, onnxruntime keeps a device id and a database below the user's cache
    folder. The variable also holds for processes that are started from here.
    """
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"
    try:
        module: Any = importlib.import_module("onnxruntime")
        module.disable_telemetry_events()  # somebody else may have imported it before
        return importlib.import_module(f"onnxruntime{part}")
    except ImportError as error:
        raise MissingExtraError(
            "onnxruntime is not installed; run pip install 'fusili-mir[cpu]', or 'fusili-mir[gpu]' for CUDA "
            "(never both)"
        ) from error
