"""Point-and-retrieve: what on the pages sounds at a second, and when a spot on a page sounds.

The answer on the path comes first, because the path takes the context into account. The alternatives are single
frames and columns, ranked by similarity alone: other spots that look like what is heard, other times that sound
like what is seen.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from fusili_mir.alignment.results import Alignment
from fusili_mir.argument_kinds import checked
from fusili_mir.arrays import Bool, Float32, Int64
from fusili_mir.decoding.course import reading_course
from fusili_mir.decoding.similarity import CourseSimilarity
from fusili_mir.errors import InputError
from fusili_mir.pages.original_pixels import places_to_deskewed, places_to_original
from fusili_mir.pages.pages import Pages

__all__ = ["Moment", "Spot", "point_at_spot", "point_at_time"]


@dataclass(frozen=True)
class Spot:
    """A place on a page.

    Attributes
    ----------
    page : int
        Index of the page, from 0.
    x, y : float
        Position in pixels of the original page.
    measure : str, optional
        Number of the measure there as printed, if known.
    similarity : float
        Cosine with the requested frame.
    """

    page: int
    x: float
    y: float
    measure: str | None
    similarity: float


@dataclass(frozen=True)
class Moment:
    """A time in the recording.

    Attributes
    ----------
    seconds : float
    similarity : float
        Cosine with the requested column.
    """

    seconds: float
    similarity: float


@checked
def point_at_time(alignment: Alignment, seconds: float, n_spots: int = 5) -> list[Spot]:
    """Find what on the pages sounds at a second.

    Parameters
    ----------
    alignment : Alignment
    seconds : float
        Time within the recording, or within the excerpt of it that was aligned.
    n_spots : int
        Largest number of answers.

    Returns
    -------
    list of Spot
        First the spot on the path, then the most similar ones elsewhere, best first.
    """
    grid = alignment.grid
    first_sec, last_sec = grid.audio_start_sec, grid.end_sec
    if not first_sec <= seconds <= last_sec:
        raise InputError(f"{seconds:g} s is outside the recording ({first_sec:g} to {last_sec:.2f} s)")
    # Frames may not extend to either end of the recording: there, the nearest one counts.
    frame = int(np.clip(np.floor((seconds - grid.start_sec) / grid.frame_sec), 0, len(grid) - 1))
    similarity = _columns(alignment).block(slice(frame, frame + 1), slice(0, len(alignment.axis)))[0]
    page, x, y = (float(value) for value in alignment.position_maps.seconds_to_position(seconds))
    system = int(alignment.frames["system"][frame])
    deskewed_x, _ = places_to_deskewed(alignment.pages.skews, page, x, y)
    measure = _measure_at(alignment, system, float(deskewed_x))
    on_path = Spot(int(page), x, y, measure, float(alignment.path.similarity[frame]))
    taken = np.zeros(len(similarity), dtype=bool)
    for column in _columns_of_stop(alignment, frame):
        taken |= _run_around(similarity, int(column))
    spots = [on_path]
    for run in _best_runs(similarity, taken, n_spots - 1):
        best = run[similarity[run] == similarity[run].max()]
        column = int(best[len(best) // 2])
        spots.append(_spot(alignment, column, float(similarity[column])))
    return spots


@checked
def point_at_spot(alignment: Alignment, page: int, x: float, y: float, n_moments: int = 5) -> list[Moment]:
    """Find when a spot on a page sounds.

    Parameters
    ----------
    alignment : Alignment
    page : int
        Index of the page, from 0.
    x, y : float
        Position in pixels of the original page.
    n_moments : int
        Largest number of answers.

    Returns
    -------
    list of Moment
        First the time on the path, then the beginnings of the most similar stretches elsewhere, best first.
        If the path does not reach the page, only the latter.
    """
    _check_spot(alignment.pages, page, x, y)
    column = int(alignment.axis.index(page, *places_to_deskewed(alignment.pages.skews, page, x, y)))
    if column < 0:
        raise InputError(f"page {page + 1} has no music on it; point at another one")
    frames = slice(0, len(alignment.grid))
    similarity = _columns(alignment).block(frames, slice(column, column + 1))[:, 0]
    seconds = float(alignment.position_maps.position_to_seconds(page, x, y))
    moments: list[Moment] = []
    taken = np.zeros(len(similarity), dtype=bool)
    if np.isfinite(seconds):
        frame = round((seconds - alignment.grid.start_sec) / alignment.grid.frame_sec)
        around = np.arange(
            max(frame - 2, 0), min(frame + 3, len(similarity))
        )  # the onset may fall between frames
        best = int(around[similarity[around].argmax()])
        moments.append(Moment(float(alignment.grid.within(seconds)), float(similarity[best])))
        taken = _run_around(similarity, best)
    for run in _best_runs(similarity, taken, n_moments - len(moments)):
        begin_sec = alignment.grid.start_sec + float(run[0]) * alignment.grid.frame_sec
        # Frames may extend beyond either end of the recording.
        moments.append(Moment(float(alignment.grid.within(begin_sec)), float(similarity[run].max())))
    return moments


def _check_spot(pages: Pages, page: int, x: float, y: float) -> None:
    n_pages = len(pages.images)
    if not 0 <= page < n_pages:
        count = "1 page" if n_pages == 1 else f"{n_pages} pages"
        raise InputError(f"page {page + 1} does not exist: {pages.filename} has {count}")
    height_px, width_px = pages.images[page].shape
    if not (0 <= x <= width_px and 0 <= y <= height_px):
        raise InputError(
            f"{x:g},{y:g} is off page {page + 1}, which is {width_px} pixels wide and {height_px} high; expected "
            f"0,0 (top left) to {width_px},{height_px}"
        )


def _columns(alignment: Alignment) -> CourseSimilarity:
    """Compare with every column of the pages, played or not."""
    return replace(alignment.similarity, course=reading_course(np.arange(len(alignment.axis))))


def _columns_of_stop(alignment: Alignment, frame: int) -> Int64:
    """Return the columns that the path looks at in a frame."""
    course, stop = alignment.similarity.course, alignment.path.stop[frame]
    return course.columns[course.first[stop] : course.first[stop + 1]]


def _best_runs(similarity: Float32, taken: Bool, count: int) -> list[Int64]:
    """Return the runs of neighbours around the highest values, best first."""
    free = np.where(taken, -np.inf, similarity).astype(np.float32)
    runs: list[Int64] = []
    while len(runs) < count and np.isfinite(free).any():
        run = np.flatnonzero(_run_around(free, int(free.argmax())))
        runs.append(run)
        free[run] = -np.inf
    return runs


_RUN_DROP = 0.1  # neighbours whose cosine is lower by at most this belong to the same hit


def _run_around(values: Float32, place: int) -> Bool:
    """Return which neighbours of a place have values about as high as its own."""
    near = np.isfinite(values) & (values >= values[place] - _RUN_DROP)
    gaps = np.flatnonzero(~near)
    first = int(gaps[gaps < place].max(initial=-1)) + 1
    stop = int(gaps[gaps > place].min(initial=len(values)))
    run = np.zeros(len(values), dtype=bool)
    run[first:stop] = True
    return run


def _spot(alignment: Alignment, column: int, similarity: float) -> Spot:
    page, x, y = alignment.axis.centre(column)
    measure = _measure_at(alignment, int(alignment.axis.columns["system"][column]), float(x))
    x, y = places_to_original(alignment.pages.skews, page, x, y)
    return Spot(int(page), float(x), float(y), measure, similarity)


def _measure_at(alignment: Alignment, system: int, x: float) -> str | None:
    """Return the number of the measure at x of the deskewed page, in a system."""
    measures = alignment.pages.measures
    here = (measures["system"] == system) & (measures["x0"] <= x) & (x < measures["x1"])
    return str(measures["number"][here][0]) if here.any() else None
