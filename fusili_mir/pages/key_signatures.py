"""Key signatures at the beginnings of systems, read from page images.

The model sees a few measures at a time, and so reads a note without the sharps and flats at the beginning of its
system: D flat major and D major look alike to it. Which of the two is printed decides whether a recording sounds
at the pitch of the pages or a semitone off.

A key signature is a row of sharps or flats whose places on the staff are known for each clef. Both signs are
drawn here in outline and looked for at these places, on staves of one size without their lines.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fusili_mir.arrays import Float64, Int64
from fusili_mir.geometry import strip_height_px
from fusili_mir.pages.segments import cut_segment, staff_strips

if TYPE_CHECKING:  # partitura, which pages need, is slow to import
    from fusili_mir.pages.pages import Pages

__all__ = ["read_key_signatures", "signature_likelihoods"]

_SPACE_PX = 8
_MARGIN_SPACES = 6.0
_SHOWN_SPACES = 18.0  # from the left end of a system
_FIRST_SPACES = (1.75, 7.75)  # where the first sign may be: after the clef
_APART_PX = (5, 12)  # from one sign to the next
_HEIGHT_PX, _WIDTH_PX = 36, 13  # of a sign and the paper around it
_LEAST_MATCH = 0.45  # correlation that counts as much for a sign as against it
_FLOOR_PX = 1.0  # ink that is not much more than none: keeps empty paper from matching

# Steps above the middle line of a treble staff; on other staves all are lower by the same number of steps.
_FLATS = (0, 3, -1, 2, -2, 1, -3)
_SHARPS = (4, 1, 5, 2, -1, 3, 0)
_CLEFS = (0, -2, -1)  # treble, bass, alto
_STEPS = range(min(_FLATS) + min(_CLEFS), max(_SHARPS) + 1)


def read_key_signatures(pages: Pages, systems: Int64) -> Int64:
    """Read the key signatures of some systems.

    Parameters
    ----------
    pages : Pages
    systems : np.ndarray of int [shape=(n,)]
        Indices of the systems.

    Returns
    -------
    np.ndarray of int [shape=(n,)]
        Number of sharps, or of flats as a negative number; 0 if there are none, or none is recognised.
    """
    found = np.zeros(len(systems), dtype=np.int64)
    for place, system in enumerate(systems):
        row = pages.systems[pages.systems["system"] == system][0]
        x0 = float(row["x0"])
        shown = (x0, min(x0 + _SHOWN_SPACES * float(row["space_px"]), float(row["x1"])))
        segment = staff_strips(
            pages.systems, pages.staves, int(system), _SPACE_PX, _MARGIN_SPACES, x_range=shown
        )
        ink = 1 - cut_segment(segment, pages.images) / 255
        strips = ink.reshape(-1, strip_height_px(_SPACE_PX, _MARGIN_SPACES), ink.shape[1])
        found[place] = int(np.sum([signature_likelihoods(strip) for strip in strips], axis=0).argmax()) - 7
    return found


def signature_likelihoods(strip: Float64) -> Float64:
    """Return how much speaks for each key signature on a staff.

    Parameters
    ----------
    strip : np.ndarray [shape=(height, width)]
        The left end of a staff, with 8 pixels a space and its middle line in the middle; 1 is ink, 0 is paper.

    Returns
    -------
    np.ndarray [shape=(15,)]
        Sums of correlations above what would be expected by chance, for 7 flats to 7 sharps; 0 for none.
    """
    ink = np.maximum(strip - np.median(strip, axis=1, keepdims=True), 0.0)  # without lines
    likelihoods = np.full(15, -np.inf)
    likelihoods[7] = 0.0
    for sign, order, places in ((_flat(), _FLATS, range(6, -1, -1)), (_sharp(), _SHARPS, range(8, 15))):
        match = _match_by_step(ink, sign)
        for clef in _CLEFS:
            rows = [match[step + clef] for step in order]
            likelihoods[places] = np.maximum(likelihoods[places], _best_rows(rows))
    return likelihoods


def _best_rows(match: list[Float64]) -> Float64:
    """Return the best sums of the first, the first two, ... of seven signs, in order from left to right."""
    first, last = (round(spaces * _SPACE_PX) for spaces in _FIRST_SPACES)
    best = np.full(len(match[0]), -np.inf)
    best[first:last] = match[0][first:last]
    sums = [best.max(initial=-np.inf)]
    for here in match[1:]:
        reached = np.full(len(best), -np.inf)
        for apart in range(_APART_PX[0], _APART_PX[1] + 1):
            reached[apart:] = np.maximum(reached[apart:], best[:-apart])
        best = reached + here
        sums.append(best.max(initial=-np.inf))
    return np.array(sums)


def _match_by_step(ink: Float64, sign: Float64) -> dict[int, Float64]:
    """Return, for each step of the staff, how well a sign matches at each x, in excess of `_LEAST_MATCH`."""
    from scipy.signal import fftconvolve  # with scipy.stats, which takes long to import

    pattern = (sign - sign.mean()) / np.linalg.norm(sign - sign.mean())
    paper = np.ones_like(pattern)
    alike = fftconvolve(ink, pattern[::-1, ::-1], mode="same")
    spread = fftconvolve(ink**2, paper, mode="same") - fftconvolve(ink, paper, mode="same") ** 2 / paper.size
    match = alike / np.sqrt(np.maximum(spread, 0.0) + _FLOOR_PX) - _LEAST_MATCH
    middle = (ink.shape[0] - 1) / 2
    rows = {step: int(middle - step * _SPACE_PX / 2) for step in _STEPS}
    return {step: match[row - 1 : row + 3].max(axis=0) for step, row in rows.items()}


def _grid() -> tuple[Float64, Float64]:
    """Return x and y of the pixels of a sign from its middle, y downwards."""
    y, x = np.mgrid[:_HEIGHT_PX, :_WIDTH_PX].astype(np.float64)
    return x - (_WIDTH_PX - 1) / 2, y - (_HEIGHT_PX - 1) / 2


def _line(distance: Float64, half_width: float) -> Float64:
    return np.clip(half_width + 0.5 - np.abs(distance), 0.0, 1.0)


def _flat() -> Float64:
    """Draw a flat: a stem, and a bowl to the right of its lower end."""
    x, y = _grid()
    stem = _line(x + 2.6, 0.6) * ((y > -14) & (y < 5))
    radius = np.hypot((x + 0.4) / 3.2, (y - 0.6) / 4.2)
    bowl = np.clip(1 - 3 * np.abs(radius - 0.8), 0.0, 1.0) * ((x > -2.6) & (y < 5))
    return np.asarray(np.maximum(stem, bowl))


def _sharp() -> Float64:
    """Draw a sharp: two stems, and two bars that rise to the right."""
    x, y = _grid()
    left = _line(x + 1.7, 0.6) * ((y > -10.5) & (y < 11.5))
    right = _line(x - 1.7, 0.6) * ((y > -11.5) & (y < 10.5))
    bars = np.maximum(_line(y + 4 + 0.3 * x, 1.2), _line(y - 4 + 0.3 * x, 1.2)) * (np.abs(x) < 4)
    return np.asarray(np.maximum(np.maximum(left, right), bars))
