"""A fixed random choice of a dataset's segments: the more candidates there are, the harder retrieval is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from fusili_mir.errors import InputError
from fusili_training.data.shard_folder import Pair
from fusili_training.evaluation.sources import PairSource
from fusili_training.splits import stable_fraction

__all__ = ["ChosenPairs"]


class ChosenPairs:
    """So many pairs of a dataset, always the same ones.

    Parameters
    ----------
    source : PairSource
        The whole dataset; it is read once to list its pairs.
    number : int
    """

    def __init__(self, source: PairSource, number: int) -> None:
        piece_of = {pair.key: piece for piece in source.pieces for pair in source.read_piece(piece)}
        if number < 1 or number > len(piece_of):
            raise InputError(f"{source.name}: {number} segments were asked for; it has {len(piece_of)}")
        self._source = source
        self._keys = set(sorted(piece_of, key=stable_fraction)[:number])
        with_pairs = {piece_of[key] for key in self._keys}
        self.name = f"{number} segments of {source.name}"
        self.pieces: Sequence[str] = [piece for piece in source.pieces if piece in with_pairs]
        self.has_truth = source.has_truth
        self.dropped = Counter(source.dropped)  # a copy: the source counts again when it is read again

    def read_piece(self, piece: str) -> Iterator[Pair]:
        """Yield the chosen pairs of a piece in reading order."""
        return (pair for pair in self._source.read_piece(piece) if pair.key in self._keys)
