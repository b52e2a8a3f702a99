"""Align score images with recordings: which spot on which page sounds at which second.

    import fusili_mir as fm
    performance, alignment, score = fm.align_score("piece.musicxml", "recording.wav")  # partitura's types
    frames = fm.align_pages("scan.pdf", "recording.wav")  # images alone
    result = fm.Aligner().align("scan.pdf", "tape.mp3", fm.AlignOptions(start_sec=75, transpose=-2))  # everything

The public names are listed in `__init__.pyi`. Each is loaded on first use, so importing the package is cheap.
"""

from __future__ import annotations

import ast
from importlib import import_module
from pathlib import Path
from typing import Any

__version__ = "0.1.0"


def _modules_of_names() -> dict[str, str]:
    """Read the module of each public name from the stub beside this file."""
    stub = ast.parse(Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
    return {
        alias.name: f"{__name__}.{statement.module}"
        for statement in stub.body
        if isinstance(statement, ast.ImportFrom)
        for alias in statement.names
    }


_MODULE_OF = _modules_of_names()
__all__ = sorted(_MODULE_OF)


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULE_OF[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
