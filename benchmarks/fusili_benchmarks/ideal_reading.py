"""An ideal reader of one segment: hears and reads every note, but only so far around.

It knows which pitches are struck in the context of a frame, so many seconds to either side, and around each place
in the score; it chooses among the places whose struck pitches are the same in the same order, and is right by
chance where there are several.
"""

from __future__ import annotations

import numpy as np

from fusili_mir.arrays import Float64, Int64
from fusili_mir.geometry import FrameGrid, PatchGrid
from fusili_training.placed_notes import sounding_patches
from fusili_training.truth import TruthArray

__all__ = ["ideal_reading"]

TOGETHER_SEC = 0.06  # heads struck within this time are one chord


def ideal_reading(truth: TruthArray, patches: PatchGrid, frames: FrameGrid, context_sec: float) -> Float64:
    """Return the probability that an ideal reader is right, for each judged frame [shape=(M',)]."""
    right = sounding_patches(truth, patches, frames)
    struck = np.sort(truth[truth["struck"]], order="onset_sec")
    first = np.flatnonzero(np.diff(struck["onset_sec"], prepend=-np.inf) > TOGETHER_SEC)
    chords = [frozenset(part["pitch"].tolist()) for part in np.split(struck, first[1:])]
    onset_sec = struck["onset_sec"][first]
    columns = patches.index((struck["x0"][first] + struck["x1"][first]) / 2, np.full(len(first), 1.0))
    seconds = (np.arange(right.shape[1]) + 0.5) * frames.frame_sec
    now = np.maximum(np.searchsorted(onset_sec, seconds, side="right") - 1, 0)
    before = now - np.searchsorted(onset_sec, seconds - context_sec)
    after = np.searchsorted(onset_sec, seconds + context_sec) - 1 - now
    shares = np.empty(len(seconds))
    for frame, (stop, back, on) in enumerate(
        zip(now, np.maximum(before, 0), np.maximum(after, 0), strict=True)
    ):
        alike = _same_context(chords, int(stop), int(back), int(on))
        shares[frame] = right[columns[alike], frame].mean()
    return shares


def _same_context(chords: list[frozenset[int]], stop: int, back: int, on: int) -> Int64:
    """Return the stops around which the same chords are struck in the same order, the stop itself among them."""
    wanted = chords[stop - back : stop + on + 1]
    return np.array(
        [
            other
            for other in range(back, len(chords) - on)
            if chords[other] == chords[stop] and chords[other - back : other + on + 1] == wanted
        ]
    )
