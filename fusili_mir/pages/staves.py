"""Staves on a deskewed page: five thin, long lines at equal distances.

A comb of five teeth detects staves in vertical slices of the page (see `fusili_mir.pages.staff_comb`). Chains of
detections from slice to slice are staves, even if the paper is bent.

Staves with another number of lines (percussion, chant, tablature) are left out, and so are ruled tables, which
continue with more lines at the same distance.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import ndimage

from fusili_mir.arrays import Float32, Float64, GreyImage, Int64, Table
from fusili_mir.boxes import STAFF_DTYPE
from fusili_mir.pages.ink import ink_map, reduce_page
from fusili_mir.pages.staff_comb import (
    CELLS_PER_SLICE,
    MIN_SPACE_PX,
    TEETH,
    PageSlices,
    at_rows,
    comb_response,
    contrast,
    cut_slices,
    likely_spaces,
)

__all__ = ["find_staves"]


_SIZES_PX = (1800, 3600, 7200)  # longer sides of the page, tried until its staves are large enough
_GOOD_SPACE_PX = 7.0
_MIN_CONTRAST = 0.03  # contrast of a line with its surroundings, as a share of black
_MIN_LENGTH = 10.0  # length of a staff, in spaces
_ABOVE_GRAIN = 4.5  # threshold of the comb, in standard deviations of its response on most of the page
_MIN_LINE_INK = 0.4  # ink threshold for the lines of a staff, as a share of the clearest staff
_MIN_COVER = 0.75  # share of its length on which each line of a staff is visible; rows of text have gaps
_MIN_COVER_NOT_BARE = 0.92  # the same if, as in text, hardly any place shows the lines alone
_MIN_BARE = 0.03  # share of its length on which a staff shows the lines alone
# The beams of many notes lie as evenly as the lines of a small staff. But they are thick (half a space of a real
# staff; a line is a tenth to a fifth), and some of them too close to each other.
_MAX_THICKNESS = 0.45  # of a line, in spaces of its own staff, if the usual ones of the page are much thinner
_MAX_TIMES_THICKER = 2.0
_MIN_SIZE = 0.42  # of a staff, relative to the usual one of the page: that of an ossia is 0.6 and more
_MAX_GAP = 4  # slices from one detection of a staff to the next
_STEP_PX = 0.1  # resolution of the rows of lines
# Faint lines of old prints come and go, and what is found of a staff ends where too many of them are gone.
_LINE_THICKNESS, _SHORTEST_DASH, _LONGEST_GAP = 0.35, 0.4, 12.0  # of broken lines, in spaces
_DASH_INK = 0.3  # as a share of that of most thin strokes
_MENDED = 1.05  # by which staves are longer in all, if bridging their gaps has mended them


@dataclass(frozen=True)
class _Chain:
    """Detections of one staff from slice to slice."""

    page: PageSlices
    slices: Int64  # indices of the slices
    rows: Float64  # of the middle line
    strength: Float64  # of the comb

    @cached_property
    def weight(self) -> float:
        """Strength times length, comparable between slices of different widths."""
        return float(self.strength.sum()) * self.page.space_px

    @cached_property
    def middle_px(self) -> float:
        """Position of the middle line from the top of the page."""
        return float(np.median(self.rows)) + 0.5


@dataclass(frozen=True)
class _Found:
    """A staff, the ink of its lines relative to their surroundings, and how thick they are."""

    box: Table  # one element of STAFF_DTYPE
    line_ink: float
    thickness_px: float


def find_staves(image: GreyImage) -> Table:
    """Find the five-line staves of a deskewed page.

    Parameters
    ----------
    image : np.ndarray [shape=(height, width)]
        The page, deskewed to within a tenth of a degree (see `fusili_mir.pages.skew`).

    Returns
    -------
    np.ndarray [shape=(n_staves,), dtype=STAFF_DTYPE]
        The staves from top to bottom, with `page` 0, and `system` and `staff` -1; empty for a page without music.
        `y0` and `y1` are the middles of the outer lines, averaged over their length; `x0` and `x1` the ends.
    """
    longest = max(image.shape)
    if min(image.shape) < 5 * MIN_SPACE_PX:
        return np.zeros(0, dtype=STAFF_DTYPE)
    factors = list(dict.fromkeys(-(-longest // size) for size in _SIZES_PX))
    for factor in factors:
        staves = _staves_at_one_size(ink_map(reduce_page(image, factor)))
        if len(staves) and staves["space_px"].min() >= _GOOD_SPACE_PX:
            break
    for name in ("x0", "y0", "x1", "y1", "space_px"):
        staves[name] *= factor
    return staves


def _staves_at_one_size(ink: Float32) -> Table:
    staves = _search_twice(ink)
    if _are_fragments(staves):
        mended = _search_twice(_bridge_gaps(ink, float(np.median(staves["space_px"]))))
        if (mended["x1"] - mended["x0"]).sum() > _MENDED * (staves["x1"] - staves["x0"]).sum():
            return mended
    return staves


def _are_fragments(staves: Table) -> bool:
    """Return whether some staves lie one after another in the same rows."""
    in_same_rows = np.abs(staves["y0"][:, None] - staves["y0"]) < staves["space_px"]
    return bool(np.count_nonzero(in_same_rows) > len(staves))


def _bridge_gaps(ink: Float32, space_px: float) -> Float32:
    """Draw thin level strokes on to the next ones in the same row."""
    thin = ink - ndimage.grey_opening(ink, (2 + round(_LINE_THICKNESS * space_px), 1))
    strokes = thin > _MIN_CONTRAST
    if not strokes.any():
        return ink
    dark = thin > _DASH_INK * np.percentile(thin[strokes], 75)
    dashes = ndimage.binary_opening(dark, np.ones((1, max(2, round(_SHORTEST_DASH * space_px)))))
    gap_px = round(_LONGEST_GAP * space_px)
    bridged = ndimage.binary_closing(np.pad(dashes, ((0, 0), (gap_px, gap_px))), np.ones((1, gap_px)))
    line_ink = np.median(thin[dark])
    return np.maximum(ink, np.where(bridged[:, gap_px:-gap_px], line_ink, np.float32(0)))


def _search_twice(ink: Float32) -> Table:
    found = _search(ink, likely_spaces(ink)[:4])
    if found:
        # A few staves of another size show up once the others are removed.
        rest = ink.copy()
        for staff in found:
            box, reach_px = staff.box, 0.5 * staff.box["space_px"]
            top, bottom = max(0, int(box["y0"] - reach_px)), int(box["y1"] + reach_px) + 1
            rest[top:bottom, int(box["x0"]) : int(box["x1"]) + 1] = 0
        found += _search(rest, likely_spaces(rest)[:1])
    found = [staff for staff in found if not _are_beams(staff, found)]
    # The staves of a page are printed alike: a much fainter one is grain, or shows through the paper.
    clearest = max((staff.line_ink for staff in found), default=0.0)
    kept = [staff.box for staff in found if staff.line_ink > _MIN_LINE_INK * clearest]
    staves = np.array(kept, dtype=STAFF_DTYPE) if kept else np.zeros(0, dtype=STAFF_DTYPE)
    return np.asarray(staves[np.lexsort((staves["x0"], staves["y0"]))])


def _are_beams(staff: _Found, found: list[_Found]) -> bool:
    """Return whether the lines of a staff are too thick, or too close, beside those of the others on its page."""
    thickness_px, space_px = staff.thickness_px, float(staff.box["space_px"])
    usual_px = float(np.percentile([other.thickness_px for other in found], 50, method="lower"))
    is_thick = thickness_px > max(_MAX_THICKNESS * space_px, _MAX_TIMES_THICKER * usual_px)
    return bool(is_thick or space_px < _MIN_SIZE * np.median([other.box["space_px"] for other in found]))


def _search(ink: Float32, spaces_px: list[float]) -> list[_Found]:
    """Return the staves of the given sizes, the clearest one first."""
    chains = [chain for space_px in spaces_px for chain in _chains(cut_slices(ink, space_px))]
    found: list[_Found] = []
    for chain in sorted(chains, key=lambda chain: -chain.weight):
        if not any(_lies_on(chain, staff.box) for staff in found):
            staff = _fit_staff(chain)
            if staff is not None and not any(_share_lines(staff.box, other.box) for other in found):
                found.append(staff)
    return found


def _lies_on(chain: _Chain, staff: Table) -> bool:
    slice_px = CELLS_PER_SLICE * chain.page.cell_px
    x0, x1 = chain.slices[0] * slice_px, (chain.slices[-1] + 1) * slice_px
    covered = min(x1, staff["x1"]) - max(x0, staff["x0"])
    distance = abs(chain.middle_px - (staff["y0"] + staff["y1"]) / 2)
    return bool(covered > 0.5 * (x1 - x0) and distance < 3 * staff["space_px"])


def _share_lines(a: Table, b: Table) -> bool:
    beside = min(a["x1"], b["x1"]) - max(a["x0"], b["x0"])
    below = min(a["y1"], b["y1"]) - max(a["y0"], b["y0"])
    return bool(beside > 0 and below > -0.5 * min(a["space_px"], b["space_px"]))


def _chains(page: PageSlices) -> list[_Chain]:
    """Link the detections of the comb in neighbouring slices."""
    comb = comb_response(page.slices, page.space_px)
    usual = float(np.median(comb))
    grain = 1.48 * float(np.median(np.abs(comb - usual)))
    least = max(_MIN_CONTRAST, usual + _ABOVE_GRAIN * grain, 0.3 * float(np.percentile(comb.max(axis=0), 80)))
    peaks = comb == ndimage.maximum_filter1d(comb, 1 + 2 * round(0.4 * page.space_px), axis=0)
    peaks &= comb >= least
    reach_px = max(1.6, 0.2 * page.space_px)
    running: list[list[tuple[int, int]]] = []
    ended: list[list[tuple[int, int]]] = []
    for here in range(comb.shape[1]):
        ended += [links for links in running if here - links[-1][0] > _MAX_GAP]
        running = [links for links in running if here - links[-1][0] <= _MAX_GAP]
        running.sort(key=len, reverse=True)
        rows = np.flatnonzero(peaks[:, here])
        free = np.ones(len(rows), dtype=bool)
        if len(rows):
            for links in running:
                nearest = int(np.abs(rows - links[-1][1]).argmin())
                if free[nearest] and abs(rows[nearest] - links[-1][1]) <= reach_px:
                    free[nearest] = False
                    links.append((here, int(rows[nearest])))
        running += [[(here, int(row))] for row in rows[free]]
    chains = []
    for links in ended + running:
        if len(links) > 1:
            slices, rows = np.array(links).T
            strength = comb[rows, slices].astype(np.float64)
            chains.append(_Chain(page, slices, rows.astype(np.float64), strength))
    return chains


def _fit_staff(chain: _Chain) -> _Found | None:
    """Fit a staff to a chain; None if it does not fit."""
    page, space_px = chain.page, chain.page.space_px
    slice_rows = _smooth_rows(chain)
    lines = _fit_lines(chain, slice_rows)
    contrasts = contrast(page.slices, slice_rows[:, None] + lines, chain.slices[:, None], space_px)
    line_inks = np.percentile(contrasts, 75, axis=0)  # (5,): beams may hide a long part of a line
    line_ink = float(np.median(line_inks))
    if line_ink < _MIN_CONTRAST or line_inks.min() < 0.35 * line_ink:
        return None
    if _has_sixth_line(chain, slice_rows, lines, line_ink):
        return None

    # Which cells show the lines; a note on a line counts as the line.
    n_cells = page.cells.shape[1]
    in_slices = (np.arange(n_cells) + 0.5) / CELLS_PER_SLICE - 0.5
    cell_rows = np.interp(in_slices, chain.slices, slice_rows)
    tolerance = np.array([-1.0, 0.0, 1.0]) * max(0.7, 0.12 * space_px)
    rows = cell_rows + lines[:, None, None] + tolerance[:, None]  # (5 lines, 3, n_cells)
    least = 0.5 * np.minimum(line_inks, line_ink)[:, None]
    dark = at_rows(page.cells, rows, np.arange(n_cells)).max(axis=1) > least  # (5 lines, n_cells)
    between = at_rows(page.cells, cell_rows + (lines[:-1, None] + lines[1:, None]) / 2, np.arange(n_cells))
    light = between < 0.5 * line_ink  # (4 spaces, n_cells)
    seen = dark.sum(axis=0) >= 4
    runs, _ = ndimage.label(ndimage.binary_closing(np.pad(seen, 6), np.ones(5))[6:-6])
    votes = np.bincount(runs[chain.slices * CELLS_PER_SLICE + CELLS_PER_SLICE // 2], minlength=2)
    votes[0] = 0
    if votes.max() == 0:
        return None
    # A dark margin is not part of a staff.
    held = np.flatnonzero((runs == votes.argmax()) & light.any(axis=0))
    if len(held) == 0:
        return None
    first, last = int(held[0]), int(held[-1])
    bare = dark.all(axis=0) & light.all(axis=0)
    cover = dark[:, held].mean(axis=1).min()
    if cover < (_MIN_COVER if bare[held].mean() > _MIN_BARE else _MIN_COVER_NOT_BARE):
        return None
    x0 = _end(page, cell_rows[first] + lines, first, line_inks, inward=1)
    x1 = _end(page, cell_rows[last] + lines, last, line_inks, inward=-1)
    if x1 - x0 < _MIN_LENGTH * space_px:
        return None
    middle = float(cell_rows[first : last + 1].mean()) + 0.5
    top, bottom = middle + lines[0], middle + lines[-1]
    box = np.array((0, -1, -1, x0, top, x1, bottom, (bottom - top) / 4), dtype=STAFF_DTYPE)
    return _Found(box, line_ink, _thickness_px(chain, slice_rows, lines))


def _thickness_px(chain: _Chain, slice_rows: Float64, lines: Float64) -> float:
    """Return how thick the lines of a staff are where nothing else is: their ink, blurred or not."""
    half_px = (lines[-1] - lines[0]) / 8
    around = lines + np.arange(-half_px, half_px, _STEP_PX)[:, None]  # (offsets, 5 lines)
    ink = at_rows(chain.page.slices, slice_rows[:, None, None] + around, chain.slices[:, None, None])
    profile = np.percentile(ink, 30, axis=0).mean(axis=1)
    return float((profile - profile.min()).sum() * _STEP_PX)


def _smooth_rows(chain: _Chain) -> Float64:
    """Return the middle line as a smooth curve: paper bends, but not from slice to slice."""
    degree = min(3, len(chain.slices) // 4)
    rows = ndimage.median_filter(chain.rows, size=min(5, len(chain.rows)), mode="nearest")
    return np.asarray(np.polyval(np.polyfit(chain.slices, rows, degree), chain.slices))


def _has_sixth_line(chain: _Chain, slice_rows: Float64, lines: Float64, line_ink: float) -> bool:
    """Return whether a sixth line runs along the five, as in a ruled table (ledger lines are short)."""
    space_px = chain.page.space_px
    for sixth in (lines[0] - space_px, lines[-1] + space_px):
        slack = np.linspace(-0.15, 0.15, 5)[:, None] * space_px
        dark = contrast(chain.page.slices, slice_rows + sixth + slack, chain.slices, space_px).max(axis=0)
        if (dark > 0.5 * line_ink).mean() > 0.85:
            return True
    return False


def _fit_lines(chain: _Chain, slice_rows: Float64) -> Float64:
    """Return the offsets of the five lines from the rows of the chain, from top to bottom [shape=(5,)]."""
    space_px = chain.page.space_px
    offsets = np.arange(-3.5 * space_px, 3.5 * space_px, _STEP_PX)
    ink = at_rows(chain.page.slices, slice_rows[:, None] + offsets, chain.slices[:, None])
    profile = ndimage.gaussian_filter1d(np.percentile(ink, 30, axis=0), max(0.8, 0.08 * space_px) / _STEP_PX)
    middles = np.arange(-0.4 * space_px, 0.4 * space_px, _STEP_PX)
    spaces = np.linspace(0.975, 1.025, 26) * space_px
    teeth = (
        np.multiply.outer(np.arange(-2.5, 2.75, 0.5), spaces)[:, :, None] + middles
    )  # (11, spaces, middles)
    signs = np.array([-0.5, 1, -1, 1, -1, 1, -1, 1, -1, 1, -0.5])
    fit = np.einsum("t,tsm->sm", signs, np.interp(teeth, offsets, profile))
    space, middle = np.unravel_index(int(fit.argmax()), fit.shape)
    return np.asarray(middles[middle] + TEETH * spaces[space])


def _end(page: PageSlices, rows: Float64, cell: int, line_inks: Float64, *, inward: int) -> float:
    """Locate an end of the lines to the pixel, around the last cell that shows them."""
    width = page.ink.shape[1]
    columns = np.arange(
        max(0, int((cell - 3) * page.cell_px)), min(width, int((cell + 4) * page.cell_px) + 1)
    )
    darkness = np.minimum(at_rows(page.ink, rows[:, None], columns), line_inks[:, None]).mean(axis=0)
    least = 0.5 * line_inks.mean()
    gain = np.cumsum((darkness - least)[::inward])
    outside = int(np.concatenate(([0.0], gain)).argmin())
    if inward == -1:
        return float(columns[-1] + 1 - outside)
    # A bracket stands left of the lines, after a gap.
    near = darkness[outside : outside + round(2 * page.space_px)]
    gap = np.flatnonzero(ndimage.uniform_filter1d(near, 3) < least) if len(near) else near
    return float(columns[0] + outside + (gap[-1] + 1 if len(gap) else 0))
