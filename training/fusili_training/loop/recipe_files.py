"""Reading recipes: TOML files that may build on one another, and overrides from the command line."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal, TypeVar, cast, get_args, get_origin, get_type_hints

from fusili_mir.errors import InputError
from fusili_training.loop.recipe import Recipe

__all__ = ["find_recipe", "list_recipes", "read_recipe", "recipe_from_dict"]

_PACKAGE = Path(__file__).parents[1]
_FOLDERS = (_PACKAGE.parent / "recipes", _PACKAGE / "recipes")  # in a checkout, in an installed wheel
_BASE_KEY = "extends"

_Section = TypeVar("_Section")


def read_recipe(recipe: str | Path, overrides: Iterable[str] = ()) -> Recipe:
    """Read a recipe.

    Parameters
    ----------
    recipe : str or Path
        A TOML file, or the name of a recipe that comes with the package. A file may say ``extends = "FILE"``
        (beside it) and then states only what differs.
    overrides : iterable of str
        ``section.key=value``, the value as in TOML; what is no TOML value is taken as a string.
    """
    path = find_recipe(recipe)
    table: dict[str, Any] = {"name": path.stem} | _read_chain(path, ())
    for override in overrides:
        table = _merge(table, _read_override(override))
    return recipe_from_dict(table, str(path))


def find_recipe(recipe: str | Path) -> Path:
    """Return the file of a recipe that is given by its path or by its name alone."""
    path = Path(recipe)
    if path.is_file():
        return path
    for folder in _FOLDERS:
        shipped = folder / f"{path}.toml"
        if shipped.is_file():
            return shipped
    near = get_close_matches(path.stem, list_recipes(), n=3, cutoff=0.3) or list_recipes()
    raise InputError(f"there is no recipe {recipe}; give a TOML file or a name such as {', '.join(near)}")


def list_recipes() -> list[str]:
    """Return the names of the recipes that come with the package."""
    return sorted(file.stem for folder in _FOLDERS if folder.is_dir() for file in folder.glob("*.toml"))


def recipe_from_dict(table: Mapping[str, Any], source: str) -> Recipe:
    """Make a recipe of plain values, as `Recipe.as_dict` gives them; `source` is named in complaints."""
    return _read_section(Recipe, table, source, ())


def _read_chain(path: Path, above: tuple[Path, ...]) -> dict[str, Any]:
    """Read a file and those it builds on; `above` are the files that led to it."""
    if path in above:
        raise InputError(f"{path} extends itself, by way of {above[-1]}; expected recipes without a circle")
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path} is no TOML file: {error}") from error
    base = table.pop(_BASE_KEY, None)
    if base is None:
        return table
    if not isinstance(base, str):
        raise InputError(f"{path}: {_BASE_KEY} is {base!r}; expected the name of a file beside it")
    beside = path.parent / base
    if not beside.is_file():
        raise InputError(f"{path} extends {base}, which is not beside it")
    return _merge(_read_chain(beside, (*above, path)), table)


def _read_override(override: str) -> dict[str, Any]:
    key, separator, text = override.partition("=")
    if not (key.strip() and separator):
        raise InputError(f"override {override!r}; expected section.key=value, such as loss.alpha=0.5")
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        value = text.strip()
    for part in reversed(key.strip().split(".")):
        value = {part: value}
    return cast("dict[str, Any]", value)


def _merge(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(base)
    for key, value in changes.items():
        both_tables = isinstance(value, Mapping) and isinstance(merged.get(key), Mapping)
        merged[key] = _merge(merged[key], value) if both_tables else value
    return merged


def _read_section(kind: type[_Section], table: Any, source: str, place: tuple[str, ...]) -> _Section:
    """Make a dataclass of a table; `place` are the keys that led to it."""
    if not isinstance(table, Mapping):
        raise InputError(f"{source}: {'.'.join(place)} is {table!r}; expected a table")
    known = [field.name for field in fields(kind)]  # type: ignore[arg-type]
    for key in table:
        if key not in known:
            near = get_close_matches(key, known, n=1)
            hint = f"did you mean {near[0]}? " if near else ""
            where = f"[{'.'.join(place)}]" if place else "the top level"
            raise InputError(
                f"{source}: unknown key {'.'.join((*place, key))}; {hint}{where} has {', '.join(known)}"
            )
    types = get_type_hints(kind)
    return kind(**{key: _read_value(types[key], table[key], source, (*place, key)) for key in table})


def _read_value(kind: Any, value: Any, source: str, place: tuple[str, ...]) -> Any:
    if is_dataclass(kind):
        return _read_section(cast("type[Any]", kind), value, source, place)
    if get_origin(kind) is Literal:
        choices = get_args(kind)
        if value in choices:
            return value
        expected = f"one of {', '.join(choices)}"
    elif get_origin(kind) is not None:  # the options of a backbone, which checks them itself
        if isinstance(value, Mapping):
            return {key: tuple(item) if isinstance(item, list) else item for key, item in value.items()}
        expected = "a table"
    else:
        if kind is float and type(value) is int:
            return float(value)
        if type(value) is kind:
            return value
        expected = {bool: "true or false", int: "a whole number", float: "a number", str: "a string"}[kind]
    raise InputError(f"{source}: {'.'.join(place)} is {value!r}; expected {expected}")
