"""Local alignment: whether the patch that a frame resembles most is one of those that sound in it.

The protocol of the paper: frames up to the segment's last note are judged; a frame in which nothing sounds takes
the patches of the notes nearest in time. A frame whose right patches are all left out by the rule is not judged.
Among equally similar patches the first counts.

The perplexity is computed from the similarities as they are, without a temperature: a uniform guess over 49
patches has a perplexity of 49. Where several patches are right, the target gives each an equal share.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fusili_mir.arrays import Bool, Float32, Float64
from fusili_mir.errors import InputError
from fusili_training.evaluation.bootstrap import Interval, ratio_interval
from fusili_training.evaluation.judging_grid import JudgingGrid
from fusili_training.evaluation.matching_rules import EXACT, MatchingRule
from fusili_training.placed_notes import sounding_patches
from fusili_training.truth import TruthArray

__all__ = ["LocalCounts", "column_cross_entropy", "judge_local", "local_perplexity", "local_top1"]


@dataclass(frozen=True)
class LocalCounts:
    """Counts over some segments.

    Attributes
    ----------
    n_frames : int
        Number of judged frames.
    n_right : float
        Number of frames whose patch was right.
    n_entropy_frames : int
        Number of frames with a right patch among the candidates.
    cross_entropy : float
        Sum of the cross-entropies of these frames, in nats.
    """

    n_frames: int = 0
    n_right: float = 0.0
    n_entropy_frames: int = 0
    cross_entropy: float = 0.0

    def __add__(self, other: LocalCounts) -> LocalCounts:
        return LocalCounts(
            self.n_frames + other.n_frames,
            self.n_right + other.n_right,
            self.n_entropy_frames + other.n_entropy_frames,
            self.cross_entropy + other.cross_entropy,
        )


def judge_local(
    similarity: Float32, truth: TruthArray, grid: JudgingGrid, rule: MatchingRule = EXACT
) -> LocalCounts:
    """Judge the similarity matrix of a pair.

    Parameters
    ----------
    similarity : np.ndarray [shape=(N, M)]
        Similarities of the cells and frames of `grid`.
    truth : TruthArray [shape=(notes,)]
    grid : JudgingGrid
    rule : MatchingRule

    Returns
    -------
    LocalCounts
    """
    if similarity.shape != (len(grid.patches), len(grid.frames)):
        raise InputError(
            f"a similarity matrix of shape {similarity.shape}; expected {len(grid.patches)} patches by "
            f"{len(grid.frames)} frames"
        )
    right = rule.asked(sounding_patches(truth, grid.patches, grid.frames), grid.patches)
    asked = right.any(axis=0)
    if not asked.any():
        return LocalCounts()
    right = right[:, asked]
    candidates = rule.candidates(grid.patches)
    judged = np.where(candidates[:, None], similarity[:, : len(asked)][:, asked], np.float32(-np.inf))
    n_frames = right.shape[1]
    hits = rule.widen(right, grid.patches)[judged.argmax(axis=0), np.arange(n_frames)]
    entropies = column_cross_entropy(judged, right)
    return LocalCounts(n_frames, int(hits.sum()), n_frames, float(entropies.sum()))


def column_cross_entropy(logits: Float32, right: Bool) -> Float64:
    """Return the cross-entropy of each frame's softmax over patches.

    Parameters
    ----------
    logits : np.ndarray [shape=(N, M)]
        -inf for patches that are not candidates.
    right : np.ndarray of bool [shape=(N, M)]
        The right patches of each frame, which share it equally.

    Returns
    -------
    np.ndarray [shape=(M,)]
        Cross-entropies in nats; NaN for frames without a right patch.
    """
    logits_64 = logits.astype(np.float64)
    top = logits_64.max(axis=0)
    log_sum = top + np.log(np.exp(logits_64 - top).sum(axis=0))
    n_right = right.sum(axis=0)
    right_logits = np.where(right, logits_64, 0.0).sum(axis=0)
    mean = right_logits / np.maximum(n_right, 1)
    return np.where(n_right > 0, log_sum - mean, np.nan)


def local_top1(pieces: Sequence[LocalCounts]) -> Interval:
    """Return the share of right frames among all frames of all pieces."""
    return ratio_interval([piece.n_right for piece in pieces], [piece.n_frames for piece in pieces])


def local_perplexity(pieces: Sequence[LocalCounts]) -> Interval:
    """Return the exponential of the mean cross-entropy, over all frames of all pieces."""
    return ratio_interval(
        [piece.cross_entropy for piece in pieces], [piece.n_entropy_frames for piece in pieces], math.exp
    )
