"""Type aliases for the arrays that functions exchange."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

__all__ = ["Bool", "Float32", "Float64", "GreyImage", "Int32", "Int64", "Table"]

Bool: TypeAlias = npt.NDArray[np.bool_]
Float32: TypeAlias = npt.NDArray[np.float32]
Float64: TypeAlias = npt.NDArray[np.float64]
Int32: TypeAlias = npt.NDArray[np.int32]
Int64: TypeAlias = npt.NDArray[np.int64]

Table: TypeAlias = npt.NDArray[np.void]
"""A structured array: rows with named fields."""

GreyImage: TypeAlias = npt.NDArray[np.uint8]
"""A page image: uint8 [shape=(height, width)], 0 is ink and 255 is paper."""
