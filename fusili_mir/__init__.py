"""Bring score images and recordings together: which spot on which page sounds at which second.

    import fusili_mir as fm
    pages = fm.load_pages("scan.pdf")  # or fm.render_pages("piece.musicxml"), whose notes are known

Names are loaded when they are first used, so that importing the package costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from fusili_mir.engraving import EngravingOptions
    from fusili_mir.errors import FusiliError, InputError, MissingExtraError, OutputError
    from fusili_mir.geometry import FrameGrid, PatchGrid
    from fusili_mir.overlay import draw_overlay
    from fusili_mir.page_files import save_pages
    from fusili_mir.pages import Pages, load_pages, open_pages, render_pages
    from fusili_mir.segments import Segment, cut_segment, staff_strips, system_strip

__all__ = [
    "EngravingOptions",
    "FrameGrid",
    "FusiliError",
    "InputError",
    "MissingExtraError",
    "OutputError",
    "Pages",
    "PatchGrid",
    "Segment",
    "cut_segment",
    "draw_overlay",
    "load_pages",
    "open_pages",
    "render_pages",
    "save_pages",
    "staff_strips",
    "system_strip",
]

_MODULES = {
    "engraving": ("EngravingOptions",),
    "errors": ("FusiliError", "InputError", "MissingExtraError", "OutputError"),
    "geometry": ("FrameGrid", "PatchGrid"),
    "overlay": ("draw_overlay",),
    "page_files": ("save_pages",),
    "pages": ("Pages", "load_pages", "open_pages", "render_pages"),
    "segments": ("Segment", "cut_segment", "staff_strips", "system_strip"),
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'fusili_mir' has no attribute {name!r}")
    return getattr(import_module(f"fusili_mir.{_MODULE_OF[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
