"""Parts whose measures differ in length, brought back in step.

partitura gives a measure of a part the length of its content. If a measure is incomplete in one part only, that
part is early from there on, and notes that are printed below each other do not sound together.
"""

from __future__ import annotations

import warnings
from itertools import pairwise

import numpy as np
from partitura import score as ps

from fusili_mir.arrays import Float64
from fusili_mir.scores.part_copies import copy_elements
from fusili_mir.scores.score_warning import ScoreWarning

__all__ = ["share_measure_lengths"]

_SAME_QUARTER = 1e-3


def share_measure_lengths(score: ps.Score, filename: str) -> None:
    """Let each measure last as long in every part as in the one where it is longest, in place.

    Parts that are early are replaced by copies; ids stay. A score whose parts have different numbers of measures
    stays as it is.

    Warns
    -----
    ScoreWarning
        If parts were out of step.
    """
    measures = [list(part.iter_all(ps.Measure)) for part in score.parts]
    if len(score.parts) < 2 or len({len(own) for own in measures}) > 1 or not measures[0]:
        return
    edges = np.stack([_edges(part, own) for part, own in zip(score.parts, measures, strict=True)])
    if np.ptp(edges[:, :-1] - edges[:, :1], axis=0).max() < _SAME_QUARTER:
        return
    lengths = np.diff(edges, axis=1).max(axis=0)
    starts = np.append(0.0, np.cumsum(lengths))
    uneven = np.flatnonzero(np.ptp(np.diff(edges, axis=1), axis=0) > _SAME_QUARTER)
    for number, part in enumerate(score.parts):
        score.parts[number] = _stretched(part, measures[number], edges[number], starts)
    score.part_structure = list(score.parts)
    first = measures[0][int(uneven[0])]
    warnings.warn(
        f"{filename}: {len(uneven)} measures are longer in one part than in another (first: {first.name}); the "
        "shorter ones are filled up, so that the parts stay together",
        ScoreWarning,
        stacklevel=4,
    )


def _edges(part: ps.Part, measures: list[ps.Measure]) -> Float64:
    """Return where the measures of a part begin, and where the last one ends, in quarters."""
    times = [*(measure.start.t for measure in measures), measures[-1].end.t]
    return np.asarray(part.quarter_map(times), dtype=np.float64)


def _stretched(part: ps.Part, measures: list[ps.Measure], edges: Float64, starts: Float64) -> ps.Part:
    """Return a copy of a part whose measures begin at other times, in quarters from the first one."""
    if np.abs(edges[:-1] - edges[0] - starts[:-1]).max() < _SAME_QUARTER:
        return part
    divisions = part.quarter_durations()
    times = np.array([measure.start.t for measure in measures])
    late_quarter = starts[:-1] - (edges[:-1] - edges[0])
    late = np.round(late_quarter * part.quarter_duration_map(times)).astype(int)
    late = np.maximum.accumulate(late)
    copied = ps.Part(part.id, part.part_name, part.part_abbreviation)

    def rescale(time: int, ends: bool = False) -> int:
        measure = int(np.searchsorted(times, time, "left" if ends else "right")) - 1
        return int(time) + int(late[max(0, measure)])

    for time, quarter in divisions:
        copied.set_quarter_duration(rescale(int(time)), int(quarter))
    copy_elements(part, copied, rescale, rescale_end=lambda time: rescale(time, ends=True))
    filled = list(copied.iter_all(ps.Measure))
    for measure, following in pairwise(filled):
        copied.remove(measure, "end")
        copied.add(measure, None, following.start.t)
    return copied
