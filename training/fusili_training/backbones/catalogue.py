"""The backbones by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fusili_mir.dataclass_tables import read_table
from fusili_mir.errors import InputError
from fusili_training.backbones.interface import Backbone

__all__ = ["BACKBONES", "build_backbone", "read_backbone_options"]

BACKBONES = ("clip-clap", "small")

_PLACE = "model.backbone_options"  # where a recipe has them


def build_backbone(name: str, options: Mapping[str, Any] | None = None) -> Backbone:
    """Build a backbone with random weights.

    Parameters
    ----------
    name : str
        One of `BACKBONES`.
    options : mapping, optional
        Fields of `ClipClapOptions` or `SmallOptions`.
    """
    chosen = read_backbone_options(name, options)
    if name == "clip-clap":
        from fusili_training.backbones.clip_clap import build_clip_clap

        return build_clip_clap(chosen)
    from fusili_training.backbones.small import build_small

    return build_small(chosen)


def read_backbone_options(name: str, options: Mapping[str, Any] | None = None) -> Any:
    """Return the `ClipClapOptions` or `SmallOptions` of a table: its types and sizes are checked."""
    options = options or {}
    if name == "clip-clap":
        from fusili_training.backbones.clip_clap import ClipClapOptions

        return read_table(ClipClapOptions, options, _PLACE)
    if name == "small":
        from fusili_training.backbones.small import SmallOptions

        return read_table(SmallOptions, options, _PLACE)
    raise InputError(f"unknown backbone {name!r}; expected one of {', '.join(BACKBONES)}")
