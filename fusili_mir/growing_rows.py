"""Rows that are found one after another, gathered in one array from the beginning.

A list of parts that is joined at the end takes the memory twice, and its parts lie between all that comes and
goes meanwhile, so that the memory around them cannot be given back.
"""

from __future__ import annotations

from typing import Generic, TypeVar

import numpy as np
import numpy.typing as npt

__all__ = ["GrowingRows"]

_Scalar = TypeVar("_Scalar", bound=np.generic)


class GrowingRows(Generic[_Scalar]):
    """An array that grows at its end.

    Parameters
    ----------
    dtype : type
    row_shape : tuple of int
        Shape of a row.
    n_expected : int
        How many rows will come, about: room for them is taken at once. Rows that are passed over are 0, never
        written, and take no memory as long as there are no more rows than expected.

    Examples
    --------
    >>> rows = GrowingRows(np.float32, (2,), n_expected=3)
    >>> rows.add(np.ones((1, 2), np.float32))
    >>> rows.pass_over(1)
    >>> rows.array().tolist()
    [[1.0, 1.0], [0.0, 0.0]]
    """

    def __init__(self, dtype: type[_Scalar], row_shape: tuple[int, ...] = (), n_expected: int = 0) -> None:
        self._rows: npt.NDArray[_Scalar] = np.zeros((max(n_expected, 0), *row_shape), dtype)
        self._n_rows = 0

    def __len__(self) -> int:
        return self._n_rows

    def add(self, rows: npt.NDArray[np.generic]) -> None:
        """Add rows at the end, converted to the type of the array."""
        first = self._n_rows
        self.pass_over(len(rows))
        self._rows[first : self._n_rows] = rows

    def add_sparse(self, rows: npt.NDArray[np.generic]) -> None:
        """Add rows at the end; if all are 0, they are passed over."""
        if rows.any():
            self.add(rows)
        else:
            self.pass_over(len(rows))

    def pass_over(self, n_rows: int) -> None:
        """Add rows of zeros."""
        self._n_rows += n_rows
        lacking = self._n_rows - len(self._rows)
        if lacking > 0:
            more = np.zeros((lacking + len(self._rows) // 4, *self._rows.shape[1:]), self._rows.dtype)
            self._rows = np.concatenate((self._rows, more))

    def array(self) -> npt.NDArray[_Scalar]:
        """Return all rows so far, without a copy."""
        return self._rows[: self._n_rows]
