"""Checking that a run may be resumed with a recipe: only keys that do not affect the result may change."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from fusili_mir.errors import InputError
from fusili_training.loop.recipe import Recipe

__all__ = ["check_same_run"]

_MAY_CHANGE = ("name", "description", "data.folder", "data.msmd", "data.workers", "loss.memory", "training.")


def check_same_run(recipe: Recipe, earlier: Recipe, path: Path) -> None:
    """Refuse a recipe that differs from `earlier`, the recipe of the checkpoint `path`, in any other key."""
    now, before = dict(_flatten(recipe.as_dict())), dict(_flatten(earlier.as_dict()))
    for key in sorted(now.keys() | before.keys()):
        if now.get(key) != before.get(key) and not key.startswith(_MAY_CHANGE):
            raise InputError(
                f"{path} was trained with {key} = {before.get(key)}, but the recipe now says {now.get(key)};"
                " use the earlier value, or choose another folder"
            )


def _flatten(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in table.items():
        if isinstance(value, Mapping):
            yield from _flatten(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value
