"""An alignment as HTML, for notebooks: the viewer or, without a recording, a page with its seconds."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterable, Sequence
from html import escape

import numpy as np
from PIL import Image

from fusili_mir.alignment.results import Alignment
from fusili_mir.output.time_overlay import draw_times
from fusili_mir.viewer.view_data import view_result
from fusili_mir.viewer.view_page import view_html

__all__ = ["alignment_html"]

_WIDTH_PX = 760
_N_COLOURS = 24  # of the page: ink, paper, and the colours of the overlay
_N_ROWS = 8
_MOST_CHARACTERS = 8_000_000  # of a viewer in a notebook, which keeps it


def alignment_html(alignment: Alignment) -> str:
    """Show an alignment.

    Parameters
    ----------
    alignment : Alignment

    Returns
    -------
    str
        Its summary and the viewer, in a frame that cannot reach the notebook. If the recording is not known, or
        the page would be large: HTML without scripts, with the first page that is played, with its seconds, and
        the first measures, or with images alone the first systems. What comes from files is escaped.
    """
    summary = "<br>".join(escape(line) for line in repr(alignment).splitlines())
    if alignment.recording is not None:
        page_html = view_html([view_result(alignment)])
        if len(page_html) <= _MOST_CHARACTERS:
            return f"<div><p>{summary}</p>{_frame(page_html)}</div>"
    page = int(alignment.frames["page"][0])
    picture = (
        f'<img alt="page {page + 1} with the seconds of the recording" style="max-width:100%" '
        f'src="data:image/png;base64,{_png(draw_times(alignment, page))}">'
    )
    return f"<div><p>{summary}</p>{picture}{_table(alignment)}</div>"


def _frame(page_html: str) -> str:
    return (
        '<iframe title="score and recording" sandbox="allow-scripts allow-downloads" '
        'style="width:100%;height:720px;border:1px solid #8884;border-radius:6px" '
        f'srcdoc="{escape(page_html)}"></iframe>'
    )


def _png(image: Image.Image) -> str:
    """Return an image in few colours and at most `_WIDTH_PX` wide, as base64."""
    if image.width > _WIDTH_PX:
        size = (_WIDTH_PX, round(image.height * _WIDTH_PX / image.width))
        image = image.resize(size, Image.Resampling.LANCZOS)
    stream = io.BytesIO()
    image.convert("RGB").quantize(_N_COLOURS, dither=Image.Dither.NONE).save(stream, "PNG", optimize=True)
    return base64.b64encode(stream.getvalue()).decode("ascii")


def _table(alignment: Alignment) -> str:
    if len(alignment.measures):
        heard = alignment.measures[np.isfinite(alignment.measures["start_sec"])]
        rows = [
            (row["number"], f"{row['start_sec']:.2f}", f"{row['end_sec']:.2f}", f"{row['confidence']:.2f}")
            for row in heard[:_N_ROWS]
        ]
        return _rows(("measure", "start (s)", "end (s)", "confidence"), rows, len(heard) - len(rows))
    frames = alignment.frames
    first = np.flatnonzero(np.diff(frames["system"], prepend=-1) != 0)
    systems = [
        (
            str(frames["page"][frame] + 1),
            str(frames["system"][frame] + 1),
            f"{frames['onset_sec'][frame]:.2f}",
        )
        for frame in first[:_N_ROWS]
    ]
    return _rows(("page", "system", "from (s)"), systems, len(first) - len(systems))


def _rows(header: Sequence[str], rows: Iterable[Sequence[object]], n_more: int) -> str:
    def line(cells: Sequence[object], tag: str) -> str:
        return "<tr>" + "".join(f"<{tag}>{escape(str(cell))}</{tag}>" for cell in cells) + "</tr>"

    body = "".join(line(row, "td") for row in rows)
    more = f"<p>and {n_more} more</p>" if n_more > 0 else ""
    return f"<table>{line(header, 'th')}{body}</table>{more}"
