"""Repeat signs that are written in one part and apply to all.

Programs often write endings, segno, coda and the like into the first part only. Parts unfolded one by one would
then take different paths.
"""

from __future__ import annotations

import copy

from partitura import score as ps

from fusili_mir.scores.part_times import quarters_of, times_of

__all__ = ["share_repeat_signs"]

_SIGNS = (ps.Repeat, ps.Ending, ps.Segno, ps.DalSegno, ps.Coda, ps.ToCoda, ps.DaCapo, ps.Fine)


def share_repeat_signs(score: ps.Score) -> None:
    """Copy the signs of each kind, in place, from the first part that has any to the parts that have none."""
    for kind in _SIGNS:
        source = next((part for part in score.parts if any(part.iter_all(kind))), None)
        if source is None:
            continue
        signs = list(source.iter_all(kind))
        quarters = quarters_of(source)
        for part in score.parts:
            if not any(part.iter_all(kind)):
                time = times_of(part)
                for sign in signs:
                    end = None if sign.end is None else time(float(quarters(sign.end.t)))
                    part.add(_copy(sign), time(float(quarters(sign.start.t))), end)


def _copy(sign: ps.TimedObject) -> ps.TimedObject:
    fresh = copy.copy(sign)
    fresh.start = fresh.end = None
    return fresh
