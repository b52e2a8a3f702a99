"""Importing partitura without what no command needs of it.

partitura imports `scipy.signal`, and `scipy.stats` with it, for one function of its performance features, and
pandas, where that is installed, for a format that no command reads: together half of the time that it takes. A
process that is ours alone does without: `scipy.signal` is imported when it is called, and partitura never gets to
see pandas, which others may import.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

__all__ = ["import_partitura_lightly"]

_PACKAGE, _LATE, _LEFT_OUT = "partitura", "scipy.signal", "pandas"


def import_partitura_lightly() -> None:
    """Let partitura, whenever this process imports it, take functions of `scipy.signal` that import it late."""
    sys.meta_path.insert(0, _LightFinder())


class _LightFinder(MetaPathFinder):
    """Finds partitura where it is; while it is executed, what it imports for others is replaced."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        spec = PathFinder.find_spec(fullname, path, target) if fullname == _PACKAGE else None
        if spec is None or spec.loader is None:
            return None
        execute = spec.loader.exec_module

        def execute_lightly(module: ModuleType) -> None:
            with _standing_in(_LATE, _LateFunctions(_LATE)), _standing_in(_LEFT_OUT, None):
                execute(module)

        spec.loader.exec_module = execute_lightly  # type: ignore[method-assign]
        return spec


class _LateFunctions(ModuleType):
    """Stands for a module: a function that is taken from it imports the module when it is called."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # what Python itself asks of modules
            raise AttributeError(name)

        def call(*arguments: Any, **options: Any) -> Any:
            if sys.modules.get(self.__name__) is self:  # another thread, while partitura is being imported
                del sys.modules[self.__name__]
            return getattr(importlib.import_module(self.__name__), name)(*arguments, **options)

        return call


@contextmanager
def _standing_in(name: str, module: ModuleType | None) -> Iterator[None]:
    """Let a module stand for one that is not imported yet; None says that there is no such module."""
    if name in sys.modules:
        yield
        return
    sys.modules[name] = module  # type: ignore[assignment]  # Python documents None
    try:
        yield
    finally:
        if sys.modules.get(name) is module:  # it may have been imported meanwhile
            sys.modules.pop(name, None)
