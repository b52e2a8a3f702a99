"""When a predicted patch counts as right: only if it is right itself, or also near a right one.

A patch matches if it lies within `vertical` rows of a right patch in the same column, or within `horizontal`
columns of one in the same row. Columns left out are neither predicted nor asked for.
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
        Number of rows up and down; None: the whole column.
    horizontal : int
        Number of columns to the left and right.
    columns_left_out : int
        Number of columns ignored at the left of each segment: clef, key and time signature.
    """

    vertical: int | None = 0
    horizontal: int = 0
    columns_left_out: int = 0

    def __post_init__(self) -> None:
        if min(self.vertical or 0, self.horizontal, self.columns_left_out) < 0:
            raise InputError(f"{self}: expected numbers of patches, 0 or more")

    def widen(self, right: Bool, grid: PatchGrid) -> Bool:
        """Add to the right patches [shape=(N, M)] those that match them, within the border of the grid."""
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

    def asked(self, right: Bool, grid: PatchGrid) -> Bool:
        """Return the right patches that are asked for [shape=(N, M)], without the columns left out."""
        return np.asarray(right & self.candidates(grid)[:, None])

    def candidates(self, grid: PatchGrid) -> Bool:
        """Return which patches can be predicted [shape=(N,)]."""
        if self.columns_left_out >= grid.cols:
            raise InputError(
                f"{self.columns_left_out} columns left out of {grid.cols}; expected fewer than {grid.cols}"
            )
        return np.tile(np.arange(grid.cols) >= self.columns_left_out, grid.rows)


EXACT = MatchingRule()
POINT = MatchingRule(vertical=1)
"""The rule for contrastive models in point-and-retrieve, from audio to image."""
SEQ2SEQ = MatchingRule(vertical=2, horizontal=1, columns_left_out=3)
"""The rule for the sequence-to-sequence baseline."""
SEQ2SEQ_POINT = MatchingRule(vertical=None, horizontal=1, columns_left_out=3)
"""The rule for the same baseline in point-and-retrieve, from audio to image."""
