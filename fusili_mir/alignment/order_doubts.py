"""What speaks against the order in which measures are taken to be played, in one line each.

The signs on images may be misread, words such as *da capo* are not read at all, and people mistype the measures
that they give. The alignment shows it: it takes steps that no sign leads to, much of the recording is like none
of the measures, or many measures are not heard.
"""

from __future__ import annotations

import numpy as np

from fusili_mir.alignment.column_order import unwritten_steps
from fusili_mir.alignment.results import Alignment
from fusili_mir.arrays import Bool
from fusili_mir.pages.pages import Pages
from fusili_mir.scores.playing_graph import playing_graph
from fusili_mir.scores.playing_order import write_playing_order
from fusili_mir.scores.unfolding import Stretches

__all__ = ["doubt_of_silence", "doubt_of_steps", "doubt_of_strange_sounds"]

_MOST_STRANGE = 0.25  # of the time that sounds; 0 to 0.02 in a song, 0.3 and more if half of it is given
_LEAST_HEARD = 0.75  # of the measures that are given


def doubt_of_steps(pages: Pages, stretches: Stretches) -> str | None:
    """Return where a recording goes on at measures that no sign on the images leads to, if it does."""
    if pages.repeats is None or len(stretches) < 2:
        return None
    steps = unwritten_steps(stretches, playing_graph(pages.repeats))
    if not steps:
        return None
    numbers = pages.measures["number"].tolist()
    found = ", ".join(f"from measure {numbers[last]} to {numbers[first]}" for last, first in steps[:3])
    more = f" and {len(steps) - 3} more" if len(steps) > 3 else ""
    return (
        f"the recording goes {found}{more}, where no sign was read on the pages; if that is wrong, say what is "
        f"played: repeats {write_playing_order(stretches, numbers)!r} is what was found"
    )


def doubt_of_strange_sounds(alignment: Alignment, is_silent: Bool) -> str | None:
    """Return how much of a recording sounds like none of the measures that are played, if it is much."""
    is_strange, frame_sec = alignment.path.is_filler & ~is_silent, alignment.grid.frame_sec
    strange_sec, all_sec = (float(frames.sum()) * frame_sec for frames in (is_strange, ~is_silent))
    if strange_sec <= _MOST_STRANGE * all_sec:
        return None
    played = alignment.repeats
    order = "" if played in (None, "none") else f", {played!r}"
    return (
        f"{strange_sec:.0f} of {all_sec:.0f} s of the recording are unlike the measures that are played{order}; "
        "if others are played, name them all with repeats, or let jumps look for them"
    )


def doubt_of_silence(alignment: Alignment) -> str | None:
    """Return how many of the measures that are said to be played are not heard, if they are many."""
    n_heard = int(np.isfinite(alignment.measures["start_sec"]).sum())
    n_given = len(alignment.measures)
    if alignment.stretches is not None:
        n_given = sum(stop - first for first, stop in alignment.stretches)
    if n_heard >= _LEAST_HEARD * n_given:
        return None
    return (
        f"{n_heard} of the {n_given} measures that repeats name are heard; unless the recording is an excerpt, "
        "name only those that are played"
    )
