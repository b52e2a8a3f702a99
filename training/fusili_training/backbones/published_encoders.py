"""Importing the two published encoders from unmodified packages.

`open_clip` needs torchvision, whose import fails if its compiled operators do not match the installed torch. From
`laion_clap` only ``clap_module/htsat.py`` is imported, under a parent package of our own: importing `laion_clap`
itself downloads tokenizers and changes `sys.path`.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
import types
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from fusili_mir.errors import MissingExtraError

__all__ = ["import_htsat", "import_open_clip"]

_HTSAT_PARENT = "_fusili_training_clap_module"
_OPERATORS: list[torch.library.Library] = []  # kept alive: the operators vanish with their library


def import_open_clip() -> Any:
    """Return the module `open_clip`."""
    _import_torchvision()
    try:
        return importlib.import_module("open_clip")
    except ModuleNotFoundError as error:
        raise _missing("open_clip_torch") from error


def import_htsat() -> Any:
    """Return LAION-CLAP's module `htsat`, with a `window_reverse` that is exported correctly."""
    if f"{_HTSAT_PARENT}.htsat" in sys.modules:
        return sys.modules[f"{_HTSAT_PARENT}.htsat"]
    spec = importlib.util.find_spec("laion_clap")
    if spec is None or spec.origin is None:
        raise _missing("laion_clap")
    _import_torchvision()
    parent = types.ModuleType(_HTSAT_PARENT)
    parent.__path__ = [str(Path(spec.origin).parent / "clap_module")]
    sys.modules[_HTSAT_PARENT] = parent
    try:
        htsat: Any = importlib.import_module(f"{_HTSAT_PARENT}.htsat")
    except ModuleNotFoundError as error:
        raise _missing(str(error.name).partition(".")[0]) from error
    htsat.window_reverse = window_reverse
    return htsat


def window_reverse(windows: Tensor, window_size: int, height: int, width: int) -> Tensor:
    """Reassemble windows [shape=(B * n_windows, w, w, C)] to images [shape=(B, height, width, C)].

    The published function computes B as a Python number, which becomes a constant in an exported graph.
    """
    channels = windows.shape[-1]
    windows = windows.reshape(
        -1, height // window_size, width // window_size, window_size, window_size, channels
    )
    return windows.permute(0, 1, 3, 2, 4, 5).reshape(-1, height, width, channels)


def _import_torchvision() -> None:
    try:
        importlib.import_module("torchvision")
    except ModuleNotFoundError as error:
        raise _missing("torchvision") from error
    except RuntimeError as error:
        if "torchvision::nms" not in str(error):
            raise
        operators = torch.library.Library("torchvision", "DEF")  # type: ignore[no-untyped-call]
        for name in ("nms", "qnms"):
            schema = f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"
            operators.define(schema)  # type: ignore[no-untyped-call]
        _OPERATORS.append(operators)
        for name in [name for name in sys.modules if name.split(".")[0] == "torchvision"]:
            del sys.modules[name]
        importlib.import_module("torchvision")


def _missing(package: str) -> MissingExtraError:
    remedy = "'fusili-mir[export]'"
    if package == "laion_clap" and sys.version_info >= (3, 13):
        remedy = "--no-deps laion_clap"  # its pin on numpy 1, which has no wheels there, is needless
    return MissingExtraError(f"the clip-clap backbone needs the package {package}: pip install {remedy}")
