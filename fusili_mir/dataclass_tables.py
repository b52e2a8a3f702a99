"""Reading a table into a dataclass: recipes in TOML, manifests in JSON, options in a dictionary.

Every key must be a field and every value must have the type of its field, so that a slip is an error that names
the key instead of a setting that is silently ignored. Fields may be numbers, strings, booleans, `Literal`, `X |
None`, tuples (lists in a table), lists, mappings with string keys, `Any` and other dataclasses.
"""

from __future__ import annotations

import types
from collections.abc import Mapping
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass, replace
from difflib import get_close_matches
from typing import Any, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from fusili_mir.errors import InputError

__all__ = ["read_table"]

_PLAIN = {bool: "true or false", int: "a whole number", float: "a number", str: "a string"}

_Kind = TypeVar("_Kind")


def read_table(
    kind: type[_Kind], table: object, place: str = "", *, name: str = "the top level", complete: bool = False
) -> _Kind:
    """Make a dataclass of a table.

    Parameters
    ----------
    kind : type
        The dataclass. Its own checks run as usual.
    table : object
        A mapping from field names to values; anything else is refused.
    place : str
        Key of the table within a larger one, such as ``model.backbone_options``, for messages.
    name : str
        What messages call a table that has no key.
    complete : bool
        Whether every field must be in the table. By default, fields that are left out keep their defaults; a
        nested table likewise changes only the values it names.

    Returns
    -------
    kind
    """
    return cast("_Kind", _read_dataclass(kind, table, _Reading(name, complete), place, default=None))


@dataclass(frozen=True)
class _Reading:
    """The settings of one call of `read_table`."""

    name: str
    complete: bool

    def title(self, place: str) -> str:
        return f"[{place}]" if place else self.name


def _read_dataclass(kind: Any, table: object, reading: _Reading, place: str, default: object) -> Any:
    if not isinstance(table, Mapping):
        raise InputError(f"{place or reading.name} is {table!r}; expected a table")
    known = {field.name: field for field in fields(kind) if field.init}
    for key in table:
        if key not in known:
            near = get_close_matches(str(key), list(known), n=1)
            hint = f"did you mean {near[0]}? " if near else ""
            raise InputError(
                f"unknown key {_join(place, str(key))}; {hint}{reading.title(place)} has {', '.join(known)}"
            )
    lacking = [field.name for field in known.values() if field.name not in table]
    if not reading.complete:
        lacking = [key for key in lacking if default is None and not _has_default(known[key])]
    if lacking:
        raise InputError(f"{reading.title(place)} lacks {', '.join(sorted(lacking))}")
    hints = get_type_hints(kind)
    values = {
        key: _read_value(
            hints[key],
            value,
            reading,
            _join(place, key),
            None if reading.complete else _default_of(known[key], default),
        )
        for key, value in table.items()
    }
    return kind(**values) if default is None else replace(cast("Any", default), **values)


def _read_value(kind: Any, value: object, reading: _Reading, place: str, default: object) -> Any:
    if kind is Any:
        return value
    if is_dataclass(kind):
        return _read_dataclass(kind, value, reading, place, default)
    origin, parts = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType) and value is None and types.NoneType in parts:
        return None
    if origin in (Union, types.UnionType):
        (kind,) = (part for part in parts if part is not types.NoneType)  # only `X | None` is known
        return _read_value(kind, value, reading, place, default)
    if origin is Literal and value in parts:
        return value
    if origin is tuple and isinstance(value, (list, tuple)):
        kinds = (parts[0],) * len(value) if parts[-1] is Ellipsis else parts
        if len(kinds) == len(value):
            return tuple(
                _read_value(each, item, reading, f"{place}[{number}]", None)
                for number, (each, item) in enumerate(zip(kinds, value, strict=True))
            )
    if origin is list and isinstance(value, list):
        return [
            _read_value(parts[0], item, reading, f"{place}[{number}]", None)
            for number, item in enumerate(value)
        ]
    if origin in (dict, Mapping) and isinstance(value, Mapping):
        return {
            key: _read_value(parts[1], item, reading, _join(place, key), None) for key, item in value.items()
        }
    if kind is float and type(value) is int and abs(value) < 2**1000:
        return float(value)
    if type(value) is kind:
        return value
    raise InputError(f"{place} is {value!r}; expected {_expected(kind)}")


def _expected(kind: Any) -> str:
    origin, parts = get_origin(kind), get_args(kind)
    if origin is Literal:
        return f"one of {', '.join(map(str, parts))}"
    if origin is tuple and parts[-1] is not Ellipsis:
        return f"a list of {len(parts)}"
    if origin in (tuple, list):
        return "a list"
    return _PLAIN.get(kind, "a table")


def _join(place: str, key: str) -> str:
    return f"{place}.{key}" if place else key


def _has_default(field: Field[Any]) -> bool:
    return field.default is not MISSING or field.default_factory is not MISSING


def _default_of(field: Field[Any], owner: object) -> object:
    """Return the value that a field has if no table names it; None if it has none."""
    if owner is not None:
        return getattr(owner, field.name)
    if field.default_factory is not MISSING:
        return field.default_factory()
    return None if field.default is MISSING else field.default
