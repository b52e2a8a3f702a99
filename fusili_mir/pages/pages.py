"""Pages of a score: their images, and what lies where on them.

`render_pages` engraves a symbolic score, so every note head is known; `load_pages` reads scans, photographs and
PDFs and finds systems on them. Both return the same type, so later stages need not distinguish them.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, overload

import numpy as np
import partitura as pt

from fusili_mir.argument_kinds import checked
from fusili_mir.arrays import GreyImage, Table
from fusili_mir.boundary import reading
from fusili_mir.boxes import MEASURE_DTYPE, NOTE_DTYPE, STAFF_DTYPE, SYSTEM_DTYPE
from fusili_mir.errors import InputError
from fusili_mir.pages.bar_lines import BAR_LINE_DTYPE
from fusili_mir.pages.endings import ENDING_DTYPE
from fusili_mir.pages.engraving import EngravingOptions, engrave
from fusili_mir.pages.engraving_check import warn_of_disagreement
from fusili_mir.pages.key_signatures import read_key_signatures
from fusili_mir.pages.page_ranges import split_page_range
from fusili_mir.pages.page_signs import find_signs
from fusili_mir.pages.page_sources import (
    DeskewedPage,
    EngravedPage,
    ImageLike,
    PageSource,
    find_page_sources,
)
from fusili_mir.pages.raster import Rasteriser
from fusili_mir.pages.read_measures import read_measures
from fusili_mir.pages.skew import Skew, deskew_page, estimate_skew
from fusili_mir.pages.systems import find_systems
from fusili_mir.progress import progress_bar, stage
from fusili_mir.scores.loading import LoadedScore, ScoreSource, is_symbolic, load_score
from fusili_mir.scores.packed_score import PackedScore
from fusili_mir.scores.repeat_structure import RepeatStructure
from fusili_mir.scores.transpositions import read_transpositions
from fusili_mir.scores.unfolding import Unfold, unfold_score
from fusili_mir.scores.written_repeats import written_repeats

__all__ = ["PageImages", "Pages", "check_score", "load_pages", "open_pages", "render_pages"]

_N_CACHED_PAGES = 2


class PageImages(Sequence[GreyImage]):
    """The images of some pages, each made on request; the last few are cached."""

    def __init__(self, sources: Sequence[PageSource]) -> None:
        self._sources = tuple(sources)
        self._cache: OrderedDict[int, GreyImage] = OrderedDict()

    def __len__(self) -> int:
        return len(self._sources)

    def __repr__(self) -> str:
        return f"PageImages({_count(len(self), 'page')})"

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

    def source(self, page: int) -> PageSource:
        """Return the source of a page."""
        return self._sources[page]


def _empty(dtype: np.dtype[np.void]) -> Table:
    return np.empty(0, dtype)


@dataclass(frozen=True, repr=False)
class Pages:
    """The pages of a score.

    Attributes
    ----------
    filename : str
        Name of the file or folder of the score.
    images : PageImages
        Grey page images, uint8 [shape=(height, width)], made on request.
    systems, staves : np.ndarray of `SYSTEM_DTYPE`, `STAFF_DTYPE`
        Boxes in reading order.
    measures : np.ndarray of `MEASURE_DTYPE`
        Boxes in written order. On images they lie between the bar lines that were found, and are counted.
    notes : np.ndarray of `NOTE_DTYPE`
        Boxes for symbolic scores, empty for images. They are in page order; a head that sounds several times has
        one row per time.
    score : partitura.score.Score, optional
        The symbolic score, unfolded as requested; its note ids are the `id` of the notes. Join with
        ``score.note_array(unique_id_per_part=False)`` if it has several parts.
    skews : tuple of Skew
        Skew that was removed from each page of a scan; maps places to and from the original page.
    transpositions : dict from str to int
        Semitones from written to sounding pitch, of the heads (`notated_id`) that do not sound as written.
    score_file : PackedScore, optional
        The symbolic score as it was engraved, with the ids of `score`, for writers that go on from its notation.
    repeats : RepeatStructure, optional
        Repeats and endings of `measures`, as written or as read from the images.
    bar_lines : np.ndarray of `BAR_LINE_DTYPE`
        Bar lines that were found on images, empty for symbolic scores.
    """

    filename: str
    images: PageImages
    systems: Table
    staves: Table
    measures: Table = field(default_factory=lambda: _empty(MEASURE_DTYPE))
    notes: Table = field(default_factory=lambda: _empty(NOTE_DTYPE))
    score: pt.score.Score | None = None
    skews: tuple[Skew, ...] = ()
    transpositions: dict[str, int] = field(default_factory=dict)
    score_file: PackedScore | None = field(default=None, repr=False)
    repeats: RepeatStructure | None = None
    bar_lines: Table = field(default_factory=lambda: _empty(BAR_LINE_DTYPE))

    def __repr__(self) -> str:
        counts = [
            (len(self.images), "page", "pages"),
            (len(self.systems), "system", "systems"),
            (len(self.staves), "staff", "staves"),
            (len(self.measures), "measure", "measures"),
            (len(self.notes), "note head", "note heads"),
        ]
        found = ", ".join(
            f"{number} {one if number == 1 else many}" for number, one, many in counts if number
        )
        return f"Pages({self.filename!r}: {found})"


@checked
def render_pages(
    score: ScoreSource,
    options: EngravingOptions | None = None,
    unfold: Unfold = "none",
    rasteriser: Rasteriser = "auto",
) -> Pages:
    """Engrave a symbolic score.

    Parameters
    ----------
    score : str, Path, partitura.score.Score, Part, PartGroup, a list of parts, or ScoreFile
        A file: MusicXML, MXL, MEI, Humdrum kern, ABC, MIDI, a match file, or, if MuseScore is installed, what it
        reads. Or a score of partitura's, which is left unchanged. Note ids are those of `partitura.load_score`;
        see `fusili_mir.scores.note_ids`. A `ScoreFile` keeps the ids of its tree.
    options : EngravingOptions, optional
        Paper, staff size, font, breaks and resolution.
    unfold : "none", "maximal" or "minimal"
        How repeats are written out in `Pages.score` and in the note ids; the page images stay the same.
    rasteriser : "auto", "resvg" or "skia"
        Library that draws the page images; "auto" is skia if it is installed.

    Returns
    -------
    Pages
        The pages, with notes and measures.

    Warns
    -----
    ScoreWarning
        If something of the score is left out or named anew, if a note has no head, or if heads are far from their
        staff or out of order.
    """
    loaded = load_score(score)
    with reading(loaded.filename, "is it a complete score?"):
        return _render(loaded, options or EngravingOptions(), unfold, rasteriser)


def _render(loaded: LoadedScore, options: EngravingOptions, unfold: Unfold, rasteriser: Rasteriser) -> Pages:
    engraving = engrave(loaded.score_file, options)
    heads = [loaded.note_ids.get(head, "") for head in engraving.notes["notated_id"].tolist()]
    engraving.notes["notated_id"] = heads
    unfolded = unfold_score(loaded.score, unfold)
    row_of_head = {head: row for row, head in enumerate(heads) if head}
    played = [
        (note.id, row_of_head[head])
        for note in unfolded.notes
        for head in note.notated_ids
        if head in row_of_head
    ]
    if not played:
        raise InputError(
            f"{loaded.filename}: partitura found none of the engraved notes; "
            "is a part missing from the part list?"
        )
    warn_of_disagreement(loaded, engraving)
    played.sort(key=lambda id_and_row: id_and_row[1])
    notes = engraving.notes[[row for _, row in played]]
    notes["id"] = [note_id for note_id, _ in played]
    return Pages(
        filename=loaded.filename,
        images=PageImages([EngravedPage(svg, rasteriser, options.resolution_dpi) for svg in engraving.svgs]),
        systems=engraving.systems,
        staves=engraving.staves,
        measures=engraving.measures,
        notes=notes,
        score=unfolded.score,
        transpositions={
            loaded.note_ids[head]: semitones
            for head, semitones in read_transpositions(loaded.score_file).items()
            if head in loaded.note_ids
        },
        score_file=PackedScore.of(loaded.named_file()),
        repeats=written_repeats(loaded.score),
    )


@checked
def load_pages(
    images: ImageLike | Sequence[ImageLike],
    dpi: float = 200.0,
    deskew: bool = True,
    progress: bool = False,
    pages: str | None = None,
) -> Pages:
    """Load score images and find the systems on them.

    Parameters
    ----------
    images : str, Path, PIL.Image.Image, np.ndarray, or a sequence of them
        PNG, JPEG, TIFF (each of its images is a page), PDF, or folders of images; ``scan.pdf#3-7`` is a part of
        one. PIL images, and arrays of any type: grey, RGB or RGBA.
    dpi : float
        Resolution at which PDF pages are drawn.
    deskew : bool
        Whether to deskew pages that are turned by a few degrees. Boxes are then in pixels of the deskewed page;
        `Pages.skews` maps them to the original.
    progress : bool
        Whether to show a progress bar on a terminal.
    pages : str, optional
        Range of all these pages to use, such as "3-7" or "1,3-5", counted from 1; by default all.

    Returns
    -------
    Pages
        The pages, with the measures between bar lines, without notes. Pages without music, such as title pages,
        have no systems.
    """
    sources = find_page_sources(images, dpi, pages)
    deskewed: list[PageSource] = []
    skews: list[Skew] = []
    systems = [_empty(SYSTEM_DTYPE)]
    staves = [_empty(STAFF_DTYPE)]
    bar_lines = [_empty(BAR_LINE_DTYPE)]
    endings = [_empty(ENDING_DTYPE)]
    n_systems = 0
    for page, source in enumerate(progress_bar(sources, "finding systems", shown=progress)):
        image = source.read()
        skew = Skew(estimate_skew(image) if deskew else 0.0, image.shape[1], image.shape[0])
        straight = deskew_page(image, skew.angle_deg)
        layout = find_systems(straight)
        signs = find_signs(straight, layout)
        for boxes in (layout.systems, layout.staves, signs.bar_lines, signs.endings):
            boxes["page"] = page
            boxes["system"] += n_systems
        n_systems += len(layout.systems)
        systems.append(layout.systems)
        staves.append(layout.staves)
        bar_lines.append(signs.bar_lines)
        endings.append(signs.endings)
        deskewed.append(DeskewedPage(source, skew.angle_deg) if skew.angle_deg else source)
        skews.append(skew)
    name = sources[0].name
    if n_systems == 0:
        raise InputError(
            f"{name}: no staves were found on {_count(len(sources), 'page')}; expected pages of printed music "
            "with five-line staves, at 150 dpi or more"
        )
    found = Pages(
        filename=name,
        images=PageImages(deskewed),
        systems=np.concatenate(systems),
        staves=np.concatenate(staves),
        skews=tuple(skews),
        bar_lines=np.concatenate(bar_lines),
    )
    n_accidentals = int(np.abs(read_key_signatures(found, found.systems["system"][:1]))[0])
    read = read_measures(found.systems, found.bar_lines, np.concatenate(endings), n_accidentals)
    return replace(found, measures=read.measures, repeats=read.repeats)


@checked
def open_pages(
    score: Any,
    options: EngravingOptions | None = None,
    dpi: float = 200.0,
    progress: bool = False,
    pages: str | None = None,
) -> Pages:
    """Open any score: engrave it if it is symbolic, otherwise load its images.

    Parameters
    ----------
    score : str, Path, PIL.Image.Image, np.ndarray, a sequence of these, a symbolic score, or Pages
        Anything that `load_pages` or `render_pages` takes. Pages are returned unchanged.
    options : EngravingOptions, optional
        Layout of symbolic scores.
    dpi : float
        Resolution at which PDF pages are drawn.
    progress : bool
        Whether to show a progress bar on a terminal.
    pages : str, optional
        Range of pages to use, for images; see `load_pages`.

    Returns
    -------
    Pages
    """
    if isinstance(score, Pages):
        return score
    symbolic = _find_symbolic(score, pages)
    if symbolic is None:
        return load_pages(score, dpi, progress=progress, pages=pages)
    with stage("engraving", shown=progress):
        return render_pages(symbolic, options)


def check_score(score: Any, dpi: float = 200.0, pages: str | None = None) -> bool:
    """Check what can be checked of a score in no time, and return whether it is symbolic; see `open_pages`."""
    if isinstance(score, Pages):
        return score.score is not None
    if _find_symbolic(score, pages) is not None:
        return True
    find_page_sources(score, dpi, pages)
    return False


def _find_symbolic(score: Any, pages: str | None) -> Any:
    """Return the symbolic score that was given; None if images were given."""
    several = list(score) if isinstance(score, list | tuple) and not is_symbolic(score) else [score]
    symbolic = [each for each in several if _is_symbolic(each)]
    if not symbolic:
        return None
    if len(several) > 1:
        raise InputError(
            f"{symbolic[0]}: a symbolic score, given with {len(several) - 1} more; expected it alone, or "
            "several images"
        )
    if pages is not None or (_is_path(symbolic[0]) and split_page_range(symbolic[0])[1] is not None):
        raise InputError(
            f"{symbolic[0]}: a symbolic score, which has no pages to choose from; leave out the range of pages"
        )
    return symbolic[0]


def _is_path(score: Any) -> bool:
    return isinstance(score, str | os.PathLike)


def _is_symbolic(score: Any) -> bool:
    """Return whether a score is to be engraved: it is not a file of images, a folder or an image."""
    if _is_path(score):
        return is_symbolic(split_page_range(score)[0])
    return is_symbolic(score)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
