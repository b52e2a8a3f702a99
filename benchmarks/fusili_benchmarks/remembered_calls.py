"""Slow functions that need not be called again: the same arguments always give the same result."""

from __future__ import annotations

import functools
import importlib
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

__all__ = ["RememberedCalls"]


class RememberedCalls:
    """Functions whose results are kept in this process, and in copies of it.

    Parameters
    ----------
    names : iterable of str
        Functions, or methods of classes, by their full names.

    Attributes
    ----------
    is_used : bool
        Whether results that are known are given again.
    """

    def __init__(self, names: Iterable[str]) -> None:
        self.is_used = False
        self._known: dict[tuple[Any, ...], Any] = {}
        self._calls: Counter[tuple[Any, ...]] = Counter()
        for name in names:
            self._wrap(name)

    def begin(self, is_used: bool) -> None:
        """Begin a run, in which known results are used or not."""
        self.is_used = is_used
        self._calls.clear()

    def _wrap(self, name: str) -> None:
        owner, attribute = _owner(name)
        function: Callable[..., Any] = getattr(owner, attribute)

        @functools.wraps(function)
        def call(*arguments: Any, **options: Any) -> Any:
            texts = tuple(repr(each) for each in arguments if isinstance(each, str | Path | tuple))
            key = (name, *texts, self._calls[(name, *texts)])
            self._calls[(name, *texts)] += 1
            if self.is_used and key in self._known:
                return self._known[key]
            result = self._known[key] = function(*arguments, **options)
            return result

        setattr(owner, attribute, call)


def _owner(name: str) -> tuple[Any, str]:
    """Return the module or class that a function belongs to, and its name there."""
    path, _, attribute = name.rpartition(".")
    try:
        return importlib.import_module(path), attribute
    except ModuleNotFoundError:
        module, _, owner = path.rpartition(".")
        return getattr(importlib.import_module(module), owner), attribute
