"""Seconds <-> places on the pages, for page turners, players and error measurement.

Places are in pixels of the original pages, whose systems may be tilted. To find the second of a place, it is
first moved to the deskewed page, where a system runs from left to right.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from fusili_mir.alignment.intervals import INTERVAL_NAMES
from fusili_mir.argument_kinds import checked
from fusili_mir.arrays import Bool, Float64, Int64, Table
from fusili_mir.errors import InputError
from fusili_mir.pages.original_pixels import places_to_deskewed
from fusili_mir.pages.skew import Skew
from fusili_mir.short_repr import short_repr

__all__ = [
    "PlaceCertainty",
    "PlaceMoments",
    "PositionMaps",
    "are_played",
    "get_certainty_map",
    "get_position_maps",
]

_NEAR_SPACES, _BESIDE_SPACES = (
    8.0,
    2.0,
)  # from a system: ledger lines and dynamics above and below, braces beside
_ROUNDING_PX = 0.01  # places that differ by less may have been the same before they were rounded


class SecondsToPosition(Protocol):
    """Maps seconds [shape=(...)] to (page, x, y), each of the same shape."""

    def __call__(self, seconds: npt.ArrayLike) -> tuple[Int64, Float64, Float64]:
        """Return where the music is; before the first and after the last frame, the place in that frame."""
        ...


class PositionToSeconds(Protocol):
    """Maps places (page, x, y) [shape=(...)] to seconds of the same shape."""

    def __call__(self, page: npt.ArrayLike, x: npt.ArrayLike, y: npt.ArrayLike) -> Float64:
        """Return when places first sound, each in its nearest system; NaN on pages that are not played."""
        ...


class PlaceCertainty(NamedTuple):
    """How sure the seconds of places are, each of the shape of the places; NaN on pages that are not played.

    Attributes
    ----------
    confidence : np.ndarray
        Probability that a place begins to sound within 0.1 s of its second.
    earliest_sec, latest_sec : np.ndarray
        Interval in which it does, with about the probability `INTERVAL_PROBABILITY`.
    """

    confidence: Float64
    earliest_sec: Float64
    latest_sec: Float64


class PositionToCertainty(Protocol):
    """Maps places (page, x, y) [shape=(...)] to how sure their seconds are."""

    def __call__(self, page: npt.ArrayLike, x: npt.ArrayLike, y: npt.ArrayLike) -> PlaceCertainty:
        """Return how sure the answers of `PositionToSeconds` are."""
        ...


class PositionMaps(NamedTuple):
    """The two maps, in the order of partitura's time maps: from the performance, then to it."""

    seconds_to_position: SecondsToPosition
    position_to_seconds: PositionToSeconds


@short_repr
@dataclass(frozen=True)
class PlaceMoments:
    """Places that begin to sound at known moments, in playing order.

    Attributes
    ----------
    system : np.ndarray of int [shape=(n,)]
        System of each place.
    x0, x1 : np.ndarray [shape=(n,)]
        Left and right edge of each place, in pixels of the deskewed page.
    seconds : np.ndarray [shape=(n,)]
        When each place begins to sound. Non-decreasing.
    confidence : np.ndarray [shape=(n,)]
        Probability that it does within 0.1 s of that.
    margin_sec : np.ndarray [shape=(n,)]
        By how much it may be earlier or later, with a probability of `INTERVAL_PROBABILITY`.
    """

    system: Int64
    x0: Float64
    x1: Float64
    seconds: Float64
    confidence: Float64
    margin_sec: Float64


@checked
def get_position_maps(
    frames: Table, moments: PlaceMoments | None = None, skews: Sequence[Skew] = ()
) -> PositionMaps:
    """Make maps between seconds and places on the pages.

    Parameters
    ----------
    frames : np.ndarray of `FRAME_DTYPE` [shape=(M,)]
        Frames from `align_pages`, or `Alignment.frames`.
    moments : PlaceMoments, optional
        Moments that are known more precisely than frames; see `Alignment.position_maps`.
    skews : sequence of Skew
        `Pages.skews` of the pages that were aligned. Without them, places far above or below the middle of a
        tilted system are taken to lie a few pixels further left or right.

    Returns
    -------
    PositionMaps
        Two functions: seconds -> (page, x, y), and (page, x, y) -> seconds. Places are pixels of the original
        page; the middle of each frame is at its place, and between two frames in a system the place moves evenly.

    Examples
    --------
    >>> from fusili_mir.alignment.frame_places import FRAME_DTYPE
    >>> frames = np.zeros(3, FRAME_DTYPE)  # three frames in one system, one second each
    >>> frames["onset_sec"], frames["x"] = [0, 1, 2], [100, 200, 300]
    >>> maps = get_position_maps(frames)
    >>> page, x, y = maps.seconds_to_position(1.0)  # half-way between the middles of two frames
    >>> float(x), float(maps.position_to_seconds(page=0, x=250.0, y=0.0))
    (150.0, 2.0)
    """
    passes = _AllPasses.of(frames, moments, skews)
    frame_sec, middle_sec = _middles(frames)

    def seconds_to_position(seconds: npt.ArrayLike) -> tuple[Int64, Float64, Float64]:
        seconds = np.asarray(seconds, dtype=np.float64)
        before = np.clip(np.searchsorted(middle_sec, seconds, side="right") - 1, 0, len(frames) - 1)
        after = np.minimum(before + 1, len(frames) - 1)
        share = np.clip((seconds - middle_sec[before]) / (frame_sec or 1.0), 0.0, 1.0)
        moves = (frames["system"][before] == frames["system"][after]) & (
            frames["x"][after] >= frames["x"][before]
        )
        nearest = np.where(share < 0.5, before, after)
        x, y = (
            np.where(moves, (1 - share) * place[before] + share * place[after], place[nearest])
            for place in (frames["x"].astype(np.float64), frames["y"].astype(np.float64))
        )
        return frames["page"][nearest].astype(np.int64), x, y

    def position_to_seconds(page: npt.ArrayLike, x: npt.ArrayLike, y: npt.ArrayLike) -> Float64:
        return passes.found(page, x, y)[0]

    return PositionMaps(seconds_to_position, position_to_seconds)


def get_certainty_map(
    frames: Table, moments: PlaceMoments | None = None, skews: Sequence[Skew] = ()
) -> PositionToCertainty:
    """Make the map from places on the pages to how sure their seconds are.

    Parameters
    ----------
    frames, moments, skews
        As for `get_position_maps`.

    Returns
    -------
    PositionToCertainty
        A place between two that begin to sound is as sure as the less sure of them; its interval holds both of
        theirs.
    """
    passes = _AllPasses.of(frames, moments, skews)
    if moments is None:
        confidence, earliest_sec, latest_sec = (
            frames[name].astype(np.float64) for name in ("confidence", *INTERVAL_NAMES)
        )
    else:
        confidence = moments.confidence
        earliest_sec, latest_sec = moments.seconds - moments.margin_sec, moments.seconds + moments.margin_sec

    def certainty(page: npt.ArrayLike, x: npt.ArrayLike, y: npt.ArrayLike) -> PlaceCertainty:
        _, row = passes.found(page, x, y)
        is_known = np.isfinite(row)
        before, after = (np.where(is_known, each(row), 0.0).astype(np.int64) for each in (np.floor, np.ceil))
        found = (
            np.minimum(confidence[before], confidence[after]),
            np.minimum(earliest_sec[before], earliest_sec[after]),
            np.maximum(latest_sec[before], latest_sec[after]),
        )
        return PlaceCertainty(*(np.where(is_known, each, np.nan) for each in found))

    return certainty


def _middles(frames: Table) -> tuple[float, Float64]:
    """Return the time from one frame to the next, and the middle of each.

    Frames are evenly spaced, except the first and last ones where they are cut to the recording.
    """
    number, inner = np.arange(len(frames)), len(frames) // 2
    frame_sec = float(np.median(np.diff(frames["onset_sec"]))) if len(frames) > 1 else 0.0
    return frame_sec, frames["onset_sec"][inner] + (number - inner + 0.5) * frame_sec


@dataclass(frozen=True)
class _Pass:
    """A stretch of time in which the music passes through one system from left to right."""

    system: int
    x: Float64  # non-decreasing
    seconds: Float64
    row: Float64  # of the frames or moments that these are


@dataclass(frozen=True)
class _AllPasses:
    """The passes of some frames, or of moments that are known more precisely."""

    frames: Table
    frame_x: Float64
    frame_y: Float64
    passes: list[_Pass]
    skews: Sequence[Skew]

    @classmethod
    def of(cls, frames: Table, moments: PlaceMoments | None, skews: Sequence[Skew]) -> _AllPasses:
        if not len(frames):
            raise InputError("no frames; expected those of an alignment")
        frame_x, frame_y = places_to_deskewed(skews, frames["page"], frames["x"], frames["y"])
        if moments is None:
            passes = _passes(frames["system"], frame_x, _middles(frames)[1])
        else:
            passes = _passes_of_moments(moments)
        return cls(frames, frame_x, frame_y, passes, skews)

    def found(self, page: npt.ArrayLike, x: npt.ArrayLike, y: npt.ArrayLike) -> tuple[Float64, Float64]:
        """Return when places first sound, and the row of each, between two rows for places between them."""
        page = np.asarray(page, np.int64)
        x, y = places_to_deskewed(self.skews, page, x, y)
        page = np.broadcast_to(page, x.shape)
        system = _nearest_system(self.frames, self.frame_x, self.frame_y, page, x, y)
        seconds, row, nearest = (np.full(page.shape, value) for value in (np.nan, np.nan, np.inf))
        for each in self.passes:
            miss = np.maximum(np.maximum(each.x[0] - x, x - each.x[-1]), 0.0)
            better = (system == each.system) & (miss < nearest)
            seconds = np.where(better, np.interp(x, each.x, each.seconds), seconds)
            row = np.where(better, np.interp(x, each.x, each.row), row)
            nearest = np.where(better, miss, nearest)
        return seconds, row


def _passes(system: Int64, frame_x: Float64, middle_sec: Float64) -> list[_Pass]:
    ends = (np.diff(system) != 0) | (np.diff(frame_x) < -_ROUNDING_PX)
    passes = []
    for rows in np.split(np.arange(len(system)), np.flatnonzero(ends) + 1):
        x, first, count = np.unique(
            np.maximum.accumulate(frame_x[rows]), return_index=True, return_counts=True
        )
        # A place sounds from its first frame on; a place to its right, only after its last frame.
        edges = np.stack((x, np.nextafter(x, np.inf)), axis=1).ravel()
        at = np.stack((rows[first], rows[first + count - 1]), axis=1).ravel()
        passes.append(_Pass(int(system[rows[0]]), edges, middle_sec[at], at.astype(np.float64)))
    return passes


def _passes_of_moments(moments: PlaceMoments) -> list[_Pass]:
    ends = (np.diff(moments.system) != 0) | (np.diff(moments.x0) < 0)
    passes = []
    for rows in np.split(np.arange(len(moments.seconds)), np.flatnonzero(ends) + 1):
        x0, x1 = moments.x0[rows].copy(), moments.x1[rows].copy()
        overlap = np.maximum(x1[:-1] - x0[1:], 0.0) / 2
        x1[:-1] -= overlap
        x0[1:] += overlap
        edges = np.stack((x0, np.maximum(x1, np.nextafter(x0, np.inf))), axis=1).ravel()
        at = np.repeat(rows, 2)
        passes.append(_Pass(int(moments.system[rows[0]]), edges, moments.seconds[at], at.astype(np.float64)))
    return passes


def _nearest_system(
    frames: Table, frame_x: Float64, frame_y: Float64, page: Int64, x: Float64, y: Float64
) -> Int64:
    """Return the played system nearest to each place; -1 on pages where none is played."""
    nearest, found = np.full(page.shape, np.inf), np.full(page.shape, -1, np.int64)
    for system in np.unique(frames["system"]):
        here = np.flatnonzero(frames["system"] == system)
        across = here[np.argsort(frame_x[here], kind="stable")]  # from left to right
        distance = np.abs(np.interp(x, frame_x[across], frame_y[across]) - y)
        better = (frames["page"][here[0]] == page) & (distance < nearest)
        nearest, found = np.where(better, distance, nearest), np.where(better, system, found)
    return found


def are_played(
    systems: Table,
    frames: Table,
    skews: Sequence[Skew],
    page: npt.ArrayLike,
    x: npt.ArrayLike,
    y: npt.ArrayLike,
) -> Bool:
    """Return whether places lie on systems that are played, or close to them.

    Parameters
    ----------
    systems : np.ndarray of SYSTEM_DTYPE
        All systems of the pages.
    frames, skews
        As for `get_position_maps`.
    page, x, y : array_like [shape=(...)]

    Returns
    -------
    np.ndarray of bool [shape=(...)]
    """
    page = np.asarray(page, np.int64)
    x, y = places_to_deskewed(skews, page, x, y)
    page = np.broadcast_to(page, x.shape)
    nearest, played = np.full(page.shape, np.inf), np.zeros(page.shape, bool)
    for system in systems:
        above_or_below = np.maximum(np.maximum(system["y0"] - y, y - system["y1"]), 0.0) / system["space_px"]
        beside = np.maximum(np.maximum(system["x0"] - x, x - system["x1"]), 0.0) / system["space_px"]
        better = (system["page"] == page) & (above_or_below < nearest)
        is_near = (above_or_below <= _NEAR_SPACES) & (beside <= _BESIDE_SPACES)
        played = np.where(better, is_near & np.isin(system["system"], frames["system"]), played)
        nearest = np.where(better, above_or_below, nearest)
    return played
