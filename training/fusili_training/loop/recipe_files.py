"""Reading recipes: TOML files that may build on one another, and overrides from the command line."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any, cast

from fusili_mir.boundary import reading, refuse_address
from fusili_mir.dataclass_tables import read_table
from fusili_mir.errors import InputError
from fusili_mir.untrusted_toml import read_toml
from fusili_training.loop.recipe import Recipe

__all__ = ["find_recipe", "list_recipes", "read_recipe", "recipe_from_dict"]

_PACKAGE = Path(__file__).parents[1]
_FOLDERS = (_PACKAGE.parent / "recipes", _PACKAGE / "recipes")  # in a checkout, in an installed wheel
_BASE_KEY = "extends"


def read_recipe(recipe: str | Path, overrides: Iterable[str] = ()) -> Recipe:
    """Read a recipe.

    Parameters
    ----------
    recipe : str or Path
        A TOML file, or the name of a recipe that comes with the package. A file may say ``extends = "FILE"``,
        a file in the same folder, and then states only what differs.
    overrides : iterable of str
        ``section.key=value``, with the value as in TOML; a value that is not valid TOML is taken as a string.
    """
    path = find_recipe(recipe)
    table: dict[str, Any] = {"name": path.stem} | _read_chain(path, ())
    for override in overrides:
        table = _merge(table, _read_override(override))
    return recipe_from_dict(table, str(path))


def find_recipe(recipe: str | Path) -> Path:
    """Return the file of a recipe, given by its path or by the name of a shipped recipe."""
    refuse_address(recipe)
    path = Path(recipe)
    with reading(path, "give a TOML file or the name of a recipe"):
        if path.is_file():
            return path
        for folder in _FOLDERS:
            shipped = folder / f"{path}.toml"
            if shipped.is_file():
                return shipped
    near = get_close_matches(path.stem, list_recipes(), n=3, cutoff=0.3) or list_recipes()
    raise InputError(f"there is no recipe {recipe}; give a TOML file or a name such as {', '.join(near)}")


def list_recipes() -> list[str]:
    """List the names of the recipes that come with the package."""
    return sorted(file.stem for folder in _FOLDERS if folder.is_dir() for file in folder.glob("*.toml"))


def recipe_from_dict(table: Mapping[str, Any], source: str) -> Recipe:
    """Make a recipe of plain values, as `Recipe.as_dict` gives them; errors name the `source`."""
    with reading(source, "expected a recipe"):
        try:
            return read_table(Recipe, table)
        except InputError as error:
            raise InputError(f"{source}: {error}") from error


def _read_chain(path: Path, above: tuple[Path, ...]) -> dict[str, Any]:
    """Read a file and those it extends; `above` are the files that extend this one."""
    if path in above:
        raise InputError(f"{path} extends itself through {above[-1]}; expected no circle of recipes")
    table = read_toml(path)
    base = table.pop(_BASE_KEY, None)
    if base is None:
        return table
    if not isinstance(base, str):
        raise InputError(f"{path}: {_BASE_KEY} is {base!r}; expected the name of a file in the same folder")
    extended = path.parent / base
    if not extended.is_file():
        raise InputError(f"{path} extends {base}; expected that file in the same folder")
    return _merge(_read_chain(extended, (*above, path)), table)


def _read_override(override: str) -> dict[str, Any]:
    key, separator, text = override.partition("=")
    if not (key.strip() and separator):
        raise InputError(f"override {override!r}; expected section.key=value, such as loss.alpha=0.5")
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except (tomllib.TOMLDecodeError, RecursionError):
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
