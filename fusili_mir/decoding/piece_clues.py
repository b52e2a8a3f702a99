"""Clues to whether a recording is of a score at all: what the decoder sees of the whole path."""

from __future__ import annotations

from dataclasses import astuple, dataclass

import numpy as np

from fusili_mir.arrays import Float64
from fusili_mir.decoding.certainty import PieceWeights, weighted

__all__ = ["PieceClues"]


@dataclass(frozen=True)
class PieceClues:
    """What is seen of a path, in the order of `PieceWeights`.

    Attributes
    ----------
    order : float
        How much better the score explains the recording than the recording played backwards; see `RoughSearch`.
    sure : float
        Mean log-odds of the posteriors of its stops.
    struck : float
        How much more strongly the pitches of its stops are struck at their times than those of stops from
        elsewhere in the piece are, in nats.
    unsteady : float
        Mean of the clue of the same name to its stops.
    """

    order: float
    sure: float
    struck: float
    unsteady: float

    def row(self) -> Float64:
        """Return the clues as an array [shape=(n_clues,)]."""
        return np.array(astuple(self))

    def probability(self, weights: PieceWeights) -> float:
        """Return the probability that the recording is of the score, if it is as likely as not beforehand."""
        return float(1 / (1 + np.exp(-np.clip(weighted(self.row(), weights), -50.0, 50.0))))
