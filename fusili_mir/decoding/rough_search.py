"""The rough search: the best path over all stops, with frames and stops in groups where the piece is long.

It bounds the work for long pieces, and measures how well the score explains the recording. The yardstick is the
recording played backwards: the same sounds in an order that the score does not explain.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from fusili_mir.arrays import Float32
from fusili_mir.decoding.course import Course
from fusili_mir.decoding.similarity import CourseSimilarity, log_mean_exp, pool_frames
from fusili_mir.decoding.timing_law import TimingLaw
from fusili_mir.decoding.viterbi import (
    Block,
    DecodedPath,
    PathCosts,
    best_likelihood,
    best_path,
    whole_blocks,
)
from fusili_mir.errors import InputError

__all__ = ["DENSEST_HZ", "DecodingOptions", "RoughSearch", "path_costs"]

_LEAST_STEP = 4.0  # stops per frame: a glissando is faster than any tempo
_FEW_STOPS = (
    8  # set by hand: with so many stops each is a hub to half its weight: of few stops, each sounds for long
)
DENSEST_HZ = 12.0
"""Highest rate of successive notes, set by hand: sixteenths at 180 quarters a minute."""


@dataclass(frozen=True)
class DecodingOptions:
    """Limits and costs of a path, set by hand; `benchmarks/fit_decoder.py law --scan NAME` shows what others do.

    Attributes
    ----------
    max_speed : float
        Speed of the fastest passage, relative to the average of the piece.
    skip_cost, filler_cost, margin_cost : float
        Costs in nats; see `fusili_mir.decoding.viterbi.PathCosts`.
    hub_weight, column_hub_weight : float
        How strongly stops that resemble everything are penalised, as the baseline does for frames: 1 is in full,
        as in one Sinkhorn iteration. The second applies to courses of single columns.
    band_stops : int
        Smallest width of the band, in stops.
    rough_cells : int
        Largest number of cells in the rough search.
    law : TimingLaw
        How stops are timed; fitted for a bundle.
    """

    max_speed: float = 16.0
    skip_cost: float = 8.0
    filler_cost: float = 10.0
    margin_cost: float = 40.0
    hub_weight: float = 1.0
    column_hub_weight: float = 0.6
    band_stops: int = 256
    rough_cells: int = 2**23
    law: TimingLaw = field(default_factory=TimingLaw)

    def __post_init__(self) -> None:
        if self.max_speed < 1 or self.band_stops < 16 or self.rough_cells < 2**10:
            raise InputError(
                f"max_speed {self.max_speed:g}, band_stops {self.band_stops}, rough_cells {self.rough_cells}; "
                "expected at least 1, 16 and 1024"
            )

    def hub_weight_of(self, course: Course) -> np.float32:
        """Return the hub weight for a course: less for few stops, each of which sounds for long."""
        weight = self.column_hub_weight if course.of_columns else self.hub_weight
        return np.float32(weight * len(course) / (len(course) + _FEW_STOPS))


@dataclass(frozen=True)
class RoughSearch:
    """The search over all stops, in groups of frames and stops.

    Attributes
    ----------
    similarity : CourseSimilarity
        Similarity of single frames and stops.
    frame_sec : float
        Time from one frame to the next.
    scale : float
        The bundle's scale of cosines.
    options : DecodingOptions
    """

    similarity: CourseSimilarity
    frame_sec: float
    scale: float
    options: DecodingOptions

    @cached_property
    def factors(self) -> tuple[int, int]:
        """Frames and stops per group, powers of two; frames are grouped first while there are more of them."""
        n_frames, n_stops = len(self.similarity.frames), len(self.similarity.course)
        by_frame = by_stop = 1
        while (n_frames / by_frame) * (n_stops / by_stop) > self.options.rough_cells:
            if n_frames / by_frame > 2 * n_stops / by_stop:
                by_frame *= 2
            else:
                by_stop *= 2
        return by_frame, by_stop

    @cached_property
    def likelihoods(self) -> Float32:
        """Log-likelihoods relative to the filler, in nats [shape=(n_frame_groups, n_stop_groups)]."""
        by_frame, by_stop = self.factors
        pooled = replace(self.similarity, frames=pool_frames(self.similarity.frames, by_frame))
        likelihoods = pooled.pooled(by_stop)
        likelihoods *= np.float32(self.scale)
        likelihoods -= pooled.baseline(self.scale)[:, None]
        likelihoods *= np.float32(by_frame)
        return likelihoods

    @cached_property
    def likelihood(self) -> float:
        """Log-likelihood of the best path, in nats per frame."""
        return self._best_likelihood(self.likelihoods)

    @cached_property
    def order(self) -> float:
        """How well the score explains the order of the sounds, 0 to 1.

        0 if it explains the recording no better than the recording played backwards, 1 if ignoring the order of
        the score would explain it no better.
        """
        backwards = self._best_likelihood(self.likelihoods[::-1])
        free = float(np.maximum(self.likelihoods.max(axis=1), 0.0).sum()) / len(self.similarity.frames)
        if free - backwards < 1e-6:
            return 0.0
        return float(np.clip((self.likelihood - backwards) / (free - backwards), 0.0, 1.0))

    def path(self) -> DecodedPath:
        """Return the best path, in groups."""
        n_frames, n_stops = self.likelihoods.shape
        by_frame = np.float32(self.factors[0])
        hubs = by_frame * np.maximum(log_mean_exp(self.likelihoods, axis=0, scale=1 / self.factors[0]), 0.0)
        hubs *= self.options.hub_weight_of(self.similarity.course)

        def likelihoods(block: Block) -> Float32:
            return self.likelihoods[block.frames, block.stops] - hubs[block.stops]

        return best_path(likelihoods, whole_blocks(n_frames, n_stops), n_stops, self.costs())

    @cached_property
    def stop_weights(self) -> Float32:
        """Weights of single stops [shape=(P,)]; see `CourseSimilarity.stop_weights`."""
        return self.similarity.stop_weights()

    def costs(self) -> PathCosts:
        """Return the costs of a path of groups."""
        weights = self.stop_weights
        if self.factors[1] > 1:
            weights = np.add.reduceat(weights, np.arange(0, len(weights), self.factors[1]))
        return path_costs(self.options, weights, len(self.likelihoods), self.frame_sec * self.factors[0])

    def _best_likelihood(self, likelihoods: Float32) -> float:
        n_frames, n_stops = likelihoods.shape
        total = best_likelihood(
            lambda block: likelihoods[block.frames, block.stops],
            whole_blocks(n_frames, n_stops),
            n_stops,
            self.costs(),
        )
        return total / len(self.similarity.frames)


def path_costs(options: DecodingOptions, weights: Float32, n_frames: int, frame_sec: float) -> PathCosts:
    """Return the costs of a path of `n_frames` frames along stops with the given weights."""
    fastest = max(_LEAST_STEP, options.max_speed * len(weights) / n_frames)
    return PathCosts(
        max_step=2 ** math.ceil(math.log2(fastest)),
        # Frames that are longer than notes must skip some.
        skip=options.skip_cost * max(0.0, 1 - frame_sec * DENSEST_HZ),
        filler=options.filler_cost,
        margin=options.margin_cost,
        weight=weights,
    )
