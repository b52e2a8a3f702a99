"""Writing pages to a folder: images, overlays, and `pages.json` with all boxes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from PIL import Image

from fusili_mir import __version__
from fusili_mir.arrays import Table
from fusili_mir.output.page_overlay import draw_overlay
from fusili_mir.pages.pages import Pages
from fusili_mir.progress import progress_bar
from fusili_mir.staging import staged_folder

__all__ = ["PAGES_FORMAT", "save_pages"]

PAGES_FORMAT = 1
"""Version of `pages.json`; raised whenever a reader of the old format would go wrong."""


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
        described = []
        for page in progress_bar(range(len(pages.images)), "writing pages", shown=progress):
            image = pages.images[page]
            names = {"image": f"page-{page + 1:03d}.png", "overlay": f"overlay-{page + 1:03d}.png"}
            Image.fromarray(image).save(folder / names["image"])
            draw_overlay(pages, page).save(folder / names["overlay"])
            skew_deg = pages.skews[page].angle_deg if pages.skews else 0.0
            described.append(
                {**names, "width_px": image.shape[1], "height_px": image.shape[0], "skew_deg": skew_deg}
            )
        content = {
            "format": PAGES_FORMAT,
            "made_by": f"fusili-mir {__version__}",
            "score": Path(pages.filename).name,
            "pages": described,
            **{name: _rows(getattr(pages, name)) for name in ("systems", "staves", "measures", "notes")},
        }
        (folder / "pages.json").write_text(
            json.dumps(content, indent=1, ensure_ascii=False), encoding="utf-8"
        )


def _rows(boxes: Table) -> list[dict[str, Any]]:
    names = boxes.dtype.names or ()
    return [
        {
            name: round(value, 3) if isinstance(value, float) else value
            for name, value in zip(names, row, strict=True)
        }
        for row in boxes.tolist()
    ]
