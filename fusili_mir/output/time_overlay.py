"""Overlays for people to look at: when each place on a page sounds.

They are drawn on the user's own image, in its own pixels. Lines follow the tilt of the page; line widths and
fonts follow the size of the staves. The legend is below the page, so places have the same pixels with and
without it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from PIL import Image, ImageDraw

from fusili_mir.alignment.results import Alignment
from fusili_mir.boundary import file_name
from fusili_mir.output.label_font import label_font
from fusili_mir.output.overlay_legend import LegendEntry, add_legend
from fusili_mir.pages.original_pages import original_image, rgb_image
from fusili_mir.pages.original_pixels import places_to_deskewed, places_to_original

__all__ = ["draw_times", "overlaid_pages"]

_LINE = (0, 114, 178)
_UNHEARD = (130, 130, 130)
_HEADS = ((213, 94, 0), (0, 158, 115))  # for even and odd seconds (Okabe and Ito)
_FADED = 0.5  # share of white
_MIN_FONT_PX = 11
_MOST_TIMES = 3  # of a measure that is played several times


@dataclass(frozen=True)
class _Mark:
    """A line through a system, at x of the deskewed page, with labels from the longest to the shortest."""

    x: float
    labels: tuple[str, ...]
    colour: tuple[int, int, int]


def overlaid_pages(alignment: Alignment) -> list[int]:
    """Return the pages that the recording reaches, each of which `draw_times` has something to show on."""
    return [int(page) for page in np.unique(alignment.frames["page"])]


def draw_times(alignment: Alignment, page: int) -> Image.Image:
    """Draw the times of a recording over a page of its score.

    Parameters
    ----------
    alignment : Alignment
    page : int

    Returns
    -------
    PIL.Image.Image
        The user's own image of the page, faded, with a legend below it. If the measures are known, a line marks
        where each begins, with its number and its seconds; otherwise a line marks the place that is reached at
        each full second. If the notes are known, their heads have one of two colours, by the second in which
        they begin.
    """
    image = rgb_image(original_image(alignment.pages, page))
    image = Image.blend(image, Image.new("RGB", image.size, "white"), _FADED)
    paint = ImageDraw.Draw(image, "RGBA")
    heads = alignment.notes[(alignment.notes["page"] == page) & np.isfinite(alignment.notes["onset_sec"])]
    for note in heads:
        colour = _HEADS[int(note["onset_sec"]) % 2]
        corners = tuple(float(note[name]) for name in ("x0", "y0", "x1", "y1"))
        paint.rectangle(corners, fill=(*colour, 150), outline=colour)
    has_measures = bool(len(alignment.measures))
    systems = alignment.pages.systems[alignment.pages.systems["page"] == page]
    drawn: list[_Mark] = []
    for system in systems:
        marks = list(_measure_marks(alignment, system) if has_measures else _second_marks(alignment, system))
        _draw_marks(paint, image.width, alignment, system, marks)
        drawn += marks
    space_px = float(np.median(systems["space_px"])) if len(systems) else 10.0
    return add_legend(
        image, _title(alignment, page), _legend(drawn, has_measures, bool(len(heads))), _font_px(space_px)
    )


def _font_px(space_px: float) -> int:
    return max(_MIN_FONT_PX, round(1.8 * space_px))


def _measure_marks(alignment: Alignment, system: np.void) -> Iterator[_Mark]:
    """Mark the left bar lines of a system, whether its measures are heard or not."""
    printed = alignment.pages.measures[alignment.pages.measures["system"] == system["system"]]
    for measure in printed[np.argsort(printed["x0"])]:
        played = alignment.measures[alignment.measures["measure"] == measure["measure"]]
        seconds = played["start_sec"][np.isfinite(played["start_sec"])]
        number = str(measure["number"])
        if not len(seconds):
            yield _Mark(float(measure["x0"]), (number,), _UNHEARD)
            continue
        times = [f"{second:.1f}" for second in seconds[:_MOST_TIMES]]
        more = ", ..." if len(seconds) > _MOST_TIMES else ""
        labels = dict.fromkeys((f"{number}: {', '.join(times)}{more} s", f"{number}: {times[0]} s", number))
        yield _Mark(float(measure["x0"]), tuple(labels), _LINE)


def _second_marks(alignment: Alignment, system: np.void) -> Iterator[_Mark]:
    """Mark where the music is at each full second; marks that would touch are left out."""
    grid, frames = alignment.grid, alignment.frames
    seconds = np.arange(max(0.0, np.ceil(grid.start_sec)), grid.end_sec)
    frame = np.clip(((seconds - grid.start_sec) / grid.frame_sec).astype(np.int64), 0, len(grid) - 1)
    here = ~alignment.path.is_filler[frame] & (frames["system"][frame] == system["system"])
    place = frames[frame[here]]
    x, _ = places_to_deskewed(alignment.pages.skews, place["page"], place["x"], place["y"])
    free_x: list[float] = []
    for second, at in zip(seconds[here], x.tolist(), strict=True):
        if all(abs(at - other) >= 0.5 * system["space_px"] for other in free_x):
            free_x.append(at)
            yield _Mark(at, (f"{second:.0f}",), _LINE)


def _draw_marks(
    paint: ImageDraw.ImageDraw, width: int, alignment: Alignment, system: np.void, marks: list[_Mark]
) -> None:
    """Draw lines through a system of a page of this width, with as many labels as there is room for."""
    space_px, page = float(system["space_px"]), int(system["page"])
    font = label_font(_font_px(space_px))
    width_px = max(2, round(space_px / 5))
    top_px, bottom_px = float(system["y0"]) - 2 * space_px, float(system["y1"]) + space_px
    taken: list[tuple[float, float]] = []  # from left to right edge of each label
    for mark in marks:
        (x0, x1), (y0, y1) = places_to_original(
            alignment.pages.skews, page, [mark.x, mark.x], [top_px, bottom_px]
        )
        line = (float(x0), float(y0), float(x1), float(y1))
        paint.line(line, fill=(255, 255, 255, 140), width=width_px + 2)
        paint.line(line, fill=(*mark.colour, 200), width=width_px)
        for label in mark.labels:
            length_px = font.getlength(label)
            left = min(float(x0) - width_px / 2, width - length_px)
            right = left + length_px
            if all(right + space_px / 2 <= start or end + space_px / 2 <= left for start, end in taken):
                taken.append((left, right))
                halo_px = max(2, round(space_px / 4))
                paint.text(
                    (left, float(y0)),
                    label,
                    fill=mark.colour,
                    font=font,
                    anchor="ld",
                    stroke_width=halo_px,
                    stroke_fill=(255, 255, 255, 230),
                )
                break


def _title(alignment: Alignment, page: int) -> str:
    names = [file_name(alignment.pages.filename), f"page {page + 1} of {len(alignment.pages.images)}"]
    if alignment.made_with is not None:
        names.append(alignment.made_with.recording.name)
    doubt = "" if alignment.is_reliable else ": LOW, is it a recording of this piece?"
    return ", ".join((*names, f"reliability {alignment.reliability:.2f}{doubt}"))


def _legend(marks: list[_Mark], has_measures: bool, has_heads: bool) -> list[LegendEntry]:
    heard = next((mark for mark in marks if mark.colour == _LINE), None)
    entries = []
    if has_measures and heard is not None:
        number, _, times = heard.labels[0].partition(": ")
        entries.append(LegendEntry((_LINE,), f"{heard.labels[0]}   measure {number} begins at {times}"))
    elif heard is not None:
        entries.append(LegendEntry((_LINE,), f"{heard.labels[0]}   reached at {heard.labels[0]} s"))
    if has_heads:
        entries.append(LegendEntry(_HEADS, "notes that begin in an even, in an odd second"))
    if any(mark.colour == _UNHEARD for mark in marks):
        entries.append(LegendEntry((_UNHEARD,), "not in the recording"))
    return entries
