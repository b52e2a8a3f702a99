"""Merging the parts of a score into one, as partitura's alignment files and time maps expect.

`partitura.save_match` writes only the first part of a score, and `Score.note_array` changes note ids if there are
several. Here all parts become one, and every note keeps its id.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable

import partitura as pt

from fusili_mir.scores.part_copies import copy_elements
from fusili_mir.scores.part_times import quarters_of

__all__ = ["merge_score"]

# Elements that a score has once, not once per part.
_SHARED = (
    pt.score.Measure,
    pt.score.TimeSignature,
    pt.score.KeySignature,
    pt.score.Barline,
    pt.score.Tempo,
    pt.score.Repeat,
    pt.score.Ending,
    pt.score.DaCapo,
    pt.score.DalSegno,
    pt.score.Fine,
    pt.score.ToCoda,
    pt.score.Page,
    pt.score.System,
    pt.score.Segment,
)


def merge_score(score: pt.score.Score) -> pt.score.Score:
    """Put all parts of a score into one part.

    Parameters
    ----------
    score : partitura.score.Score
        The score; its note ids must be unique across all parts. It is left unchanged.

    Returns
    -------
    partitura.score.Score
        The score with one part, whose staves and voices are numbered on from part to part. A score of one part
        is returned as it is.
    """
    if len(score.parts) == 1:
        return score
    divisions = math.lcm(*(int(d) for part in score.parts for _, d in part.quarter_durations()))
    merged = pt.score.Part(score.parts[0].id, part_name=score.parts[0].part_name)
    merged.set_quarter_duration(0, divisions)
    n_staves = n_voices = 0
    for number, part in enumerate(score.parts):
        staves, voices = [0], [0]
        for copied in copy_elements(part, merged, _rescaling(part, divisions), _SHARED if number else ()):
            if getattr(copied, "staff", None) is not None:
                staves.append(copied.staff)
                copied.staff += n_staves
            if getattr(copied, "voice", None) is not None:
                voices.append(copied.voice)
                copied.voice += n_voices
        n_staves += max(staves)
        n_voices += max(voices)
    result = copy.copy(score)
    result.parts = [merged]
    return result


def _rescaling(part: pt.score.Part, divisions: int) -> Callable[[int], int]:
    """Return the map from times of a part to times of the merged part."""
    times, point = [], part.first_point
    while point is not None:
        times.append(point.t)
        point = point.next
    rescaled = [round(quarter * divisions) for quarter in quarters_of(part)(times).tolist()]
    return dict(zip(times, rescaled, strict=True)).__getitem__
