"""When a predicted patch counts as right: exactly, or within some patches of a right one.

A patch matches when it lies in the same column within `vertical` rows of a right one, or in the same row within
`horizontal` columns of it. Columns left out can neither be predicted nor asked for.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fusili_mir.arrays import Bool
from fusili_mir.errors import InputError
from fusili_mir.geometry import PatchGrid

__all__ = ["EXACT", "POINT", "SEQ2SEQ", "SEQ2SEQ_POINT", "MatchingRule"]


@dataclass(frozen=True)
class MatchingRule:
    """How far a prediction may be off.

    Attributes
    ----------
    vertical : int or None
        Rows up and down; None is the whole column.
    horizontal : int
        Columns to the left and right.
    columns_left_out : int
        Columns at the left of each segment that are not looked at: clef, key and time signature.
    """

    vertical: int | None = 0
    horizontal: int = 0
    columns_left_out: int = 0

    def __post_init__(self) -> None:
        if min(self.vertical or 0, self.horizontal, self.columns_left_out) < 0:
            raise InputError(f"{self}: expected numbers of patches, 0 or more")

    def widen(self, right: Bool, grid: PatchGrid) -> Bool:
        """Add to the right patches [shape=(N, M)] those that match them; nothing reaches over the border."""
        cells = right.reshape(grid.rows, grid.cols, -1)
        wide = cells.copy()
        vertical = grid.rows - 1 if self.vertical is None else min(self.vertical, grid.rows - 1)
        for step in range(1, vertical + 1):
            wide[step:] |= cells[:-step]
            wide[:-step] |= cells[step:]
        for step in range(1, min(self.horizontal, grid.cols - 1) + 1):
            wide[:, step:] |= cells[:, :-step]
            wide[:, :-step] |= cells[:, step:]
        return wide.reshape(right.shape)

    def candidates(self, grid: PatchGrid) -> Bool:
        """Return which patches [shape=(N,)] can be predicted."""
        if self.columns_left_out >= grid.cols:
            raise InputError(
                f"{self.columns_left_out} columns left out of {grid.cols}; expected some to be left"
            )
        return np.tile(np.arange(grid.cols) >= self.columns_left_out, grid.rows)


EXACT = MatchingRule()
POINT = MatchingRule(vertical=1)
"""Of the contrastive models in point-and-retrieve, from audio to image."""
SEQ2SEQ = MatchingRule(vertical=2, horizontal=1, columns_left_out=3)
"""Of the sequence-to-sequence baseline."""
SEQ2SEQ_POINT = MatchingRule(vertical=None, horizontal=1, columns_left_out=3)
"""Of the same in point-and-retrieve, from audio to image."""
