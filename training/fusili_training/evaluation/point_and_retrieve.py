"""Point-and-retrieve: one frame against all patches of a piece, one patch against all its frames.

Similarities come in blocks, the image of one segment against the recording of another: the matrix of a whole
piece is never in memory. Among equally similar answers the first in reading order counts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from fusili_mir.arrays import Bool, Float32, Int64
from fusili_mir.errors import InputError
from fusili_mir.geometry import PatchGrid
from fusili_training.evaluation.judging_grid import JudgingGrid
from fusili_training.evaluation.matching_rules import EXACT, POINT, MatchingRule
from fusili_training.placed_notes import sounding_patches
from fusili_training.truth import TruthArray

__all__ = ["BlockSimilarity", "PointCounts", "PointSegment", "chance_point", "judge_point"]


BlockSimilarity = Callable[[int, int], Float32]
"""Image of segment i, recording of segment j -> similarities [shape=(N_i, M_j)], which may go on after the last
note of j."""


@dataclass(frozen=True, eq=False)
class PointSegment:
    """A segment's patches, and which of them sound in which frames up to its last note [shape=(N, M)]."""

    patches: PatchGrid
    right: Bool

    @classmethod
    def of(cls, truth: TruthArray, grid: JudgingGrid) -> PointSegment:
        """Place the notes of a segment on a grid."""
        return cls(grid.patches, sounding_patches(truth, grid.patches, grid.frames))


@dataclass(frozen=True)
class PointCounts:
    """Numbers of queries and of right answers, in both directions."""

    n_frames: int = 0
    n_frames_right: float = 0.0
    n_patches: int = 0
    n_patches_right: float = 0.0

    def __add__(self, other: PointCounts) -> PointCounts:
        return PointCounts(
            self.n_frames + other.n_frames,
            self.n_frames_right + other.n_frames_right,
            self.n_patches + other.n_patches,
            self.n_patches_right + other.n_patches_right,
        )


@dataclass(eq=False)
class _Best:
    """The best answer so far of some queries."""

    similarity: Float32
    segment: Int64
    place: Int64

    @classmethod
    def none(cls, n_queries: int) -> _Best:
        unknown = np.full(n_queries, -1, dtype=np.int64)
        return cls(np.full(n_queries, -np.inf, dtype=np.float32), unknown, unknown.copy())

    def see(self, similarity: Float32, segment: int) -> None:
        """Keep the answers of a segment that are better [shape=(answers, queries)]."""
        if not len(similarity):
            return
        place = similarity.argmax(axis=0)
        value = similarity[place, np.arange(len(place))]
        better = value > self.similarity
        self.similarity[better], self.place[better] = value[better], place[better]
        self.segment[better] = segment


def judge_point(
    segments: Sequence[PointSegment],
    similarity: BlockSimilarity,
    a2i_rule: MatchingRule = POINT,
    i2a_rule: MatchingRule = EXACT,
) -> PointCounts:
    """Judge all queries of a piece.

    Parameters
    ----------
    segments : sequence of PointSegment
        All segments of the piece, in reading order.
    similarity : callable
        Returns the similarities of one segment's image and another's recording.
    a2i_rule, i2a_rule : MatchingRule
        When an answer is right: a patch found for a frame, and a frame found for a patch.

    Returns
    -------
    PointCounts
        Every frame up to a segment's last note is a query, unless the rule leaves out all of its patches; so is
        every patch with a note.
    """
    frames = [_Best.none(segment.right.shape[1]) for segment in segments]
    patches = [_Best.none(len(segment.patches)) for segment in segments]
    for image, shown in enumerate(segments):
        candidates = a2i_rule.candidates(shown.patches)
        for recording, heard in enumerate(segments):
            block = similarity(image, recording)
            n_frames = heard.right.shape[1]
            if block.ndim != 2 or len(block) != len(shown.patches) or block.shape[1] < n_frames:
                raise InputError(
                    f"similarities of shape {block.shape} for image {image} and recording {recording} of a "
                    f"piece; expected {len(shown.patches)} patches and at least {n_frames} frames"
                )
            block = block[:, :n_frames]
            frames[recording].see(np.where(candidates[:, None], block, np.float32(-np.inf)), image)
            patches[image].see(block.T, recording)
    counts = PointCounts()
    for number, segment in enumerate(segments):
        counts += _judge_segment(segment, number, frames[number], patches[number], a2i_rule, i2a_rule)
    return counts


def _judge_segment(
    segment: PointSegment,
    number: int,
    frames: _Best,
    patches: _Best,
    a2i_rule: MatchingRule,
    i2a_rule: MatchingRule,
) -> PointCounts:
    # An answer in another segment is wrong, and its place may not exist in this one.
    right = a2i_rule.asked(segment.right, segment.patches)
    asked = right.any(axis=0)
    found = np.flatnonzero(asked & (frames.segment == number))
    asking = _asking(segment, i2a_rule)
    heard = np.flatnonzero(asking & (patches.segment == number))
    found_right = a2i_rule.widen(right, segment.patches)[frames.place[found], found]
    heard_right = i2a_rule.widen(segment.right, segment.patches)[heard, patches.place[heard]]
    return PointCounts(int(asked.sum()), int(found_right.sum()), int(asking.sum()), int(heard_right.sum()))


def _asking(segment: PointSegment, rule: MatchingRule) -> Bool:
    return np.asarray(segment.right.any(axis=1) & rule.candidates(segment.patches))


def chance_point(
    segments: Sequence[PointSegment], a2i_rule: MatchingRule = POINT, i2a_rule: MatchingRule = EXACT
) -> PointCounts:
    """Return the counts expected from guessing."""
    all_candidates = sum(int(a2i_rule.candidates(segment.patches).sum()) for segment in segments)
    all_frames = sum(segment.right.shape[1] for segment in segments)
    counts = PointCounts()
    for segment in segments:
        right = a2i_rule.asked(segment.right, segment.patches)
        asking = _asking(segment, i2a_rule)
        found = a2i_rule.asked(a2i_rule.widen(right, segment.patches), segment.patches)
        heard = i2a_rule.widen(segment.right, segment.patches)[asking]
        counts += PointCounts(
            int(right.any(axis=0).sum()),
            float(found.sum()) / max(1, all_candidates),
            int(asking.sum()),
            float(heard.sum()) / max(1, all_frames),
        )
    return counts
