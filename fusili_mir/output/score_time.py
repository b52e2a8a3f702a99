"""Score time in quarter notes, for formats that count in them: partitura's beats depend on the time signature."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fusili_mir.alignment.results import Alignment
from fusili_mir.alignment.tempo_map import TempoMap
from fusili_mir.arrays import Float64, Int64

__all__ = ["ScoreTime", "occurrences", "score_time"]

_MIN_GAP_SEC = 0.01  # onsets of the score that are heard closer together do not define a tempo


@dataclass(frozen=True)
class ScoreTime:
    """When notes and measures are played, in quarter notes of the unfolded score.

    Attributes
    ----------
    onset_quarter, offset_quarter : np.ndarray [shape=(n_notes,)]
        For each row of `Alignment.notes`.
    measure_start_quarter, measure_end_quarter : np.ndarray [shape=(n_measures,)]
        For each row of `Alignment.measures`.
    signatures : list of (int, int)
        Time signature of each row of `Alignment.measures`: number of beats, and type of a beat.
    tempo : TempoMap
        Quarters and seconds of the onsets that were heard, with strictly increasing seconds.
    """

    onset_quarter: Float64
    offset_quarter: Float64
    measure_start_quarter: Float64
    measure_end_quarter: Float64
    signatures: list[tuple[int, int]]
    tempo: TempoMap

    @property
    def bar_quarters(self) -> Float64:
        """Length of each measure by its time signature; pick-ups and measures before repeats may be shorter."""
        return np.array([4 * beats / beat_type for beats, beat_type in self.signatures])


def score_time(alignment: Alignment) -> ScoreTime:
    """Find the score time of an alignment with a symbolic score, of which at least one note was heard."""
    assert alignment.played is not None  # noqa: S101
    part = alignment.played.score.parts[0]
    # Each access to a map of a part makes it anew.
    to_division, to_quarter, to_signature = part.inv_beat_map, part.quarter_map, part.time_signature_map
    notes, measures = alignment.notes, alignment.measures

    def quarters(beats: Float64) -> Float64:
        return np.asarray(to_quarter(to_division(beats)), dtype=np.float64).round(6)

    onset = quarters(notes["onset_beat"])
    signatures = np.atleast_2d(to_signature(to_division(measures["start_beat"])))[:, :2]
    return ScoreTime(
        onset,
        quarters(notes["onset_beat"] + notes["duration_beat"]),
        quarters(measures["start_beat"]),
        quarters(measures["end_beat"]),
        [(int(beats), int(beat_type)) for beats, beat_type in signatures],
        _tempo(onset, notes["onset_sec"], notes["is_grace"]),
    )


def occurrences(measure: Int64) -> Int64:
    """Count how often each measure was played before.

    >>> occurrences(np.array([0, 1, 2, 1, 3])).tolist()
    [0, 0, 0, 1, 0]
    """
    seen: dict[int, int] = {}
    counts = []
    for each in measure.tolist():
        counts.append(seen.get(each, 0))
        seen[each] = counts[-1] + 1
    return np.array(counts, dtype=np.int64)


def _tempo(quarter: Float64, second: Float64, is_grace: npt.NDArray[np.bool_]) -> TempoMap:
    """Pair each onset of the score with the first second at which one of its notes begins."""
    heard = np.isfinite(second)
    usable = heard & ~is_grace if np.any(heard & ~is_grace) else heard
    order = np.lexsort((second[usable], quarter[usable]))
    quarters, first = np.unique(quarter[usable][order], return_index=True)
    seconds = second[usable][order][first]
    kept: list[int] = []
    for row in range(len(quarters)):
        if not kept or seconds[row] >= seconds[kept[-1]] + _MIN_GAP_SEC:
            kept.append(row)
    return TempoMap(quarters[kept], seconds[kept])
