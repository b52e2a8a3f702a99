"""Times of a result against the truth: how far off they are, how sure they were, whether their intervals hold.

Notes, measures and frames are judged alike, with the score and from images.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from fusili_benchmarks.calibration import area_under_curve, calibration_error, reliability_table
from fusili_benchmarks.performances import Performance, first_onsets
from fusili_mir.alignment.passed_measures import measures_at
from fusili_mir.alignment.position_maps import PlaceCertainty
from fusili_mir.alignment.results import Alignment
from fusili_mir.arrays import Bool, Float64, Table
from fusili_mir.decoding.certainty import INTERVAL_PROBABILITY, NEAR_SEC

__all__ = ["KINDS", "JudgedTimes", "judge", "judged_report", "moments_of_heads"]

KINDS = ("notes", "measures", "frames")
_SAME_BEAT = 1e-4
_BACK_SEC = -0.05  # heads of a system that sound in another order are repeated, and left out
_BESIDE_HEADS, _TOGETHER_SEC = 1.5, 0.05  # widths of a head, and seconds, within which heads are of one chord
_APART_SEC = 1.0  # between heads that are further apart, nobody knows where the music is
_EDGES = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 1.01)


@dataclass(frozen=True)
class JudgedTimes:
    """Times whose truth is known; all of shape (n,).

    Attributes
    ----------
    said : np.ndarray
        Probability of being right to 0.1 s.
    if_right_piece : np.ndarray
        The same, given that the recording is of the score.
    errors_sec : np.ndarray
        Absolute errors.
    holds : np.ndarray of bool
        Whether the interval holds the truth.
    half_sec : np.ndarray
        Half its length.
    """

    said: Float64
    if_right_piece: Float64
    errors_sec: Float64
    holds: Bool
    half_sec: Float64

    @classmethod
    def of(
        cls, found_sec: Float64, sure: PlaceCertainty, true_sec: Float64, reliability: float
    ) -> JudgedTimes:
        """Judge those of some times that were found, and whose truth is known."""
        known = np.isfinite(found_sec) & np.isfinite(true_sec)
        said = sure.confidence[known].astype(np.float64)
        return cls(
            said,
            said / reliability,
            np.abs(found_sec - true_sec)[known],
            ((sure.earliest_sec <= true_sec) & (true_sec <= sure.latest_sec))[known],
            (sure.latest_sec - sure.earliest_sec)[known] / 2,
        )

    @classmethod
    def joined(cls, parts: Sequence[JudgedTimes]) -> JudgedTimes:
        """Put parts one after another."""
        return cls(*(np.concatenate([getattr(part, each.name) for part in parts]) for each in fields(cls)))

    @property
    def is_right(self) -> Bool:
        """Whether each is right to 0.1 s."""
        return np.asarray(self.errors_sec <= NEAR_SEC)


def judge(alignment: Alignment, performance: Performance) -> dict[str, JudgedTimes]:
    """Judge notes, measures and frames of a result, from whatever it was made.

    From images, a note is the first playing of a head, and a measure begins with its first head.
    """
    has_score = alignment.played is not None
    notes = _notes(alignment, performance) if has_score else _heads(alignment, performance)
    measures = _measures(alignment, performance) if has_score else _passed(alignment, performance)
    return {"notes": notes, "measures": measures, "frames": _frames(alignment, performance)}


def judged_report(judged: JudgedTimes) -> str:
    """Return a reliability diagram, and how often intervals hold, as tables."""
    right, said = judged.is_right, judged.said
    lines = [
        reliability_table(right, said, _EDGES),
        f"\n{len(right)} times, {100 * right.mean():.1f} % right: area under the curve "
        f"{area_under_curve(right, said):.3f}, calibration error {100 * calibration_error(right, said):.1f} "
        f"points; if the piece is right, {area_under_curve(right, judged.if_right_piece):.3f}\n",
        f"| said | interval of {100 * INTERVAL_PROBABILITY:.0f} % holds | median of its half width |",
        "| --- | --- | --- |",
    ]
    for low, high in ((0.0, 0.5), (0.5, 0.9), (0.9, 0.98), (0.98, 1.01), (0.0, 1.01)):
        some = (said >= low) & (said < high)
        if some.any():
            name = f"{100 * low:.0f} to {100 * min(high, 1):.0f} %"
            held, half_ms = 100 * judged.holds[some].mean(), 1000 * np.median(judged.half_sec[some])
            lines.append(f"| {name} | {held:.1f} % | {half_ms:.0f} ms |")
    return "\n".join(lines)


def _of_rows(alignment: Alignment, rows: Table, found_sec: Float64, true_sec: Float64) -> JudgedTimes:
    sure = PlaceCertainty(rows["confidence"], rows["earliest_sec"], rows["latest_sec"])
    return JudgedTimes.of(found_sec, sure, true_sec, alignment.reliability)


def _true_seconds(alignment: Alignment, performance: Performance) -> Float64:
    true = performance.true
    ids = [str(note) for note in alignment.notes["id"]]
    return np.array([true.get(each, true.get(f"{each}-1", np.nan)) for each in ids])


def _notes(alignment: Alignment, performance: Performance) -> JudgedTimes:
    notes = alignment.notes
    return _of_rows(alignment, notes, notes["onset_sec"], _true_seconds(alignment, performance))


def _heads(alignment: Alignment, performance: Performance) -> JudgedTimes:
    boxes, true_sec = first_onsets(performance.pages, performance.true)
    place = boxes["page"], (boxes["x0"] + boxes["x1"]) / 2, (boxes["y0"] + boxes["y1"]) / 2
    found_sec = alignment.position_maps.position_to_seconds(*place)
    return JudgedTimes.of(found_sec, alignment.certainty_at(*place), true_sec, alignment.reliability)


def _measures(alignment: Alignment, performance: Performance) -> JudgedTimes:
    """Judge measures that begin with notes by the middle one of their times."""
    true_sec, notes, measures = _true_seconds(alignment, performance), alignment.notes, alignment.measures
    begin_sec = np.full(len(measures), np.nan)
    known = np.isfinite(true_sec) & ~notes["is_grace"]
    onset_beat = notes["onset_beat"]
    for row, start_beat in enumerate(measures["start_beat"]):
        begins = known & (np.abs(onset_beat - start_beat) < _SAME_BEAT)
        if begins.any():
            begin_sec[row] = np.median(true_sec[begins])
    return _of_rows(alignment, measures, measures["start_sec"], begin_sec)


def _passed(alignment: Alignment, performance: Performance) -> JudgedTimes:
    """Judge the first playing of each measure of images by the middle one of the times of its leftmost heads."""
    boxes, true_sec = first_onsets(performance.pages, performance.true)
    middle = (boxes["x0"].astype(np.float64) + boxes["x1"]) / 2
    printed = alignment.pages.measures
    measure = printed["measure"][measures_at(printed, boxes["system"], middle)]
    _, first = np.unique(alignment.measures["measure"], return_index=True)
    rows = alignment.measures[first]
    begin_sec = np.full(len(rows), np.nan)
    for row, each in enumerate(rows["measure"]):
        own = np.flatnonzero(measure == each)
        if len(own):
            width = np.median(boxes["x1"][own] - boxes["x0"][own])
            begin_sec[row] = np.median(true_sec[own][middle[own] < middle[own].min() + width / 2])
    return _of_rows(alignment, rows, rows["start_sec"], begin_sec)


def _frames(alignment: Alignment, performance: Performance) -> JudgedTimes:
    """Judge the places of frames, in which the score is heard.

    The truth between two heads of a system is taken to move evenly from one to the other, as frames do. Systems
    that are played more than once are left out, since a frame does not say which playing it is of.
    """
    again = {note.rsplit("-", 1)[0] for note in performance.true if not note.endswith("-1")}
    boxes, true_sec = first_onsets(performance.pages, performance.true)
    is_repeated = np.array([str(note) in again for note in boxes["notated_id"]])
    middle = ((boxes["x0"].astype(np.float64) + boxes["x1"]) / 2).round()
    width = boxes["x1"] - boxes["x0"]
    frames = alignment.frames
    frame_sec = alignment.grid.centre(np.arange(len(frames)))
    is_music = ~alignment.path.is_filler
    begin_sec = np.full(len(frames), np.nan)
    for system in np.unique(boxes["system"]):
        own = boxes["system"] == system
        places, seconds = moments_of_heads(middle[own], true_sec[own], float(np.median(width[own])))
        inside = is_music & (frames["system"] == system)
        inside &= (frames["x"] >= places[0]) & (frames["x"] <= places[-1])
        if len(places) > 1 and np.all(np.diff(seconds) > _BACK_SEC) and not is_repeated[own].any():
            after = np.searchsorted(places, frames["x"], side="right").clip(1, len(places) - 1)
            inside &= np.diff(seconds)[after - 1] < _APART_SEC
            begin_sec[inside] = np.interp(frames["x"][inside], places, seconds)
    return _of_rows(alignment, frames, frame_sec, begin_sec)


def moments_of_heads(middle: Float64, true_sec: Float64, head_px: float) -> tuple[Float64, Float64]:
    """Return the places of a system from left to right at which something begins, and when.

    A head that a chord has beside the others, since they are a second apart, begins with them where they are.
    """
    places, number = np.unique(middle, return_inverse=True)
    seconds = np.array([np.median(true_sec[number == each]) for each in range(len(places))])
    kept = [0]
    for each in range(1, len(places)):
        is_beside = places[each] - places[kept[-1]] < _BESIDE_HEADS * head_px
        if not (is_beside and abs(seconds[each] - seconds[kept[-1]]) < _TOGETHER_SEC):
            kept.append(each)
    return places[kept], seconds[kept]
