"""Drawing pages of PDFs in a separate process.

A hostile PDF can make PDFium take all memory, crash or never end. In a process of its own, with limits, such a
file is refused, and the next one gets a new process.
"""

from __future__ import annotations

import atexit
import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fusili_mir.boundary import printable
from fusili_mir.errors import InputError, option
from fusili_mir.limits import limit
from fusili_mir.pages.page_size import check_page_size
from fusili_mir.worker_process import WorkerProcess

__all__ = ["count_pdf_pages", "draw_pdf_page"]

_POINTS_PER_INCH = 72


def count_pdf_pages(filename: Path) -> int:
    """Return how many pages a PDF has."""
    answer, _ = _ask(filename, {"index": None})
    if not answer["n_pages"]:
        raise InputError(f"{printable(filename)}: the PDF is damaged or has no pages")
    return int(answer["n_pages"])


def draw_pdf_page(filename: Path, index: int, dpi: float, grey: bool) -> npt.NDArray[np.uint8]:
    """Draw a page of a PDF.

    Parameters
    ----------
    filename : Path
    index : int
        Number of the page, from 0.
    dpi : float
    grey : bool
        Grey in place of colours.

    Returns
    -------
    np.ndarray [shape=(height, width) if grey, else (height, width, 3)], uint8
    """
    request = {
        "index": index,
        "scale": dpi / _POINTS_PER_INCH,
        "grey": grey,
        "most_px": limit("pixels"),
        "most_side_px": limit("side_px"),
    }
    answer, pixels = _ask(filename, request)
    height_px, width_px, channels = answer["height_px"], answer["width_px"], answer["channels"]
    rows = np.frombuffer(pixels, np.uint8).reshape(height_px, answer["stride"])
    image = rows[:, : width_px * channels].reshape(height_px, width_px, channels)
    return np.ascontiguousarray(image[:, :, 0] if grey else image)


def _ask(filename: Path, request: dict[str, Any]) -> tuple[dict[str, Any], bytes]:
    time_limit_sec = limit("pdfium_sec")
    name, page = printable(filename), (request["index"] or 0) + 1
    full = {"filename": str(filename.absolute()), "time_limit_sec": time_limit_sec + 1, **request}
    with _WORKER.lock:
        got = _WORKER.ask_for_bytes(json.dumps(full), time_limit_sec)
    if got is None:
        if request["index"] is None:
            raise InputError(
                f"{name}: PDFium {_WORKER.ending}; the PDF may be damaged: give its pages as images"
            )
        raise InputError(
            f"{name}: PDFium {_WORKER.ending} on page {page}; leave that page out "
            f"({option('--pages', 'pages')}), or give it as an image"
        )
    answer: dict[str, Any] = json.loads(got[0])
    problem = answer.get("error")
    if problem == "encrypted":
        raise InputError(f"{name}: the PDF is encrypted; save a copy without a password")
    if problem == "size":
        check_page_size(name, answer["width_px"], answer["height_px"], "lower the dpi")
    if problem == "unreadable" or (problem and request["index"] is None):
        raise InputError(f"{name}: the PDF is damaged or has no pages")
    if problem:
        way_out = f"leave it out ({option('--pages', 'pages')})"
        raise InputError(f"{name}: page {page} of the PDF is damaged; {way_out}")
    return answer, got[1]


_WORKER = WorkerProcess("fusili_mir.pages.pdf_worker", most_bytes=lambda: limit("worker_bytes"))
atexit.register(_WORKER.stop)
