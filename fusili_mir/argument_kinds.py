"""Refusing arguments of a wrong kind at once, where they come in, rather than somewhere deep inside later.

What a public function wants is in its annotations already. They are checked when it is called: a string where a
`Bundle` belongs is one clear line, as bad files are.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import os
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from numbers import Integral, Real
from pathlib import Path
from typing import Any, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

import numpy as np

import fusili_mir
from fusili_mir.boundary import described
from fusili_mir.errors import InputError

__all__ = ["checked"]

F = TypeVar("F", bound=Callable[..., Any])

_WORDS: Mapping[Any, str] = {
    int: "a whole number",
    float: "a number",
    str: "a text",
    Path: "the name of a file or folder",
}
_FROM = {
    "Alignment": "align_recording",
    "Bundle": "load_bundle",
    "EncodedAudio": "encode_recording",
    "EncodedScore": "encode_pages",
    "Index": "open_index",
    "Pages": "open_pages",
    "Segment": "staff_strips",
}
_MOST_KINDS = 5  # functions that take more say themselves what they take
_MOST_ITEMS = 1000  # of a sequence that are looked at


def checked(target: F) -> F:
    """Return a function, or a dataclass, that refuses arguments of another kind than it states.

    Numbers may be numpy's, and names of files texts. What is not stated plainly, such as a protocol, is not
    checked.

    >>> @checked
    ... def repeat(word: str, times: int = 2) -> str:
    ...     return word * times
    >>> repeat("so", "3")
    Traceback (most recent call last):
    fusili_mir.errors.InputError: times is '3'; expected a whole number
    """
    if isinstance(target, type):
        target.__init__ = checked(target.__init__)  # type: ignore[misc]
        return target
    signature = inspect.signature(target)

    @functools.wraps(target)
    def call(*arguments: Any, **named: Any) -> Any:
        given = signature.bind(*arguments, **named).arguments
        for name, kind in _kinds(target).items():
            if name in given and not _fits(given[name], kind):
                raise InputError(f"{name} is {_found(given[name], kind)}; expected {_words(kind)}")
        return target(*arguments, **named)

    return cast(F, call)


class _PublicNames(dict[str, Any]):
    """Names that a module imports for type checkers alone."""

    def __missing__(self, name: str) -> Any:
        if name not in fusili_mir.__all__:
            raise KeyError(name)  # it is looked up in the module
        return getattr(fusili_mir, name)


@functools.cache
def _kinds(function: Callable[..., Any]) -> Mapping[str, Any]:
    kinds: dict[str, Any] = {}
    for name, annotation in function.__annotations__.items():
        if name != "return":
            alone = types.SimpleNamespace(__annotations__={name: annotation})
            with contextlib.suppress(NameError):  # an alias of names that only its own module knows
                kinds |= get_type_hints(alone, function.__globals__, _PublicNames())
    return kinds


def _fits(value: Any, kind: Any) -> bool:
    """Return whether a value is of a kind, as far as that is stated plainly."""
    origin, parts = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        others = [part for part in parts if part is not types.NoneType]
        is_plain = len(others) <= _MOST_KINDS and (len(others) == 1 or Mapping not in map(get_origin, others))
        return not is_plain or any(_fits(value, part) for part in parts)
    if origin is Literal:
        return any(value is part or (type(value) is type(part) and value == part) for part in parts)
    if origin is np.ndarray:
        is_array = hasattr(value, "__array__") and not np.isscalar(value)
        return is_array and (not _is_table(parts) or getattr(value.dtype, "names", None) is not None)
    if origin is os.PathLike or kind is Path:
        return isinstance(value, str | os.PathLike)
    if origin is tuple and parts and parts[-1] is not Ellipsis:
        return isinstance(value, tuple | list) and len(value) == len(parts) and all(map(_fits, value, parts))
    if origin in (tuple, list, Sequence):
        is_row = isinstance(value, Sequence) and not isinstance(value, str | bytes)
        return is_row and all(_fits(each, parts[0]) for each in value[:_MOST_ITEMS])
    if origin is Iterable:
        return isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping)
    if origin in (dict, Mapping):
        return isinstance(value, Mapping)
    if kind in (int, float):
        number = value.item() if isinstance(value, np.ndarray) and value.ndim == 0 else value
        return isinstance(number, Integral if kind is int else Real) and not isinstance(number, bool)
    if kind in (bool, Any) or not isinstance(kind, type) or getattr(kind, "_is_protocol", False):
        return True
    return isinstance(value, kind)


def _found(value: Any, kind: Any) -> str:
    """Describe what does not fit: of a row, the first item that does not."""
    kinds = get_args(kind) if get_origin(kind) in (Union, types.UnionType) else (kind,)
    items = [get_args(each)[0] for each in kinds if get_origin(each) in (tuple, list, Sequence)]
    if items and isinstance(value, list | tuple):
        wrong = [each for each in value[:_MOST_ITEMS] if not _fits(each, items[0])]
        if wrong:
            return f"{described(value)} with {described(wrong[0])}"
    return described(value)


def _is_table(parts: tuple[Any, ...]) -> bool:
    """Return whether an array of this shape and type has named fields."""
    return np.void in get_args(parts[-1])


def _words(kind: Any) -> str:
    """Describe a kind."""
    origin, parts = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        are_files = any(part is Path or get_origin(part) is os.PathLike for part in parts)
        unsaid = (types.NoneType, *((str,) if are_files else ()))
        words = list(dict.fromkeys(_words(part) for part in parts if part not in unsaid))
        return " or ".join(filter(None, (", ".join(words[:-1]), words[-1])))
    if origin is Literal:
        return f"one of {', '.join(map(repr, parts))}"
    if origin is np.ndarray:
        return "a structured array" if _is_table(parts) else "an array"
    if origin is os.PathLike:
        return _WORDS[Path]
    if origin is tuple and parts[-1] is not Ellipsis:
        return f"{len(parts)} numbers"
    if origin in (tuple, list, Sequence, Iterable):
        return "a list of names" if parts[0] is str else "a list"
    if origin in (dict, Mapping):
        return "a dictionary"
    if kind in _WORDS:
        return _WORDS[kind]
    name = kind.__name__
    article = "" if name == "Pages" else "an " if name[0] in "AEIO" else "a "
    return f"{article}{name}" + (f" (see {_FROM[name]})" if name in _FROM else "")
