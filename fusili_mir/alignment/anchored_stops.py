"""From anchors to pins: which stop of a course each anchor holds."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fusili_mir.alignment.anchors import Anchor
from fusili_mir.alignment.note_places import NotePlaces
from fusili_mir.alignment.played import PlayedScore
from fusili_mir.alignment.playing_course import PlayingCourse
from fusili_mir.arrays import Bool, Float64, Int64, Table
from fusili_mir.decoding.stop_pins import StopPin
from fusili_mir.errors import InputError
from fusili_mir.geometry import FrameGrid
from fusili_mir.pages.original_pixels import places_to_deskewed
from fusili_mir.pages.pages import Pages
from fusili_mir.pages.score_axis import ScoreAxis

__all__ = ["anchored_beats", "anchored_note", "check_anchors", "pins_of_notes", "pins_of_places"]

_SAME_BEAT = 1e-6


def check_anchors(anchors: Sequence[Anchor], grid: FrameGrid) -> None:
    """Raise an error if an anchor is outside the recording."""
    for anchor in anchors:
        if not grid.audio_start_sec <= anchor.second < grid.end_sec:
            raise InputError(
                f"{anchor.name} is anchored at {anchor.second:g} s, outside the recording of "
                f"{grid.audio_start_sec:g} to {grid.end_sec:.2f} s"
            )


def pins_of_notes(
    anchors: Sequence[Anchor], pages: Pages, played: PlayedScore, on_course: PlayingCourse
) -> list[StopPin]:
    """Find the stops of anchors on the course of a symbolic score.

    A measure whose first beat is silent, or held over, has no stop of its own: the anchor then separates the
    stops before it from those after it.
    """
    pins = []
    for anchor in anchors:
        if anchor.measure is not None:
            beat = float(_played_measure(anchor, played.measures)["start_beat"])
            pins.append(_pin_at_beat(anchor, on_course.course.start[:-1], beat))
            continue
        note = anchored_note(anchor, pages, played.notes)
        stop = int(on_course.stop_of_note[note])
        if stop < 0:
            raise InputError(f"{anchor.name} has no place on the pages; anchor another one")
        begins = bool(on_course.begins_stop[note])
        pins.append(StopPin(stop if begins else stop + 1, anchor.second, begins, anchor.name))
    return [pin for pin in pins if pin.stop < len(on_course.course)]


def anchored_note(anchor: Anchor, pages: Pages, notes: Table) -> int:
    """Return the row of the note that an anchor of a note or place holds."""
    if anchor.place is not None:
        return _nearest_note(anchor, pages, notes)
    rows = np.flatnonzero(notes["id"] == anchor.note)
    if not len(rows):
        rows = np.flatnonzero(notes["notated_id"] == anchor.note)
    if not len(rows):
        raise InputError(f"{anchor.name}: no note of the score as played has this id")
    return int(rows[0])


def anchored_beats(anchors: Sequence[Anchor], played: PlayedScore) -> tuple[Float64, Float64]:
    """Return the beats at which anchored measures begin, and their seconds."""
    known = {
        round(float(_played_measure(anchor, played.measures)["start_beat"]), 6): anchor.second
        for anchor in anchors
        if anchor.measure is not None
    }
    beats = np.array(sorted(known), np.float64)
    return beats, np.array([known[beat] for beat in beats], np.float64)


def pins_of_places(
    anchors: Sequence[Anchor], pages: Pages, places: NotePlaces, columns: Int64, axis: ScoreAxis
) -> list[StopPin]:
    """Find the places of anchors on the course of page images.

    Parameters
    ----------
    anchors : sequence of Anchor
    pages : Pages
    places : NotePlaces
    columns : np.ndarray of int [shape=(P,)]
        The columns of the score in the order in which they are played.
    axis : ScoreAxis

    Returns
    -------
    list of StopPin
    """
    first, last = axis.columns[columns[places.first]], axis.columns[columns[places.last]]
    system, x = first["system"], (first["x0"] + last["x1"]).astype(np.float64) / 2
    run = _runs(system, x)
    pins = []
    for anchor in anchors:
        if anchor.note is not None:
            raise InputError(f"{anchor.name}: page images have no notes; anchor a measure or a place")
        if anchor.place is not None:
            here, at = _system_at(anchor, pages)
            own = _time(anchor, system == here, run)
            pins.append(StopPin(int(own[np.abs(x[own] - at).argmin()]), anchor.second, name=anchor.name))
            continue
        box = _printed_measure(anchor, pages)
        own = _time(anchor, system == box["system"], run)
        inside = own[(x[own] >= box["x0"]) & (x[own] < box["x1"])]
        after = own[x[own] >= box["x1"]]
        stop = int(inside[0]) if len(inside) else int(after[0]) if len(after) else int(own[-1]) + 1
        if stop < len(x):
            pins.append(StopPin(stop, anchor.second, bool(len(inside)), anchor.name))
    return pins


def _pin_at_beat(anchor: Anchor, start: Float64, beat: float) -> StopPin:
    at = np.flatnonzero(np.abs(start - beat) < _SAME_BEAT)
    if len(at):
        return StopPin(int(at[-1]), anchor.second, True, anchor.name)  # grace notes come before
    return StopPin(int(np.searchsorted(start, beat)), anchor.second, False, anchor.name)


def _played_measure(anchor: Anchor, measures: Table) -> np.void:
    """Return a measure as it is played for the time that an anchor says."""
    times = measures[measures["number"] == anchor.measure]
    if not len(times):
        raise InputError(_unknown_measure(anchor, measures))
    if anchor.time > len(times):
        often = "once" if len(times) == 1 else f"{len(times)} times"
        raise InputError(f"{anchor.name}: the recording plays measure {anchor.measure} {often}")
    chosen: np.void = times[anchor.time - 1]
    return chosen


def _printed_measure(anchor: Anchor, pages: Pages) -> np.void:
    if not len(pages.measures):
        raise InputError(
            f"{anchor.name}: no measures are known on these pages; anchor places instead, with columns page, x "
            "and y"
        )
    found = pages.measures[pages.measures["number"] == anchor.measure]
    if not len(found):
        raise InputError(_unknown_measure(anchor, pages.measures))
    box: np.void = found[0]
    return box


def _unknown_measure(anchor: Anchor, measures: Table) -> str:
    numbers = list(dict.fromkeys(str(number) for number in measures["number"]))
    return f"{anchor.name} is not in the score, whose measures are numbered {numbers[0]} to {numbers[-1]}"


def _system_at(anchor: Anchor, pages: Pages) -> tuple[int, float]:
    """Return the system of a place, and its x on the deskewed page."""
    assert anchor.place is not None  # noqa: S101
    page, x, y = anchor.place
    own = pages.systems[pages.systems["page"] == page]
    if not len(own):
        raise InputError(f"{anchor.name}: page {page} has no systems; pages are counted from 0")
    at_x, at_y = (float(value) for value in places_to_deskewed(pages.skews, page, x, y))
    miss = np.maximum(np.maximum(own["y0"] - at_y, at_y - own["y1"]), 0.0)
    return int(own["system"][miss.argmin()]), at_x


def _nearest_note(anchor: Anchor, pages: Pages, notes: Table) -> int:
    system, x = _system_at(anchor, pages)
    own = np.flatnonzero(notes["system"] == system)
    if not len(own):
        raise InputError(f"{anchor.name}: no note is near it")
    middle = (notes["x0"][own] + notes["x1"][own]) / 2
    nearest = own[np.flatnonzero(np.abs(middle - x) < np.abs(middle - x).min() + 0.5)]
    return int(nearest[min(anchor.time, len(nearest)) - 1])


def _runs(system: Int64, x: Float64) -> Int64:
    """Count runs through systems: a new one begins where the music changes the system, or goes back."""
    return np.append(0, np.cumsum((np.diff(system) != 0) | (np.diff(x) < 0)))


def _time(anchor: Anchor, here: Bool, run: Int64) -> Int64:
    """Return the places of a system in the run that an anchor asks for."""
    runs = np.unique(run[here])
    if anchor.time > len(runs):
        often = "not" if not len(runs) else "once" if len(runs) == 1 else f"{len(runs)} times"
        raise InputError(f"{anchor.name}: its system is {often} played")
    return np.flatnonzero(here & (run == runs[anchor.time - 1]))
