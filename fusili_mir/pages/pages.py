"""Pages of a score: their images, and what lies where on them.

`render_pages` makes them from a symbolic score, with every note head known; `load_pages` from scans, photographs
and PDFs, on which systems are found. Both give the same type, so that whatever comes after need not ask.
"""

from __future__ import annotations

import io
import tempfile
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import overload

import numpy as np
import partitura as pt
import verovio

from fusili_mir.arrays import GreyImage, Table
from fusili_mir.boxes import MEASURE_DTYPE, NOTE_DTYPE, STAFF_DTYPE, SYSTEM_DTYPE
from fusili_mir.errors import InputError
from fusili_mir.pages.engraving import EngravingOptions, engrave
from fusili_mir.pages.page_sources import DeskewedPage, EngravedPage, PageSource, find_page_sources
from fusili_mir.pages.raster import Rasteriser
from fusili_mir.pages.skew import Skew, deskew_page, estimate_skew
from fusili_mir.pages.systems import find_systems
from fusili_mir.progress import progress_bar
from fusili_mir.scores.repeat_signs import share_repeat_signs
from fusili_mir.scores.score_file import ScoreFile, is_score_file, read_score_file
from fusili_mir.scores.unfolding import Unfold, unfold_score

__all__ = ["PageImages", "Pages", "load_pages", "open_pages", "render_pages"]

_N_CACHED_PAGES = 2


class PageImages(Sequence[GreyImage]):
    """The images of some pages, each made when it is asked for; the last few are kept."""

    def __init__(self, sources: Sequence[PageSource]) -> None:
        self._sources = tuple(sources)
        self._cache: OrderedDict[int, GreyImage] = OrderedDict()

    def __len__(self) -> int:
        return len(self._sources)

    @overload
    def __getitem__(self, page: int) -> GreyImage: ...
    @overload
    def __getitem__(self, page: slice) -> PageImages: ...
    def __getitem__(self, page: int | slice) -> GreyImage | PageImages:
        if isinstance(page, slice):
            return PageImages(self._sources[page])
        page = range(len(self))[page]
        if page not in self._cache:
            self._cache[page] = self._sources[page].read()
            if len(self._cache) > _N_CACHED_PAGES:
                self._cache.popitem(last=False)
        return self._cache[page]


def _empty(dtype: np.dtype[np.void]) -> Table:
    return np.empty(0, dtype)


@dataclass(frozen=True)
class Pages:
    """The pages of a score.

    Attributes
    ----------
    filename : str
        Where the score came from.
    images : PageImages
        Grey page images, uint8 [shape=(height, width)], made when they are asked for.
    systems, staves : np.ndarray of `SYSTEM_DTYPE`, `STAFF_DTYPE`
        In reading order.
    measures, notes : np.ndarray of `MEASURE_DTYPE`, `NOTE_DTYPE`
        Known for symbolic scores, empty for images. Notes stand in the order of the page; a head that sounds
        several times has a row for each.
    score : partitura.score.Score, optional
        The symbolic score, unfolded as asked for; its ids are the `id` of the notes.
    skews : tuple of Skew
        Skew that was removed from each page of a scan; maps places to and from the original page.
    """

    filename: str
    images: PageImages
    systems: Table
    staves: Table
    measures: Table = field(default_factory=lambda: _empty(MEASURE_DTYPE))
    notes: Table = field(default_factory=lambda: _empty(NOTE_DTYPE))
    score: pt.score.Score | None = None
    skews: tuple[Skew, ...] = ()


def render_pages(
    filename: str | Path | ScoreFile,
    options: EngravingOptions | None = None,
    unfold: Unfold = "none",
    rasteriser: Rasteriser = "auto",
) -> Pages:
    """Engrave a symbolic score.

    Parameters
    ----------
    filename : str, Path or ScoreFile
        MusicXML, MXL or MEI.
    options : EngravingOptions, optional
        Paper, staff size, font, breaks and resolution.
    unfold : "none", "maximal" or "minimal"
        How repeats are written out in `Pages.score` and in the notes' ids; the pages look the same.
    rasteriser : "auto", "resvg" or "skia"
        What draws the page images.

    Returns
    -------
    Pages
        With notes and measures.
    """
    score_file = filename if isinstance(filename, ScoreFile) else read_score_file(filename)
    engraving = engrave(score_file, options)
    unfolded = unfold_score(_load_with_partitura(score_file), unfold)
    row_of_head = {head: row for row, head in enumerate(engraving.notes["notated_id"].tolist())}
    played = [
        (note.id, row_of_head[head])
        for note in unfolded.notes
        for head in note.notated_ids
        if head in row_of_head
    ]
    if not played:
        raise InputError(
            f"{score_file.filename}: partitura found none of the engraved notes; is a part not listed?"
        )
    played.sort(key=lambda id_and_row: id_and_row[1])
    notes = engraving.notes[[row for _, row in played]]
    notes["id"] = [note_id for note_id, _ in played]
    return Pages(
        filename=score_file.filename,
        images=PageImages([EngravedPage(svg, rasteriser) for svg in engraving.svgs]),
        systems=engraving.systems,
        staves=engraving.staves,
        measures=engraving.measures,
        notes=notes,
        score=unfolded.score,
    )


def load_pages(
    filenames: str | Path | Sequence[str | Path],
    dpi: float = 200.0,
    deskew: bool = True,
    progress: bool = False,
) -> Pages:
    """Load score images and find the systems on them.

    Parameters
    ----------
    filenames : str, Path or a sequence of them
        PNG, JPEG, TIFF (its images are pages), PDF, or folders of images.
    dpi : float
        Resolution at which PDF pages are drawn.
    deskew : bool
        Whether to deskew pages that are turned by a few degrees. Boxes are then in pixels of the deskewed page;
        `Pages.skews` maps them to the original.
    progress : bool
        Whether to show a bar on a terminal.

    Returns
    -------
    Pages
        Without notes and measures. Pages without music, such as titles, have no systems.
    """
    sources = find_page_sources(filenames, dpi)
    deskewed: list[PageSource] = []
    skews: list[Skew] = []
    systems = [_empty(SYSTEM_DTYPE)]
    staves = [_empty(STAFF_DTYPE)]
    n_systems = 0
    for page, source in enumerate(progress_bar(sources, "finding systems", shown=progress)):
        image = source.read()
        skew = Skew(estimate_skew(image) if deskew else 0.0, image.shape[1], image.shape[0])
        layout = find_systems(deskew_page(image, skew.angle_deg))
        for boxes in (layout.systems, layout.staves):
            boxes["page"] = page
            boxes["system"] += n_systems
        n_systems += len(layout.systems)
        systems.append(layout.systems)
        staves.append(layout.staves)
        deskewed.append(DeskewedPage(source, skew.angle_deg) if skew.angle_deg else source)
        skews.append(skew)
    name = str(sources[0].filename)
    if n_systems == 0:
        raise InputError(
            f"{name}: no staves were found on {_count(len(sources), 'page')}; expected pages of printed music "
            "with five-line staves, at 150 dpi or more"
        )
    return Pages(
        filename=name,
        images=PageImages(deskewed),
        systems=np.concatenate(systems),
        staves=np.concatenate(staves),
        skews=tuple(skews),
    )


def open_pages(
    filename: str | Path,
    options: EngravingOptions | None = None,
    dpi: float = 200.0,
    progress: bool = False,
) -> Pages:
    """Open any score: engrave it when it is symbolic, load its images when it is not.

    Parameters
    ----------
    filename : str or Path
        MusicXML, MXL, MEI, PNG, JPEG, TIFF, PDF, or a folder of images.
    options : EngravingOptions, optional
        For symbolic scores.
    dpi : float
        For PDFs.
    progress : bool
        Whether to show a bar on a terminal.

    Returns
    -------
    Pages
    """
    if is_score_file(filename):
        return render_pages(filename, options)
    return load_pages(filename, dpi, progress=progress)


def _load_with_partitura(score_file: ScoreFile) -> pt.score.Score:
    """Read score time from the same copy of the file that Verovio engraves, and make sure that it can be used."""
    try:
        if score_file.kind == "musicxml":
            score = pt.load_musicxml(io.BytesIO(score_file.to_bytes()), quiet=True)
        else:
            verovio.enableLog(verovio.LOG_OFF)  # partitura reads MEI with it, and it talks
            with tempfile.TemporaryDirectory() as folder:
                copy = Path(folder) / "score.mei"
                copy.write_bytes(score_file.to_bytes())
                score = pt.load_mei(copy, quiet=True)
        share_repeat_signs(score)
        for part in score.parts:
            part.note_array()
    except Exception as error:  # partitura raises whatever its parsing trips over
        raise InputError(
            f"{score_file.filename}: partitura cannot read it ({type(error).__name__}: {error}); "
            "is it a complete score?"
        ) from error
    return score


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
