"""How much better the stops of a course explain the frames of a recording than anything else does."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from fusili_mir.arrays import Bool, Float32, Int64
from fusili_mir.decoding.similarity import CourseSimilarity
from fusili_mir.decoding.viterbi import Block

__all__ = ["StopLikelihoods"]


@dataclass(frozen=True)
class StopLikelihoods:
    """Log-likelihoods relative to the filler, in nats, computed on demand.

    Attributes
    ----------
    similarity : CourseSimilarity
    scale : float
        The bundle's scale of cosines.
    baseline : np.ndarray [shape=(M,)]
        What each frame has in common with columns in general, in nats.
    hubs : np.ndarray [shape=(P,)]
        What each stop has in common with frames in general, in nats.
    is_silent : np.ndarray of bool [shape=(M,)]
        Silent frames, which say nothing about any stop.
    """

    similarity: CourseSimilarity
    scale: float
    baseline: Float32
    hubs: Float32
    is_silent: Bool

    @classmethod
    def of(
        cls,
        similarity: CourseSimilarity,
        scale: float,
        hub_weight: np.float32,
        is_silent: Bool,
    ) -> StopLikelihoods:
        """Measure what frames and stops have in common with all others."""
        baseline = similarity.baseline(scale)
        hubs = hub_weight * np.maximum(similarity.prominence(scale, baseline), 0.0)
        return cls(similarity, scale, baseline, hubs, is_silent)

    def __call__(self, block: Block) -> Float32:
        """Return the likelihoods of a block [shape=(n_frames, n_stops)]."""
        nats = self.similarity.block(block.frames, block.stops)
        nats *= np.float32(self.scale)
        nats -= self.baseline[block.frames, None]
        nats -= self.hubs[block.stops]
        nats[self.is_silent[block.frames]] = 0.0
        return nats

    def pairs(self, frames: Int64, stops: Int64) -> Float32:
        """Return the likelihood of ``stops[i]`` in ``frames[i]`` for every i [shape=(n,)]."""
        nats = np.float32(self.scale) * self.similarity.pairs(frames, stops)
        nats -= self.baseline[frames] + self.hubs[stops]
        return np.where(self.is_silent[frames], np.float32(0.0), nats)

    def among(self, frames: Int64) -> StopLikelihoods:
        """Return the likelihoods of some of the frames."""
        return replace(
            self,
            similarity=self.similarity.among(frames),
            baseline=self.baseline[frames],
            is_silent=self.is_silent[frames],
        )
