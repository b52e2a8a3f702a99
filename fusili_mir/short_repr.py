"""A `repr` that fits on a line or two: arrays by their type and shape, tables by their number of rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any, TypeVar

import numpy as np

__all__ = ["short_repr"]

T = TypeVar("T")

_MOST_TEXT = 60
_MOST_ITEMS = 4


def short_repr(cls: type[T]) -> type[T]:
    """Give a dataclass a short `repr`; for results whose arrays would fill the screen.

    >>> from dataclasses import dataclass
    >>> @short_repr
    ... @dataclass(frozen=True)
    ... class Tones:
    ...     name: str
    ...     hertz: object
    >>> Tones("scale", np.zeros((3, 88)))
    Tones(name='scale', hertz=<float64 3x88>)
    """

    def __repr__(self: Any) -> str:  # noqa: N807
        shown = (f"{each.name}={_short(getattr(self, each.name))}" for each in fields(self) if each.repr)
        return f"{type(self).__name__}({', '.join(shown)})"

    cls.__repr__ = __repr__  # type: ignore[method-assign]
    return cls


def _short(value: Any) -> str:
    if isinstance(value, np.ndarray):
        if value.dtype.names is not None:
            return f"<{len(value)} rows>"
        return f"<{value.dtype} {'x'.join(map(str, value.shape))}>"
    if isinstance(value, str | bytes):
        return repr(value) if len(value) <= _MOST_TEXT else f"{value[:_MOST_TEXT]!r}..."
    if isinstance(value, Mapping | Sequence) and len(value) > _MOST_ITEMS:
        return f"<{len(value)} items>"
    if is_dataclass(value) and not isinstance(value, type):
        text = repr(value)
        return text if len(text) <= 2 * _MOST_TEXT else f"<{type(value).__name__}>"
    text = repr(value)
    return text if len(text) <= 2 * _MOST_TEXT else f"<{type(value).__name__}>"
