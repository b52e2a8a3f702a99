"""The backbones by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fusili_mir.dataclass_tables import read_table
from fusili_mir.errors import InputError
from fusili_training.backbones.interface import Backbone

__all__ = ["BACKBONES", "build_backbone"]

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
    options = options or {}
    if name == "clip-clap":
        from fusili_training.backbones.clip_clap import ClipClapOptions, build_clip_clap

        return build_clip_clap(read_table(ClipClapOptions, options, _PLACE))
    if name == "small":
        from fusili_training.backbones.small import SmallOptions, build_small

        return build_small(read_table(SmallOptions, options, _PLACE))
    raise InputError(f"unknown backbone {name!r}; expected one of {', '.join(BACKBONES)}")
