"""What a recording is, and sound in memory as one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from fusili_mir.argument_kinds import checked
from fusili_mir.arrays import Float32
from fusili_mir.errors import InputError
from fusili_mir.progress import progress_bar

__all__ = ["BLOCK_VALUES", "AudioSamples", "Recording", "blocks_with_bar"]

BLOCK_VALUES = 2**18
"""Size of a block: the samples of all channels together."""


class Recording(Protocol):
    """Anything that yields blocks of samples."""

    @property
    def name(self) -> str:
        """Name used in messages."""
        ...

    @property
    def sample_rate_hz(self) -> int:
        """Sampling rate of its blocks."""
        ...

    def blocks(self, progress: bool = False) -> Iterator[Float32]:
        """Yield blocks [shape=(n, channels)] with full scale 1; with a progress bar on a terminal if asked."""
        ...


@checked
@dataclass(frozen=True)
class AudioSamples:
    """Sound in memory.

    Attributes
    ----------
    samples : np.ndarray [shape=(n,) or (n, channels)]
        Floats with full scale 1, or integers with the full scale of their type.
    sample_rate_hz : int
    name : str
        Name used in messages.

    Examples
    --------
    >>> recording = AudioSamples(np.array([0, 16384, -32768], np.int16), sample_rate_hz=16_000)
    >>> next(recording.blocks()).tolist()  # one channel, full scale 1
    [[0.0], [0.5], [-1.0]]
    """

    samples: npt.NDArray[Any]
    sample_rate_hz: int
    name: str = "the recording"

    def __post_init__(self) -> None:
        object.__setattr__(self, "samples", np.asarray(self.samples))  # tensors of torch, say
        shape = self.samples.shape
        if self.samples.dtype.kind not in "fiu":
            raise InputError(
                f"{self.name}: samples of type {self.samples.dtype}, expected floats or integers"
            )
        if self.samples.ndim not in (1, 2) or 0 in shape[1:]:
            raise InputError(f"{self.name}: samples of shape {shape}, expected (n,) or (n, channels)")
        if self.samples.ndim == 2 and 0 < shape[0] < shape[1]:
            raise InputError(
                f"{self.name}: samples of shape {shape}, expected (n, channels); transpose the array"
            )

    def __repr__(self) -> str:
        shape = "x".join(map(str, self.samples.shape))
        return f"AudioSamples({shape} samples, {self.sample_rate_hz} Hz, {self.name!r})"

    def blocks(self, progress: bool = False) -> Iterator[Float32]:
        """Yield the samples, one block at a time."""
        samples = self.samples if self.samples.ndim == 2 else self.samples[:, None]
        n_block = max(1, BLOCK_VALUES // samples.shape[1])
        starts = range(0, len(samples), n_block)
        pieces = (_as_float(samples[start : start + n_block]) for start in starts)
        yield from blocks_with_bar(pieces, len(starts), progress)


def blocks_with_bar(blocks: Iterator[Float32], n_expected: int, progress: bool) -> Iterator[Float32]:
    """Pass blocks on with a progress bar; there may be fewer or more of them than expected."""
    for _ in progress_bar(range(n_expected), "listening", shown=progress):
        block = next(blocks, None)
        if block is None:
            return
        yield block
    yield from blocks


def _as_float(samples: npt.NDArray[Any]) -> Float32:
    """Convert samples to floats with full scale 1."""
    if samples.dtype.kind == "f":
        return samples.astype(np.float32)
    limits = np.iinfo(samples.dtype)
    half_range = (int(limits.max) - int(limits.min) + 1) / 2
    return ((samples - (limits.min + half_range)) / half_range).astype(np.float32)
