"""The local embeddings of many segments, kept in a temporary file: memory does not grow with their number."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType

import numpy as np

from fusili_mir.arrays import Bool, Float32

__all__ = ["LocalStore", "PaddedTokens"]


@dataclass(frozen=True, eq=False)
class PaddedTokens:
    """Embeddings of some segments [shape=(B, L, d)]; `mask` is False where there is padding [shape=(B, L)]."""

    tokens: Float32
    mask: Bool


class LocalStore:
    """Arrays [shape=(L, d)] of any length L, by number; closing the store removes its file."""

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile(prefix="fusili-mir-")  # noqa: SIM115 - closed in close()
        self._offsets: list[int] = []
        self._shapes: list[tuple[int, int]] = []

    def __len__(self) -> int:
        return len(self._shapes)

    def __enter__(self) -> LocalStore:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Remove the file."""
        self._file.close()

    def append(self, tokens: Float32) -> None:
        """Add the embeddings of one segment."""
        self._offsets.append(self._file.seek(0, 2))
        self._shapes.append((tokens.shape[0], tokens.shape[1]))
        self._file.write(np.ascontiguousarray(tokens, dtype=np.float32).tobytes())

    def read(self, number: int) -> Float32:
        """Return the embeddings of a segment."""
        self._file.seek(self._offsets[number])
        length, d = self._shapes[number]
        return np.frombuffer(self._file.read(4 * length * d), dtype=np.float32).reshape(length, d)

    def read_padded(self, numbers: Sequence[int]) -> PaddedTokens:
        """Return the embeddings of some segments, padded with zeros to one length."""
        arrays = [self.read(number) for number in numbers]
        longest = max(len(array) for array in arrays)
        tokens = np.zeros((len(arrays), longest, arrays[0].shape[1]), dtype=np.float32)
        mask = np.zeros((len(arrays), longest), dtype=bool)
        for row, array in enumerate(arrays):
            tokens[row, : len(array)] = array
            mask[row, : len(array)] = True
        return PaddedTokens(tokens, mask)
