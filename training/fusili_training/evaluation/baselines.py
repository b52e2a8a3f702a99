"""What a number has to beat: guessing, reading at an even pace, and the same model on shuffled frames."""

from __future__ import annotations

import math

import numpy as np

from fusili_mir.arrays import Float32, Float64
from fusili_mir.geometry import PatchGrid
from fusili_training.evaluation.judging_grid import JudgingGrid
from fusili_training.evaluation.local import LocalCounts
from fusili_training.evaluation.matching_rules import EXACT, MatchingRule
from fusili_training.placed_notes import sounding_patches
from fusili_training.random_streams import random_stream
from fusili_training.truth import TruthArray

__all__ = [
    "chance_local",
    "even_reading",
    "main_row",
    "shuffled_frames",
    "straight_line",
]


def chance_local(truth: TruthArray, grid: JudgingGrid, rule: MatchingRule = EXACT) -> LocalCounts:
    """Return the counts expected from guessing each frame's patch, with the perplexity of a uniform guess."""
    right = rule.asked(sounding_patches(truth, grid.patches, grid.frames), grid.patches)
    candidates = rule.candidates(grid.patches)
    n_candidates, n_asked = int(candidates.sum()), int(right.any(axis=0).sum())
    matching = rule.asked(rule.widen(right, grid.patches), grid.patches)
    return LocalCounts(
        n_asked, float(matching.sum()) / n_candidates, n_asked, n_asked * math.log(n_candidates)
    )


def straight_line(truth: TruthArray, grid: JudgingGrid) -> Float32:
    """Return similarities [shape=(N, M)] of a reader who moves through the segment at an even pace.

    The reader follows the row with the most note heads, and reaches the right edge with the last note.
    """
    n_judged = sounding_patches(truth, grid.patches, grid.frames).shape[1]
    pace = (np.arange(len(grid.frames)) + 0.5) / max(1, n_judged)
    columns = (np.arange(grid.patches.cols) + 0.5) / grid.patches.cols
    return even_reading(columns, pace, grid.patches, main_row(truth, grid.patches))


def even_reading(columns: Float64, frames: Float64, patches: PatchGrid, row: int) -> Float32:
    """Return how near each frame is to the patches of a row [shape=(N, M)]; -2 for the patches of other rows.

    Parameters
    ----------
    columns, frames : np.ndarray [shape=(cols,), (M,)]
        Position of each column and each frame in the whole, from 0 to 1.
    patches : PatchGrid
    row : int
    """
    similarity = np.full((patches.rows, patches.cols, len(frames)), -2.0, dtype=np.float32)
    similarity[row] = -np.abs(columns[:, None] - frames)
    return similarity.reshape(len(patches), len(frames))


def main_row(truth: TruthArray, patches: PatchGrid) -> int:
    """Return the row of patches with the most note heads."""
    patch = patches.index((truth["x0"] + truth["x1"]) / 2, (truth["y0"] + truth["y1"]) / 2)
    return int(np.bincount(patch[patch >= 0] // patches.cols, minlength=patches.rows).argmax())


def shuffled_frames(similarity: Float32, n_judged: int, key: str) -> Float32:
    """Shuffle the first `n_judged` frames of a similarity matrix [shape=(N, M)]; a key always gives one order."""
    order = np.arange(similarity.shape[1])
    order[:n_judged] = random_stream(0, "shuffled", key).permutation(n_judged)
    return similarity[:, order]
