"""What a number has to beat: guessing, reading at an even pace, and the same model on shuffled frames."""

from __future__ import annotations

import math

import numpy as np

from fusili_mir.arrays import Float32, Float64
from fusili_mir.geometry import PatchGrid
from fusili_training.evaluation.local import LocalCounts
from fusili_training.evaluation.matching_rules import EXACT, MatchingRule
from fusili_training.evaluation.scoring_grid import ScoringGrid
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


def chance_local(truth: TruthArray, grid: ScoringGrid, rule: MatchingRule = EXACT) -> LocalCounts:
    """Return what guessing each frame's patch gives on average; the perplexity is that of a uniform guess."""
    right = sounding_patches(truth, grid.patches, grid.frames)
    if not right.size:
        return LocalCounts()
    candidates = rule.candidates(grid.patches)
    n_candidates = int(candidates.sum())
    matching = rule.widen(right, grid.patches) & candidates[:, None]
    n_known = int((right & candidates[:, None]).any(axis=0).sum())
    return LocalCounts(
        right.shape[1], float(matching.sum()) / n_candidates, n_known, n_known * math.log(n_candidates)
    )


def straight_line(truth: TruthArray, grid: ScoringGrid) -> Float32:
    """Return similarities [shape=(N, M)] of a reader who goes through the segment at an even pace.

    It arrives at the right edge with the last note, in the row that has most of the note heads.
    """
    n_judged = sounding_patches(truth, grid.patches, grid.frames).shape[1]
    pace = (np.arange(len(grid.frames)) + 0.5) / max(1, n_judged)
    columns = (np.arange(grid.patches.cols) + 0.5) / grid.patches.cols
    return even_reading(columns, pace, grid.patches, main_row(truth, grid.patches))


def even_reading(columns: Float64, frames: Float64, patches: PatchGrid, row: int) -> Float32:
    """Return how near frames are to the patches of a row [shape=(N, M)], -2 for those of other rows.

    Parameters
    ----------
    columns, frames : np.ndarray [shape=(cols,), (M,)]
        How far along the whole each of them is, 0 to 1.
    patches : PatchGrid
    row : int
    """
    similarity = np.full((patches.rows, patches.cols, len(frames)), -2.0, dtype=np.float32)
    similarity[row] = -np.abs(columns[:, None] - frames)
    return similarity.reshape(len(patches), len(frames))


def main_row(truth: TruthArray, patches: PatchGrid) -> int:
    """Return the row of patches that has most of the note heads."""
    patch = patches.index((truth["x0"] + truth["x1"]) / 2, (truth["y0"] + truth["y1"]) / 2)
    return int(np.bincount(patch[patch >= 0] // patches.cols, minlength=patches.rows).argmax())


def shuffled_frames(similarity: Float32, n_judged: int, key: str) -> Float32:
    """Put the first frames of a similarity matrix [shape=(N, M)] in random order, the same for each key."""
    order = np.arange(similarity.shape[1])
    order[:n_judged] = random_stream(0, "shuffled", key).permutation(n_judged)
    return similarity[:, order]
