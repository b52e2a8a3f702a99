"""The split of each piece, training, validation or test, decided by its id alone."""

from __future__ import annotations

import hashlib
from typing import Literal, TypeAlias

__all__ = ["SPLITS", "Split", "split_of", "stable_fraction"]

Split: TypeAlias = Literal["train", "valid", "test"]

SPLITS: tuple[Split, ...] = ("train", "valid", "test")
_SHARES = (0.94, 0.05)  # the rest is the test split


def split_of(piece_id: str) -> Split:
    """Return the split of a piece: train for 94 % of all ids, valid for 5 %, test for 1 %.

    Adding pieces to a corpus does not move others.
    """
    place = stable_fraction(piece_id)
    if place < _SHARES[0]:
        return "train"
    return "valid" if place < sum(_SHARES) else "test"


def stable_fraction(text: str) -> float:
    """Return a number from 0 up to, but not including, 1 that depends on the text only."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:6], "big") / 2**48
