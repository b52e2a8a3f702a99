"""An excerpt of a recording, whose times remain those of the whole recording."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from fusili_mir.arrays import Float32
from fusili_mir.audio.audio_samples import Recording
from fusili_mir.errors import InputError

__all__ = ["Excerpt", "start_of"]


@dataclass(frozen=True)
class Excerpt:
    """A stretch of a recording.

    Attributes
    ----------
    recording : Recording
    start_sec : float
        Start of the stretch, in seconds of the recording.
    end_sec : float, optional
        End of the stretch; by default the end of the recording, which it may also exceed.
    """

    recording: Recording
    start_sec: float = 0.0
    end_sec: float | None = None

    def __post_init__(self) -> None:
        if not (math.isfinite(self.start_sec) and self.start_sec >= 0):
            raise InputError(f"{self.name}: a start of {self.start_sec:g} s, expected 0 or more")
        if self.end_sec is not None and not self.end_sec > self.start_sec:
            raise InputError(
                f"{self.name}: an end of {self.end_sec:g} s and a start of {self.start_sec:g} s, expected the "
                "end after the start"
            )

    @property
    def name(self) -> str:
        """Name of the recording."""
        return self.recording.name

    @property
    def sample_rate_hz(self) -> int:
        """Sampling rate of the recording."""
        return self.recording.sample_rate_hz

    def blocks(self, progress: bool = False) -> Iterator[Float32]:
        """Yield the blocks of the stretch; what comes before it is read and dropped."""
        rate_hz = self.sample_rate_hz
        first = round(self.start_sec * rate_hz)
        last = None if self.end_sec is None else max(round(self.end_sec * rate_hz), first + 1)
        n_read = 0
        blocks = self.recording.blocks(progress)
        for block in blocks:
            kept = block[max(first - n_read, 0) : None if last is None else max(last - n_read, 0)]
            n_read += len(block)
            if len(kept):
                yield kept
            if last is not None and n_read >= last:
                return
        if 0 < n_read <= first:
            raise InputError(
                f"{self.name}: {n_read / rate_hz:.2f} s long, expected it to last longer than the start of "
                f"{self.start_sec:g} s"
            )


def start_of(recording: Recording) -> float:
    """Return the second at which the first block of a recording starts: 0 unless it is an excerpt."""
    return float(getattr(recording, "start_sec", 0.0))
