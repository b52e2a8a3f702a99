"""Opening a score for what can be seen on it, where nobody asks which note is which."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from fusili_mir.pages.engraving import EngravingOptions, engrave
from fusili_mir.pages.page_sources import EngravedPage
from fusili_mir.pages.pages import PageImages, Pages, open_pages
from fusili_mir.scores.score_file import read_score_file
from fusili_mir.scores.score_formats import score_format

__all__ = ["open_seen_pages"]


def open_seen_pages(score: Any) -> Pages:
    """Open a score as `open_pages` does, but for its notes and repeats, if it can be engraved as it is.

    MusicXML and MEI can. partitura need not read them then, which takes as long as all the rest.
    """
    if not isinstance(score, str | os.PathLike) or score_format(score) != "xml":
        return open_pages(score)
    options = EngravingOptions()
    engraving = engrave(read_score_file(Path(score)), options)
    if not len(engraving.notes):
        return open_pages(score)  # says what is wrong
    return Pages(
        filename=str(score),
        images=PageImages([EngravedPage(svg, "auto", options.resolution_dpi) for svg in engraving.svgs]),
        systems=engraving.systems,
        staves=engraving.staves,
        measures=engraving.measures,
    )
