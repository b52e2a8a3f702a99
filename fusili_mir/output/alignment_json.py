"""Everything about an alignment in one JSON file, for viewers and other programming languages.

`alignment.schema.json` beside this module describes the file (JSON Schema, draft 2020-12).
"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from fusili_mir import __version__
from fusili_mir.alignment.results import Alignment
from fusili_mir.arrays import Table
from fusili_mir.boundary import file_name
from fusili_mir.output.json_tables import json_columns
from fusili_mir.pages.original_pages import original_size_px, page_origin
from fusili_mir.pages.original_pixels import box_corners_in_original, boxes_to_original
from fusili_mir.pages.pages import Pages

__all__ = ["ALIGNMENT_FORMAT", "alignment_schema", "alignment_to_json", "save_alignment_json"]

ALIGNMENT_FORMAT = 2
"""Version of `alignment.json`; raised whenever a reader of the old format would go wrong."""


def save_alignment_json(alignment: Alignment, filename: str | Path) -> None:
    """Write an alignment as JSON; see `alignment_to_json`."""
    content = json.dumps(
        alignment_to_json(alignment), ensure_ascii=False, separators=(",", ":"), allow_nan=False
    )
    Path(filename).write_text(content, encoding="utf-8")


def alignment_schema() -> dict[str, Any]:
    """Return the JSON Schema of `alignment.json`."""
    text = Path(__file__).with_name("alignment.schema.json").read_text(encoding="utf-8")
    schema: dict[str, Any] = json.loads(text)
    return schema


def alignment_to_json(alignment: Alignment) -> dict[str, Any]:
    """Return an alignment as values that JSON can represent.

    Parameters
    ----------
    alignment : Alignment

    Returns
    -------
    dict
        Tables (`systems`, `notes`, `measures`, `frames`) are dicts of columns, all of the same length, with
        places in pixels of the original pages. Unknown values, such as the times of notes that were not heard,
        are null.
    """
    pages, made_with = alignment.pages, alignment.made_with
    return {
        "format": ALIGNMENT_FORMAT,
        "made_by": f"fusili-mir {__version__}",
        "versions": {} if made_with is None else made_with.versions,
        "score": {
            "name": file_name(pages.filename),
            "kind": "images" if pages.score is None else "symbolic",
            "files": [] if made_with is None else [asdict(file) for file in made_with.score],
        },
        "recording": {
            "name": None if made_with is None else made_with.recording.name,
            "sha256": None if made_with is None else made_with.recording.sha256,
            "sample_rate_hz": None if made_with is None else made_with.sample_rate_hz,
            "duration_sec": round(alignment.grid.end_sec, 6),
        },
        "model": None if made_with is None else asdict(made_with.model),
        "options": None if made_with is None else made_with.options,
        "unfold": alignment.repeats,
        "unfold_probability": round(alignment.unfold_probability, 4),
        "reliability": round(alignment.reliability, 4),
        "is_reliable": bool(alignment.is_reliable),
        "pitch": None if alignment.pitch is None else alignment.pitch.to_json(),
        "start_sec": alignment.grid.start_sec,
        "frame_sec": alignment.grid.frame_sec,
        "pages": [_page(pages, page) for page in range(len(pages.images))],
        "systems": _systems(pages),
        "measures": json_columns(alignment.measures),
        "notes": json_columns(alignment.notes),
        "frames": json_columns(alignment.frames),
    }


def _page(pages: Pages, page: int) -> dict[str, Any]:
    origin = page_origin(pages, page)
    width_px, height_px = original_size_px(pages, page)
    return {
        "file": None if origin.filename is None else file_name(origin.filename),
        "index": origin.index,
        "width_px": width_px,
        "height_px": height_px,
        "dpi": None if origin.dpi is None else round(origin.dpi, 2),
        "skew_deg": round(pages.skews[page].angle_deg, 4) if pages.skews else 0.0,
    }


def _systems(pages: Pages) -> dict[str, Any]:
    """Return the systems as columns; `corners` follow the tilt of the page, the boxes do not."""
    systems: Table = boxes_to_original(pages.skews, pages.systems)
    corners = box_corners_in_original(pages.skews, pages.systems)
    return {**json_columns(systems), "corners": np.round(corners, 2).tolist()}
