"""The backbones by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, TypeVar

from fusili_mir.errors import InputError
from fusili_training.backbones.interface import Backbone

__all__ = ["BACKBONES", "build_backbone"]

BACKBONES = ("clip-clap", "small")

_Options = TypeVar("_Options")


def build_backbone(name: str, options: Mapping[str, Any] | None = None) -> Backbone:
    """Build a backbone with random weights.

    Parameters
    ----------
    name : str
        One of `BACKBONES`.
    options : mapping, optional
        Fields of `ClipClapOptions` or `SmallOptions`.
    """
    options = options or {}
    if name == "clip-clap":
        from fusili_training.backbones.clip_clap import ClipClapOptions, build_clip_clap

        return build_clip_clap(_read(ClipClapOptions, name, options))
    if name == "small":
        from fusili_training.backbones.small import SmallOptions, build_small

        return build_small(_read(SmallOptions, name, options))
    raise InputError(f"unknown backbone {name!r}; expected one of {', '.join(BACKBONES)}")


def _read(kind: type[_Options], backbone: str, options: Mapping[str, Any]) -> _Options:
    known = [field.name for field in fields(kind)]  # type: ignore[arg-type]
    for key in options:
        if key not in known:
            raise InputError(f"the backbone {backbone} has no option {key!r}; it has {', '.join(known)}")
    return kind(**options)
