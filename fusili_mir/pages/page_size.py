"""How large a page may be, checked before it is drawn or decoded."""

from __future__ import annotations

from fusili_mir.errors import InputError
from fusili_mir.limits import LIMITS_VARIABLE, check_limit, limit

__all__ = ["check_page_size"]


def check_page_size(
    name: str,
    width_px: int,
    height_px: int,
    way_out: str = "scan it at 300 dpi, scale it down or lower the dpi",
) -> None:
    """Refuse a page with too many pixels, or with a side that no page has."""
    if width_px * height_px > limit("pixels"):
        raise InputError(
            f"{name}: a page of {width_px} x {height_px} pixels, expected at most {limit('pixels') / 1e6:g} "
            f"million; {way_out}, or set {LIMITS_VARIABLE}=pixels={width_px * height_px}"
        )
    check_limit("side_px", max(width_px, height_px), name, way_out)
