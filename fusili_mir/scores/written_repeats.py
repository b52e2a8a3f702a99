"""The repeat structure of a symbolic score, read from its first part.

`fusili_mir.scores.repeat_signs` has given all parts the same signs.
"""

from __future__ import annotations

import re

import numpy as np
import partitura as pt
from partitura import score as ps

from fusili_mir.arrays import Int64
from fusili_mir.scores.repeat_structure import Ending, Jump, RepeatStructure

__all__ = ["written_repeats"]


def written_repeats(score: pt.score.Score) -> RepeatStructure:
    """Read the repeats, endings and jumps of a score as notated.

    Parameters
    ----------
    score : partitura.score.Score
        The score as notated.

    Returns
    -------
    RepeatStructure
        Its measures are those of the first part, in order. Signs inside a measure count for the measure whose
        beginning or end is nearest.
    """
    part = score.parts[0]
    measures = sorted(part.iter_all(ps.Measure), key=lambda measure: measure.start.t)
    if not measures:
        return RepeatStructure(0)
    edges = np.array([measure.start.t for measure in measures] + [measures[-1].end.t])

    def begins(kind: type[ps.TimedObject]) -> list[int]:
        return sorted({_nearest(edges[:-1], sign.start.t) for sign in part.iter_all(kind)})

    def ends(kind: type[ps.TimedObject]) -> list[int]:
        return sorted({_nearest(edges[1:], sign.start.t) for sign in part.iter_all(kind)})

    repeats = [repeat for repeat in part.iter_all(ps.Repeat) if repeat.end is not None]
    segno = begins(ps.Segno)
    jumps = [Jump(after, 0) for after in ends(ps.DaCapo)]
    jumps += [
        Jump(after, max((place for place in segno if place <= after), default=0))
        for after in ends(ps.DalSegno)
    ]
    passages = {
        (_nearest(edges[:-1], repeat.start.t), _nearest(edges[1:], repeat.end.t)) for repeat in repeats
    }
    jumps = [
        jump for jump in jumps if (jump.to, jump.after) not in passages
    ]  # a sign and words for one repeat
    return RepeatStructure(
        n_measures=len(measures),
        begins=tuple(sorted({begin for begin, _ in passages})),
        ends=tuple(sorted({end for _, end in passages})),
        endings=_endings(part, edges),
        jumps=tuple(sorted(jumps, key=lambda jump: jump.after)),
        fine=tuple(ends(ps.Fine)),
        to_coda=tuple(ends(ps.ToCoda)),
        coda=tuple(begins(ps.Coda)),
    )


def _endings(part: ps.Part, edges: Int64) -> tuple[Ending, ...]:
    found = []
    for ending in part.iter_all(ps.Ending):
        if ending.end is None or ending.end.t <= ending.start.t:
            continue
        numbers = tuple(sorted({int(number) for number in re.findall(r"\d+", str(ending.number))}))
        first, last = _nearest(edges[:-1], ending.start.t), _nearest(edges[1:], ending.end.t)
        if last >= first:
            found.append(Ending(first, last + 1, numbers or (1,)))
    return tuple(sorted(found, key=lambda ending: ending.first))


def _nearest(edges: Int64, time: int) -> int:
    return int(np.abs(edges - time).argmin())
