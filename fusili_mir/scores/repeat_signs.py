"""Repeat signs that are written in one part and apply to all.

Programs often write endings, segno, coda and the like into the first part only. Parts unfolded one by one would
then take different paths.
"""

from __future__ import annotations

import copy

from partitura import score as ps

__all__ = ["share_repeat_signs"]

_SIGNS = (ps.Repeat, ps.Ending, ps.Segno, ps.DalSegno, ps.Coda, ps.ToCoda, ps.DaCapo, ps.Fine)


def share_repeat_signs(score: ps.Score) -> None:
    """Copy the signs of each kind, in place, from the first part that has any to the parts that have none."""
    for kind in _SIGNS:
        source = next((part for part in score.parts if any(part.iter_all(kind))), None)
        if source is None:
            continue
        signs = list(source.iter_all(kind))
        for part in score.parts:
            if not any(part.iter_all(kind)):
                for sign in signs:
                    end = None if sign.end is None else _same_time(sign.end.t, source, part)
                    part.add(_copy(sign), _same_time(sign.start.t, source, part), end)


def _copy(sign: ps.TimedObject) -> ps.TimedObject:
    fresh = copy.copy(sign)
    fresh.start = fresh.end = None
    return fresh


def _same_time(divisions: int, source: ps.Part, part: ps.Part) -> int:
    return round(float(part.inv_quarter_map(source.quarter_map(divisions))))
