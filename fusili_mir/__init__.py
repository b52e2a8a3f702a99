"""Bring score images and recordings together: which spot on which page sounds at which second.

    import fusili_mir as fm
    performance, alignment, score = fm.align_score("piece.musicxml", "recording.wav")  # partitura's types
    frames = fm.align_pages(fm.load_pages("scan.pdf"), "recording.wav")  # images alone

Names are loaded when they are first used, so that importing the package costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from fusili_mir.aligned import Alignment
    from fusili_mir.alignment import (
        AlignmentWarning,
        align_encoded,
        align_pages,
        align_recording,
        align_score,
    )
    from fusili_mir.alignment_files import save_alignment
    from fusili_mir.bundle import Bundle, default_bundle, load_bundle
    from fusili_mir.encoded import EncodedAudio, EncodedScore
    from fusili_mir.encoder import Encoder, encode_pages, encode_recording
    from fusili_mir.engraving import EngravingOptions
    from fusili_mir.errors import FusiliError, InputError, MissingExtraError, OutputError
    from fusili_mir.geometry import FrameGrid, PatchGrid
    from fusili_mir.overlay import draw_overlay
    from fusili_mir.page_files import save_pages
    from fusili_mir.pages import Pages, load_pages, open_pages, render_pages
    from fusili_mir.performance import anchors_from_alignment, performance_from_alignment
    from fusili_mir.position_maps import PositionMaps, get_position_maps
    from fusili_mir.recording import AudioFile, AudioSamples
    from fusili_mir.retrieval import Moment, Spot, point_at_spot, point_at_time
    from fusili_mir.score_axis import ScoreAxis
    from fusili_mir.segments import Segment, cut_segment, staff_strips, system_strip
    from fusili_mir.similarity import column_similarity, frame_similarity

__all__ = [
    "Alignment",
    "AlignmentWarning",
    "AudioFile",
    "AudioSamples",
    "Bundle",
    "EncodedAudio",
    "EncodedScore",
    "Encoder",
    "EngravingOptions",
    "FrameGrid",
    "FusiliError",
    "InputError",
    "MissingExtraError",
    "Moment",
    "OutputError",
    "Pages",
    "PatchGrid",
    "PositionMaps",
    "ScoreAxis",
    "Segment",
    "Spot",
    "align_encoded",
    "align_pages",
    "align_recording",
    "align_score",
    "anchors_from_alignment",
    "column_similarity",
    "cut_segment",
    "default_bundle",
    "draw_overlay",
    "encode_pages",
    "encode_recording",
    "frame_similarity",
    "get_position_maps",
    "load_bundle",
    "load_pages",
    "open_pages",
    "performance_from_alignment",
    "point_at_spot",
    "point_at_time",
    "render_pages",
    "save_alignment",
    "save_pages",
    "staff_strips",
    "system_strip",
]

_MODULES = {
    "aligned": ("Alignment",),
    "alignment": ("AlignmentWarning", "align_encoded", "align_pages", "align_recording", "align_score"),
    "alignment_files": ("save_alignment",),
    "bundle": ("Bundle", "default_bundle", "load_bundle"),
    "encoded": ("EncodedAudio", "EncodedScore"),
    "encoder": ("Encoder", "encode_pages", "encode_recording"),
    "engraving": ("EngravingOptions",),
    "errors": ("FusiliError", "InputError", "MissingExtraError", "OutputError"),
    "geometry": ("FrameGrid", "PatchGrid"),
    "overlay": ("draw_overlay",),
    "page_files": ("save_pages",),
    "pages": ("Pages", "load_pages", "open_pages", "render_pages"),
    "performance": ("anchors_from_alignment", "performance_from_alignment"),
    "position_maps": ("PositionMaps", "get_position_maps"),
    "recording": ("AudioFile", "AudioSamples"),
    "retrieval": ("Moment", "Spot", "point_at_spot", "point_at_time"),
    "score_axis": ("ScoreAxis",),
    "segments": ("Segment", "cut_segment", "staff_strips", "system_strip"),
    "similarity": ("column_similarity", "frame_similarity"),
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'fusili_mir' has no attribute {name!r}")
    return getattr(import_module(f"fusili_mir.{_MODULE_OF[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
