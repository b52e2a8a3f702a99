"""Writing pages to a folder: images, overlays, and `pages.json` with all boxes.

The images are the deskewed pages on which everything was found. Boxes are in their pixels; the corners of each
box are also given in pixels of the original page, where they follow its tilt.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from fusili_mir import __version__
from fusili_mir.argument_kinds import checked
from fusili_mir.arrays import Table
from fusili_mir.boundary import file_name
from fusili_mir.output.json_tables import json_rows
from fusili_mir.output.page_overlay import draw_overlay
from fusili_mir.pages.original_pages import page_origin
from fusili_mir.pages.original_pixels import box_corners_in_original
from fusili_mir.pages.pages import Pages
from fusili_mir.progress import progress_bar
from fusili_mir.staging import staged_folder

__all__ = ["PAGES_FORMAT", "save_pages", "write_pages"]

PAGES_FORMAT = 1
"""Version of `pages.json`; raised whenever a reader of the old format would go wrong."""

_PIXELS = {
    "x, x0, y0, x1, y1, space_px": "pixels of the deskewed page, as in image and overlay",
    "corners": "pixels of the original page: top left, top right, bottom right, bottom left",
}


@checked
def save_pages(pages: Pages, out: str | Path, force: bool = False, progress: bool = False) -> None:
    """Write `page-001.png`, `overlay-001.png`, ... and `pages.json` into a folder.

    Parameters
    ----------
    pages : Pages
    out : str or Path
        The folder.
    force : bool
        Whether files in it may be replaced.
    progress : bool
        Whether to show a progress bar on a terminal.
    """
    with staged_folder(out, force) as folder:
        write_pages(pages, folder, progress)


def write_pages(pages: Pages, folder: Path, progress: bool = False) -> None:
    """Write the files of `save_pages` into a folder that is there."""
    described = []
    for page in progress_bar(range(len(pages.images)), "writing pages", shown=progress):
        image = pages.images[page]
        names = {"image": f"page-{page + 1:03d}.png", "overlay": f"overlay-{page + 1:03d}.png"}
        Image.fromarray(image).save(folder / names["image"])
        draw_overlay(pages, page).save(folder / names["overlay"])
        origin = page_origin(pages, page)
        described.append(
            {
                **names,
                "width_px": image.shape[1],
                "height_px": image.shape[0],
                "skew_deg": pages.skews[page].angle_deg if pages.skews else 0.0,
                "file": None if origin.filename is None else file_name(origin.filename),
                "index": origin.index,
                "dpi": origin.dpi,
            }
        )
    content = {
        "format": PAGES_FORMAT,
        "made_by": f"fusili-mir {__version__}",
        "score": file_name(pages.filename),
        "pixels": _PIXELS,
        "pages": described,
        **{name: _rows(pages, getattr(pages, name)) for name in ("systems", "staves", "measures", "notes")},
        "bar_lines": json_rows(pages.bar_lines),
        "repeats": None if pages.repeats is None else asdict(pages.repeats),
    }
    (folder / "pages.json").write_text(_json(content), encoding="utf-8")


def _rows(pages: Pages, boxes: Table) -> list[dict[str, Any]]:
    corners = np.round(box_corners_in_original(pages.skews, boxes), 2).tolist()
    return [{**row, "corners": at} for row, at in zip(json_rows(boxes), corners, strict=True)]


def _json(content: dict[str, Any]) -> str:
    """Return JSON with one line per page, system, staff, measure and note."""
    entries = []
    for name, value in content.items():
        text = json.dumps(value, ensure_ascii=False)
        if isinstance(value, list) and value:
            rows = ",\n  ".join(json.dumps(row, ensure_ascii=False) for row in value)
            text = f"[\n  {rows}\n ]"
        entries.append(f" {json.dumps(name)}: {text}")
    return "{\n" + ",\n".join(entries) + "\n}\n"
