"""Sizes of layers, checked before any layer is built: torch would say why a size fails only deep inside."""

from __future__ import annotations

from collections.abc import Sequence

from fusili_mir.errors import InputError
from fusili_mir.limits import check_limit

__all__ = ["check_number", "check_sizes"]

_PLACE = "model.backbone_options"  # where a recipe has them


def check_sizes(name: str, sizes: int | Sequence[int], limit_name: str = "layer_width") -> None:
    """Refuse sizes below 1, and above the limit of this name."""
    several = [sizes] if isinstance(sizes, int) else list(sizes)
    check_limit("layers", len(several), f"{_PLACE}.{name}")
    for size in several:
        if size < 1:
            raise InputError(f"{_PLACE}.{name} is {sizes}; expected whole numbers of at least 1")
        check_limit(limit_name, size, f"{_PLACE}.{name}")


def check_number(name: str, value: float, least: float, most: float) -> None:
    """Refuse a number outside a range, and what is no number."""
    if not least <= value <= most:
        raise InputError(f"{_PLACE}.{name} is {value}; expected {least:g} to {most:g}")
