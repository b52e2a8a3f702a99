"""Which pieces are for training, which for validation, which for the test: by their id alone."""

from __future__ import annotations

import hashlib
from typing import Literal, TypeAlias

__all__ = ["SPLITS", "Split", "split_of", "stable_fraction"]

Split: TypeAlias = Literal["train", "valid", "test"]

SPLITS: tuple[Split, ...] = ("train", "valid", "test")
_SHARES = (0.94, 0.05)  # the test has the rest


def split_of(piece_id: str) -> Split:
    """Return the split of a piece: 94 % of all ids train, 5 % valid, 1 % test, whatever else is in the corpus."""
    place = stable_fraction(piece_id)
    if place < _SHARES[0]:
        return "train"
    return "valid" if place < sum(_SHARES) else "test"


def stable_fraction(text: str) -> float:
    """Return a number from 0 to 1 (excluded) that depends on the text only, on every machine."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:6], "big") / 2**48
