"""Where in a piece a passage occurs: a quick decoding of a passage against all of a piece.

Each step of the passage is compared with all steps of the piece; the best path goes forward through both, at any
speed up to a limit, and may begin and end anywhere in the piece. The yardstick is the passage read backwards: the
same sounds or signs in an order that the piece does not explain.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fusili_mir.arrays import Float32, Int64
from fusili_mir.collection.encoded_piece import EncodedPiece
from fusili_mir.decoding.similarity import log_mean_exp

__all__ = ["FoundPassage", "find_passage"]

_GROUP = 4  # steps of the passage, and of the piece, that are looked at together
_FASTEST = 4  # groups of the piece for a group of the passage
_HELD_COST = 0.15  # nats for standing still, and for each group that is passed over
_HUB_WEIGHT = 1.0


@dataclass(frozen=True)
class FoundPassage:
    """A passage in a piece.

    Attributes
    ----------
    first, stop : int
        First step of the piece, and the one after its last.
    likelihood : float
        Log-likelihood of the path, in nats per group of steps, relative to steps of the piece in general.
    backwards : float
        The same of the passage read backwards.
    free : float
        The same if every step could be anywhere: no path is better.
    n_groups : int
        Length of the passage.
    """

    first: int
    stop: int
    likelihood: float
    backwards: float
    free: float
    n_groups: int

    @property
    def reliability(self) -> float:
        """How much of what order can explain it does explain: 0 is chance."""
        return (self.likelihood - self.backwards) / max(self.free - self.backwards, 1e-3)


def find_passage(passage: Float32, piece: EncodedPiece, scale: float) -> FoundPassage:
    """Find a passage in a piece.

    Parameters
    ----------
    passage : np.ndarray [shape=(m, R, d)]
        Embeddings of its steps; 0 for patches that do not exist.
    piece : EncodedPiece
    scale : float
        The bundle's scale of cosines.

    Returns
    -------
    FoundPassage
    """
    likelihoods = _likelihoods(_grouped(passage), _grouped(piece.part(0, len(piece))), scale)
    value, begin = _best_path(likelihoods)
    end = int(value.argmax())
    backwards, _ = _best_path(likelihoods[::-1])
    n = len(likelihoods)
    return FoundPassage(
        int(begin[end]) * _GROUP,
        min((end + 1) * _GROUP, len(piece)),
        float(value[end]) / n,
        float(backwards.max()) / n,
        float(likelihoods.max(axis=1).mean()),
        n,
    )


def _grouped(steps: Float32) -> Float32:
    """Average neighbouring steps [shape=(n, R, d)]; the last group may be smaller."""
    first = np.arange(0, len(steps), _GROUP)
    sizes = np.diff(first, append=len(steps)).astype(np.float32)
    return np.asarray(np.add.reduceat(steps, first, axis=0) / sizes[:, None, None], np.float32)


def _likelihoods(passage: Float32, piece: Float32, scale: float) -> Float32:
    """Compare groups of steps, in nats relative to groups in general [shape=(m, n)]; the best patch counts."""
    (m, rows, d), (n, piece_rows, _) = passage.shape, piece.shape
    cosines = passage.reshape(-1, d) @ piece.reshape(-1, d).T
    if rows * piece_rows > 1:
        cosines = cosines.reshape(m, rows, n, piece_rows).max(axis=(1, 3))
    nats = np.float32(scale) * cosines
    nats -= log_mean_exp(nats, axis=1)[:, None]
    nats -= _HUB_WEIGHT * np.maximum(log_mean_exp(nats, axis=0), 0)  # places that resemble everything
    return nats


def _best_path(likelihoods: Float32) -> tuple[Float32, Int64]:
    """Return the likelihood of the best path that ends at each group of the piece, and where it begins."""
    n = likelihoods.shape[1]
    value, begin = likelihoods[0], np.arange(n)
    for row in likelihoods[1:]:
        best, origin = value - np.float32(_HELD_COST), begin.copy()
        for step in range(1, min(_FASTEST, n - 1) + 1):
            reached = value[:-step] - np.float32(_HELD_COST * (step - 1))
            better = reached > best[step:]
            best[step:][better] = reached[better]
            origin[step:][better] = begin[:-step][better]
        value, begin = best + row, origin
    return value, begin
