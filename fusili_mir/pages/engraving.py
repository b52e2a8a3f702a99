"""Engraving a symbolic score with Verovio: pages as SVG, and where everything lies on them.

Verovio provides the geometry only. Score time comes from partitura, which reads the same copy of the file.

Verovio measures a page in tenths of a millimetre and draws on it in hundredths.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

from lxml import etree

from fusili_mir.argument_kinds import checked
from fusili_mir.arrays import Table
from fusili_mir.errors import InputError
from fusili_mir.pages.svg_layout import SvgLayout
from fusili_mir.scores.score_file import ScoreFile
from fusili_mir.scores.verovio_process import render_excerpts, render_svgs
from fusili_mir.short_repr import short_repr

__all__ = ["Engraving", "EngravingOptions", "MusicFont", "engrave", "engrave_excerpts"]

MusicFont: TypeAlias = Literal["Leipzig", "Bravura", "Gootville", "Leland", "Petaluma"]
Breaks: TypeAlias = Literal["auto", "smart", "line", "encoded", "none"]

_SVG = "{http://www.w3.org/2000/svg}"
_UNITS_PER_MM = 10
_DRAWING_UNITS_PER_MM = 100
_MM_PER_INCH = 25.4


@checked
@dataclass(frozen=True)
class EngravingOptions:
    """How a symbolic score is laid out on pages.

    Attributes
    ----------
    page_width_mm, page_height_mm, margin_mm : float
        Size of the paper, and of the margin around the music.
    staff_height_mm : float
        Distance from the bottom to the top line of a staff, 3.6 to 9.6. Printed piano music has about 7.
    breaks : str
        Where systems and pages end: "auto" as they fit; "smart", "line" and "encoded" with the breaks of the
        file; "none" for one endless system (the page grows to fit it).
    font : str
        Music font.
    spacing_linear, spacing_nonlinear : float
        Verovio's horizontal spacing of notes, 0 to 1.
    spacing_staff, spacing_system : int
        Minimum distance between staves and between systems, in half staff spaces.
    header, footer : bool
        Whether to print title and composer, and the page footer.
    staff_space_px : float, optional
        Resolution as the distance between two staff lines in pixels; 10 if neither this nor `dpi` is given.
    dpi : float, optional
        Resolution in pixels per inch, instead of `staff_space_px`.
    """

    page_width_mm: float = 210.0
    page_height_mm: float = 297.0
    margin_mm: float = 10.0
    staff_height_mm: float = 7.2
    breaks: Breaks = "auto"
    font: MusicFont = "Leipzig"
    spacing_linear: float = 0.25
    spacing_nonlinear: float = 0.6
    spacing_staff: int = 12
    spacing_system: int = 4
    header: bool = True
    footer: bool = False
    staff_space_px: float | None = None
    dpi: float | None = None

    def __post_init__(self) -> None:
        _check_choice("breaks", self.breaks, get_args(Breaks))
        _check_choice("font", self.font, get_args(MusicFont))
        _check_range("page_width_mm", self.page_width_mm, 10, 10_000)
        _check_range("page_height_mm", self.page_height_mm, 10, 6_000)
        _check_range("margin_mm", self.margin_mm, 0, 50)
        _check_range("staff_height_mm", self.staff_height_mm, 3.6, 9.6)
        _check_range("spacing_linear", self.spacing_linear, 0, 1)
        _check_range("spacing_nonlinear", self.spacing_nonlinear, 0, 1)
        _check_range("spacing_staff", self.spacing_staff, 0, 48)
        _check_range("spacing_system", self.spacing_system, 0, 48)
        if self.staff_space_px is not None and self.dpi is not None:
            raise InputError("both staff_space_px and dpi were given; expected one of them")
        if self.staff_space_px is not None:
            _check_range("staff_space_px", self.staff_space_px, 2, 100)
        if self.dpi is not None:
            _check_range("dpi", self.dpi, 20, 1200)

    @property
    def px_per_mm(self) -> float:
        """Pixels of the page image per millimetre of paper.

        >>> EngravingOptions(dpi=254).px_per_mm
        10.0
        """
        if self.dpi is not None:
            return self.dpi / _MM_PER_INCH
        return (self.staff_space_px or 10.0) / (self.staff_height_mm / 4)

    @property
    def resolution_dpi(self) -> float:
        """Pixels of the page image per inch of paper."""
        return self.px_per_mm * _MM_PER_INCH

    def to_verovio(self) -> dict[str, Any]:
        """Return the options under Verovio's names and in its units."""
        margin = round(self.margin_mm * _UNITS_PER_MM)
        sides = ("Top", "Right", "Bottom", "Left")
        return {
            "pageWidth": round(self.page_width_mm * _UNITS_PER_MM),
            "pageHeight": round(self.page_height_mm * _UNITS_PER_MM),
            **{f"pageMargin{side}": margin for side in sides},
            "unit": self.staff_height_mm / 8 * _UNITS_PER_MM,
            "breaks": self.breaks,
            "adjustPageWidth": self.breaks == "none",
            "adjustPageHeight": self.breaks == "none",
            "font": self.font,
            "spacingLinear": self.spacing_linear,
            "spacingNonLinear": self.spacing_nonlinear,
            "spacingStaff": self.spacing_staff,
            "spacingSystem": self.spacing_system,
            "header": "auto" if self.header else "none",
            "footer": "auto" if self.footer else "none",
            "expandNever": True,
            "svgViewBox": True,
            "svgFormatRaw": True,
            "svgBoundingBoxes": True,
            "svgAdditionalAttribute": ["staff@n"],
            "xmlIdSeed": 1,
        }


@short_repr
@dataclass(frozen=True)
class Engraving:
    """An engraved score: each page as SVG in pixels, and what lies where.

    Attributes
    ----------
    svgs : tuple of str
        The pages. Width, height and all coordinates are in page pixels.
    notes : np.ndarray of `NOTE_DTYPE`
        One row per note head; both `id` and `notated_id` are the id of the head.
    measures, systems, staves : np.ndarray of `MEASURE_DTYPE`, `SYSTEM_DTYPE`, `STAFF_DTYPE`
    """

    svgs: tuple[str, ...]
    notes: Table
    measures: Table
    systems: Table
    staves: Table


def engrave(score_file: ScoreFile, options: EngravingOptions | None = None) -> Engraving:
    """Engrave a score.

    Parameters
    ----------
    score_file : ScoreFile
        The score, as returned by `read_score_file`.
    options : EngravingOptions, optional

    Returns
    -------
    Engraving
        The pages and boxes, in page pixels.
    """
    options = options or EngravingOptions()
    data = score_file.to_engrave().decode()
    pages = render_svgs(
        score_file.filename, data, _input_from(score_file), _verovio_options(score_file, options)
    )
    engraving = _locate(score_file, options, pages)
    if not len(engraving.notes):
        raise InputError(f"{score_file.filename}: Verovio drew none of its notes, so nothing can be located")
    return engraving


def engrave_excerpts(
    score_file: ScoreFile, ranges: Sequence[tuple[int, int]], options: EngravingOptions | None = None
) -> list[Engraving]:
    """Engrave some ranges of measures, each as if it were a piece of its own: with clef, key and time.

    Parameters
    ----------
    score_file : ScoreFile
    ranges : sequence of (first, last)
        Measures counted from 0, both included; they may overlap.
    options : EngravingOptions, optional

    Returns
    -------
    list of Engraving
        One per range; measures have their numbers in the whole score. A range of rests has no notes.
    """
    options = options or EngravingOptions()
    data = score_file.to_engrave().decode()
    excerpts = render_excerpts(
        score_file.filename, data, _input_from(score_file), _verovio_options(score_file, options), ranges
    )
    return [
        _locate(score_file, options, pages, last) for pages, (_, last) in zip(excerpts, ranges, strict=True)
    ]


def _verovio_options(score_file: ScoreFile, options: EngravingOptions) -> dict[str, Any]:
    """Return Verovio's options; asking for the staff of each note takes it a third of its time for drawing."""
    chosen = options.to_verovio()
    if score_file.may_cross_staves:
        chosen["svgAdditionalAttribute"] += ["note@staff", "chord@staff"]
    return chosen


def _input_from(score_file: ScoreFile) -> str:
    return "xml" if score_file.kind == "musicxml" else "mei"


def _locate(
    score_file: ScoreFile, options: EngravingOptions, pages: Iterable[str], last: int | None = None
) -> Engraving:
    """Find out what lies where on the pages that Verovio drew; `last` is the last measure to be drawn."""
    px_per_unit = options.px_per_mm / _DRAWING_UNITS_PER_MM
    layout = SvgLayout(score_file, px_per_unit, space_px=options.px_per_mm * options.staff_height_mm / 4)
    svgs = []
    for svg in pages:
        root = etree.fromstring(svg.encode(), etree.XMLParser(huge_tree=True))
        layout.add_page(root)
        svgs.append(_svg_in_pixels(root, options.px_per_mm))
    return Engraving(tuple(svgs), layout.notes(), layout.measures(last), layout.systems(), layout.staves())


def _svg_in_pixels(root: etree._Element, px_per_mm: float) -> str:
    """Return Verovio's page with a single scale to pixels in place of its nested coordinate systems."""
    width_mm, height_mm = (float(v) / _UNITS_PER_MM for v in root.get("viewBox", "").split()[2:])
    width_px, height_px = round(width_mm * px_per_mm), round(height_mm * px_per_mm)
    root.attrib.update(
        {"width": f"{width_px}", "height": f"{height_px}", "viewBox": f"0 0 {width_px} {height_px}"}
    )
    drawing = next(e for e in root.iter(f"{_SVG}svg") if e.get("class") == "definition-scale")
    drawing.tag = f"{_SVG}g"
    del drawing.attrib["viewBox"]
    drawing.set("transform", f"scale({px_per_mm / _DRAWING_UNITS_PER_MM!r})")
    for box in [g for g in root.iter(f"{_SVG}g") if "bounding-box" in (g.get("class") or "")]:
        parent = box.getparent()
        if parent is not None:
            parent.remove(box)
    return etree.tostring(root, encoding="unicode")


def _check_choice(name: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise InputError(f"{name} is {value!r}, expected one of {', '.join(choices)}")


def _check_range(name: str, value: float, low: float, high: float) -> None:
    if not low <= value <= high:
        raise InputError(f"{name} is {value:g}, expected {low:g} to {high:g}")
