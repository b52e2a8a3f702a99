"""Fitting how sure the times of notes are: their probability of being right to 0.1 s, and their interval."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

import numpy as np

from fusili_benchmarks.calibration import fit_logistic, fit_quantile
from fusili_benchmarks.performances import Performance, first_onsets
from fusili_mir.alignment.playing_course import playing_course
from fusili_mir.alignment.position_maps import get_position_maps
from fusili_mir.alignment.results import Alignment
from fusili_mir.arrays import Bool, Float64, Int64
from fusili_mir.audio.onset_map import pitch_index
from fusili_mir.decoding.certainty import INTERVAL_PROBABILITY, NEAR_SEC, STOP_CLUES, StopWeights
from fusili_mir.errors import InputError

__all__ = ["SeenNotes", "fit_certainty", "notes_from_images", "notes_with_score"]

_LEAST_SEC, _MOST_SEC = 0.001, 60.0  # errors are counted as at least and at most so much
_ACTIVATION = STOP_CLUES.index("activation")


@dataclass(frozen=True)
class SeenNotes:
    """The notes of a performance that have a time.

    Attributes
    ----------
    group : str
        What is held out together: the composer.
    clues : np.ndarray [shape=(n, n_clues)]
    errors_sec : np.ndarray [shape=(n,)]
        Absolute errors.
    """

    group: str
    clues: Float64
    errors_sec: Float64

    @property
    def log_errors(self) -> Float64:
        """Logarithms of the errors."""
        return np.asarray(np.log(np.clip(self.errors_sec, _LEAST_SEC, _MOST_SEC)))


def notes_with_score(
    alignment: Alignment, performance: Performance, bias_sec: float, group: str
) -> SeenNotes:
    """Return the clues to the notes of a score: those to their stops, and how clear their own pitches are."""
    played, path = alignment.played, alignment.path
    if played is None or path.clues is None:
        raise InputError("expected an alignment with a symbolic score")
    row_of = {str(note): row for row, note in enumerate(alignment.notes["id"])}
    rows = np.array([row_of.get(each, row_of.get(each.removesuffix("-1"), -1)) for each in performance.true])
    true_sec = np.array(list(performance.true.values()))
    stop = playing_course(played, alignment.axis).stop_of_note[rows]
    place, is_timed = _places(path.clues.stops, stop)
    onset_sec = alignment.notes["onset_sec"][rows]
    used = (rows >= 0) & np.isfinite(onset_sec) & is_timed & (stop >= 0)
    clues = path.clues.of_stops[place[used]].copy()
    activations = performance.audio.onsets.at(onset_sec[used] + bias_sec)
    clues[:, _ACTIVATION] = activations[
        np.arange(len(clues)), pitch_index(alignment.notes["pitch"][rows][used])
    ]
    return SeenNotes(group, clues, np.abs(onset_sec - true_sec)[used])


def notes_from_images(alignment: Alignment, performance: Performance, group: str) -> SeenNotes:
    """Return the clues to the first playing of each note head on images: those to the place that it lies on."""
    clues, moments = alignment.path.clues, alignment.moments
    if clues is None or moments is None:
        raise InputError("expected an alignment of images with its clues")
    boxes, true_sec = first_onsets(performance.pages, performance.true)
    x, y = (boxes["x0"] + boxes["x1"]) / 2, (boxes["y0"] + boxes["y1"]) / 2
    found_sec = alignment.position_maps.position_to_seconds(boxes["page"], x, y)
    errors_sec = np.abs(found_sec - true_sec)
    numbered = replace(moments, seconds=np.arange(len(moments.seconds), dtype=np.float64))
    maps = get_position_maps(alignment.frames, numbered, alignment.pages.skews)
    number = np.nan_to_num(maps.position_to_seconds(boxes["page"], x, y))
    # Moments are those of successive stops, the first one that was heard and all after it.
    place, is_timed = _places(clues.stops, clues.stops[0] + number.astype(np.int64))
    used = np.isfinite(errors_sec) & is_timed & (number == np.floor(number))
    return SeenNotes(group, clues.of_stops[place[used]], errors_sec[used])


def fit_certainty(notes: Sequence[SeenNotes]) -> dict[str, dict[str, float]]:
    """Fit both regressions to all notes; as a table for a manifest."""
    clues = np.concatenate([each.clues for each in notes])
    right = np.concatenate([each.errors_sec <= NEAR_SEC for each in notes])
    logarithms = np.concatenate([each.log_errors for each in notes])
    return {
        "right": _table(fit_logistic(clues, right)),
        "margin": _table(fit_quantile(clues, logarithms, INTERVAL_PROBABILITY)),
    }


def _places(timed: Int64, stops: Int64) -> tuple[Int64, Bool]:
    """Return where stops are among those that were timed, and whether they are."""
    place = np.clip(np.searchsorted(timed, stops), 0, len(timed) - 1)
    return place, timed[place] == stops


def _table(weights: Float64) -> dict[str, float]:
    named = dict(zip((*STOP_CLUES, "base"), weights.tolist(), strict=True))
    return asdict(StopWeights(**{name: round(weight, 4) for name, weight in named.items()}))
